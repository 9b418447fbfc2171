"""Jobs outside our scope, or no longer in it, that still carry a gate or a node list of ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Action, JobState, Outcome, Result, label, pack_keys
from slurm_fair.model.apiece import one_each_first
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.retries import Growth, Retries
from slurm_fair.slurm.ownership.kept_back import Keepers, record_keys, whose_are, within_reach
from slurm_fair.slurm.ownership.ours_afresh import free_action
from slurm_fair.slurm.reading.queue import begins_later, with_tasks
from slurm_fair.slurm.reading.reread import Which

REST_SECONDS, REST_MOST_SECONDS = 5.0, 3600.0
_GROWTH = Growth(REST_SECONDS, REST_MOST_SECONDS)


def strays(rows: NDArray[np.void], managed: Ints, seen: Keepers) -> tuple[Action, ...]:
    """Acts that free waiting jobs outside the scope, or left alone, that a gate or a mark of ours keeps back.

    They were submitted with our gate by a template or the submit hook, or left the scope since. The first of each
    user comes before the second of any: the guard lets only so many through.
    """
    waits = rows[rows["state"] == JobState.WAITING]
    kept_back = (waits["priority"] == 0) | begins_later(waits)
    kept_back |= waits["req_nodes"] != seen.queue.node_lists.known("")
    waits = waits[kept_back]
    waits = waits[within_reach(waits, seen.marks)]
    source, base, task = with_tasks(waits, seen.queue.task_lists)
    found = waits[np.unique(source[find(managed, pack_keys(base, task)) < 0])]
    ours = found[whose_are(found, record_keys(found), np.ones(len(found), dtype=bool), seen).any()]
    return tuple(free_action(row, "it is not managed") for row in ours[one_each_first(ours["user"])])


@dataclass(slots=True)
class StrayRetries:
    """Strays that Slurm refused to free; each further try comes later, whatever the guard lets through."""

    _retries: Retries[Which] = field(default_factory=Retries)
    _said: dict[Which, str] = field(default_factory=dict)
    _asked_at: float = -math.inf  # when it was asked last

    def without(self, found: Sequence[Action], now: float) -> tuple[Action, ...]:
        """The actions whose time has come; what is no longer found is forgotten."""
        here = {(action.key, action.whole_record): action for action in found}
        if self._asked_at > now:  # the clock was set back: no rest lasts longer by it
            self._retries = self._retries.earlier_by(self._asked_at - now)
        self._asked_at = now
        self._keep(self._retries.only(here))
        later = set(self._retries.resting(now))
        return tuple(action for which, action in here.items() if which not in later)

    def heed(self, outcomes: Iterable[Outcome], now: float) -> list[str]:
        """Note the outcomes of the tries; returns a line for each refusal whose reason is new."""
        by_key = {(outcome.action.key, outcome.action.whole_record): outcome for outcome in outcomes}
        failed = {which: o.detail for which, o in by_key.items() if o.result is not Result.DONE}
        fresh = [which for which, why in failed.items() if self._said.get(which, "") != why]
        self._said |= failed
        self._keep(self._retries.failed(failed, now, _GROWTH).without(by_key.keys() - failed.keys()))
        return [
            f"job {label(key)} is not managed, and what is ours on it cannot be taken away: {failed[key, whole]}"
            for key, whole in fresh
        ]

    def _keep(self, retries: Retries[Which]) -> None:
        self._retries = retries
        self._said = {which: why for which, why in self._said.items() if which in retries.due}
