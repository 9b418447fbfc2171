"""Jobs that carry something of ours although they are not, or no longer, ours to keep back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Action, JobState, Outcome, Result, label, pack_keys
from slurm_fair.model.columns import Ints, find
from slurm_fair.slurm.ownership.claims import free_action
from slurm_fair.slurm.ownership.kept_back import Keepers, whose_are
from slurm_fair.slurm.reading.queue import NO_TASK, UNSPLIT, spread_tasks
from slurm_fair.slurm.reading.reread import Which

REST_SECONDS, REST_MOST_SECONDS = 5.0, 3600.0
_DOUBLINGS = 20  # a number that goes on doubling has an end


def strays(rows: NDArray[np.void], managed: Ints, seen: Keepers) -> tuple[Action, ...]:
    """Acts that free waiting jobs outside the scope, or left alone, that a gate or a mark of ours keeps back.

    They were submitted with our gate by a template or the submit hook, or left the scope since.
    """
    waits = rows[(rows["state"] == JobState.WAITING) & (rows["gpus"] > 0)]
    source, base, task = spread_tasks(waits, seen.queue.task_lists)
    outside = np.unique(source[find(managed, pack_keys(base, task)) < 0])
    kept_back = (waits["priority"] == 0) | (waits["eligible"] > waits["submit"])
    kept_back |= waits["req_nodes"] != seen.queue.node_lists.known("")
    found = waits[outside[kept_back[outside]]]
    key = pack_keys(found["base"], np.where(found["task"] == UNSPLIT, NO_TASK, found["task"]))
    ours = whose_are(found, key, np.ones(len(found), dtype=bool), seen).any()
    return tuple(free_action(row, "it is not managed") for row in found[ours])


@dataclass(slots=True)
class StrayRests:
    """Strays that Slurm refused to free: tried again later, and later still."""

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
