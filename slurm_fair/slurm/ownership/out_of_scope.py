"""Jobs outside our scope, or no longer in it, that still carry a gate or a node list of ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Action, JobState, Outcome, Result, label, pack_keys
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import MarkBook
from slurm_fair.slurm.ownership.ours import SLACK_SECONDS, free_action, is_foreign, is_our_list, kept_by_us
from slurm_fair.slurm.reading.details import DetailsBook
from slurm_fair.slurm.reading.queue import Queue, spread_tasks
from slurm_fair.slurm.reading.reread import Which

REST_SECONDS, REST_MOST_SECONDS = 5.0, 3600.0
_DOUBLINGS = 20  # a number that goes on doubling has an end


def strays(
    rows: NDArray[np.void],
    managed: Ints,
    queue: Queue,
    details: DetailsBook,
    marks: MarkBook,
    booted_at: float = 0.0,
) -> tuple[Action, ...]:
    """Acts that free waiting jobs outside the scope, or left alone, that a gate or a mark of ours keeps back.

    They were submitted with our gate by a template or the submit hook, or left the scope since.
    """
    waits = rows[(rows["state"] == JobState.WAITING) & (rows["gpus"] > 0)]
    source, base, task = spread_tasks(waits, queue.task_lists)
    keys = pack_keys(base, task)
    outside = np.unique(source[find(managed, keys) < 0])
    kept_back = (waits["priority"] == 0) | (waits["eligible"] > waits["submit"])
    kept_back |= waits["req_nodes"] != queue.node_lists.known("")
    candidates = [(waits[at], free_action(waits[at])) for at in outside[kept_back[outside]].tolist()]
    return tuple(
        action for row, action in candidates if _is_ours(row, action, queue, details, marks, booted_at)
    )


@dataclass(slots=True)
class StrayRests:
    """Strays that Slurm refused to free; each further try comes later than the last."""

    _rests: dict[Which, tuple[float, int, str]] = field(default_factory=dict)  # until, times, why

    def without(self, found: Sequence[Action], now: float) -> tuple[Action, ...]:
        """Those whose time has come; what is no longer found is forgotten."""
        here = {(action.key, action.whole_record): action for action in found}
        self._rests = {which: rest for which, rest in self._rests.items() if which in here}
        return tuple(action for which, action in here.items() if self._until(which) <= now)

    def _until(self, which: Which) -> float:
        return self._rests[which][0] if which in self._rests else 0.0

    def heed(self, outcomes: Iterable[Outcome], now: float) -> list[str]:
        """What came of the tries; what to say: a line for each refusal whose reason is new."""
        lines = []
        for outcome in outcomes:
            which = outcome.action.key, outcome.action.whole_record
            if outcome.result is Result.DONE:
                self._rests.pop(which, None)
                continue
            _, times, said = self._rests.get(which, (0.0, 0, ""))
            rest = min(REST_SECONDS * 2 ** min(times, _DOUBLINGS), REST_MOST_SECONDS)
            self._rests[which] = (now + rest, times + 1, outcome.detail)
            if outcome.detail != said:
                lines.append(
                    f"job {label(outcome.action.key)} is not managed, and what is ours on it cannot be taken "
                    f"away: {outcome.detail}"
                )
        return lines


def _is_ours(
    row: np.void, action: Action, queue: Queue, details: DetailsBook, marks: MarkBook, booted_at: float
) -> bool:
    mark = marks.covering(action.key, action.whole_record, action.submit, action.restarts)
    text = queue.node_lists.texts[int(row["req_nodes"])]
    if mark is not None and (is_our_list(mark, text, booted_at) or _stands(mark, row, queue)):
        return True
    stamp = details.of(action.record, action.restarts).stamp
    reason = queue.reasons.texts[int(row["reason"])]
    return stamp is not None and kept_by_us(row, stamp, reason, lost=False)


def _stands(mark: Mark, row: np.void, queue: Queue) -> bool:
    """Whether its gate is the one of the mark."""
    if math.isinf(mark.gate_until):
        reason = queue.reasons.texts[int(row["reason"])]
        return bool(row["priority"] == 0) and not is_foreign(reason, mark.gate_before)
    return bool(mark.gate_until > 0 and abs(mark.gate_until - float(row["eligible"])) <= SLACK_SECONDS)
