"""The jobs of the last hours: among so many a job shares the cluster when its fair finish time is reckoned.

Jobs are counted by the hour of their submission, which is the same however often anybody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from slurm_fair.policy import Floats, View

CAME = "came"  # in memory: jobs by the hour of their submission
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Jobs counted so far: by hour, and the newest submission that was counted, with how many had it."""

    by_hour: Mapping[int, int]
    last: float
    at_last: int
    fresh: bool  # whether this look showed any new one

    @classmethod
    def of(cls, view: View, hours: int) -> Self:
        """Up to this look; no longer ago than so many hours before the newest job."""
        kept = view.memory.get(CAME)
        jobs = view.snapshot.jobs
        # A requeue makes a job's submission new, and it was counted before.
        # Who cannot start takes nothing from the others, so that none shares the cluster with it.
        submit = (
            view.first_submit[view.claims]
            if kept is None
            else jobs.submit[(jobs.restarts == 0) & view.claims]
        )
        last, at_last = (-1.0, 0) if kept is None else (float(kept["last"]), int(kept["at_last"]))
        known = {} if kept is None else dict(zip(kept["hour"], kept["jobs"], strict=True))
        came = submit[(submit > last) & (submit <= view.now)]  # an absurd one would hide all that come later
        more = max(int(np.count_nonzero(submit == last)) - at_last, 0)
        if not len(came) and not more:
            return cls(known, last, at_last, kept is None)
        came = np.append(came, np.full(more, last))
        for hour, count in zip(*np.unique(came // _HOUR, return_counts=True), strict=True):
            known[int(hour)] = known.get(int(hour), 0) + int(count)
        newest = float(came.max())
        at_last = int(np.count_nonzero(came == newest)) + (at_last if newest == last else 0)
        first = newest // _HOUR - hours
        return cls({hour: jobs for hour, jobs in known.items() if hour >= first}, newest, at_last, True)

    def jobs(self, view: View, hours: int) -> int:
        """The jobs of the last hours: those that came then, and older ones that are still there."""
        first = view.now // _HOUR - hours
        older = view.first_submit[view.claims] < first * _HOUR
        return int(np.count_nonzero(older)) + sum(
            jobs for hour, jobs in self.by_hour.items() if hour >= first
        )

    def kept(self, memory: Mapping[str, Any]) -> Mapping[str, Any]:
        """The memory of the next plan; as it was where nobody came."""
        if not self.fresh:
            return memory
        hours = sorted(self.by_hour)
        counts = [self.by_hour[hour] for hour in hours]
        return {**memory, CAME: {"last": self.last, "at_last": self.at_last, "hour": hours, "jobs": counts}}


def stretched(view: View, crowd: Floats, run_seconds: Floats, stretch: float) -> Floats:
    """Seconds from each job's submission until it would end if so many shared the GPUs evenly."""
    factor = np.maximum(1.0, crowd / max(view.snapshot.total_gpus, 1))
    seconds: Floats = stretch * factor * run_seconds
    return seconds
