"""The longest time that one gang stands first in the order of a policy without getting its GPUs."""

from __future__ import annotations

from slurm_fair.model import Standing, TickRecord, Verdict
from slurm_fair.policy.reserve import first_in_order


class FirstGang:
    """Follows the ticks of a simulation. A gang that is no longer first, or has its GPUs, begins anew."""

    def __init__(self, least_gpus: int) -> None:
        self.least_gpus = least_gpus  # a smaller gang is not followed
        self.longest_s = 0.0
        self._key = -1
        self._since = 0.0

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        key = self._first(tick)
        if self._key >= 0:
            self.longest_s = max(self.longest_s, tick.time - self._since)
        if key != self._key:
            self._key, self._since = key, tick.time

    def _first(self, tick: TickRecord) -> int:
        """The job that goes first of those that wait, if it is such a gang; else -1."""
        plan, jobs = tick.plan, tick.snapshot.jobs
        waits = (plan.verdict == Verdict.WAIT.code).nonzero()[0]
        if jobs.gpus[waits].max(initial=0) < self.least_gpus:  # the ranks cost more than this
            return -1
        place = first_in_order(plan, waits)
        row = waits[place]
        return int(jobs.key[row]) if place >= 0 and jobs.gpus[row] >= self.least_gpus else -1
