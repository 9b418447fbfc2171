"""One walk down an order of deservingness: each job renewed, placed or passed over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.policy.contest import Contest
from slurm_fair.policy.gang import Pools, Shapes, Sites

# Jobs looked at together: small enough that what cannot be granted any more costs next to nothing.
STRETCH = 2048
_FIRST_PART = 32


@dataclass(frozen=True, slots=True)
class Candidates:
    """The jobs that a round is about: waiting ones, and running ones whose lease is over."""

    rows: Ints  # of the snapshot's jobs, ascending; "job" below counts along these
    tenant: Ints
    gpus: Ints
    contested: Ints  # place among the contested jobs, -1 = it waits
    shapes: Shapes


class Walk:
    """What came of the candidates so far."""

    def __init__(self, candidates: Candidates, pools: Pools, contest: Contest) -> None:
        self.candidates, self.pools, self.contest = candidates, pools, contest
        self.granted: dict[int, Sites] = {}  # by job
        self.misfits: list[int] = []
        self.skipped: Bools = np.zeros(int(candidates.tenant.max(initial=-1)) + 1, dtype=bool)

    def strict(self, order: Ints) -> None:
        """Algorithm 1: a tenant whose next gang does not fit gets no more gangs placed in this round.

        Its own running jobs are still renewed when their turn comes: renewing needs no place to be found, and a
        gang that cannot start would otherwise cost its tenant the GPUs that it has. After the last job that waits
        nobody could take theirs any more.
        """
        waits = (self.candidates.contested[order] < 0).nonzero()[0]
        order = order[: waits[-1] + 1] if len(waits) else order[:0]
        for first in range(0, len(order), STRETCH):
            if self.contest.left <= 0:
                return
            self._stretch(order[first : first + STRETCH])

    def _stretch(self, jobs: Ints) -> None:
        """In growing parts: a gang is worked out only for jobs whose tenant is not skipped by then."""
        size, contested, tenant = _FIRST_PART, self.candidates.contested, self.candidates.tenant
        while len(jobs):
            if self.misfits:
                jobs = jobs[(contested[jobs] >= 0) | ~self.skipped[tenant[jobs]]]
            self._part(jobs[:size])
            jobs, size = jobs[size:], 2 * size

    def _part(self, jobs: Ints) -> None:
        contest, skipped = self.contest, self.skipped
        contested = self.candidates.contested[jobs]
        ways_of_next = iter(self.candidates.shapes.ways(jobs[contested < 0]))
        tenants = self.candidates.tenant[jobs].tolist()
        for job, number, tenant in zip(jobs.tolist(), contested.tolist(), tenants, strict=True):
            if number >= 0:
                if contest.is_open(number):
                    contest.renew(number)
                continue
            ways = next(ways_of_next)
            if not skipped[tenant]:
                sites = contest.place(ways)
                if sites is None:
                    skipped[tenant] = True
                    self.misfits.append(job)
                else:
                    self.granted[job] = sites

    def fill(self, order: Ints) -> list[int]:
        """Work conservation: whoever fits what nobody has, in order; returns the jobs granted."""
        filled = []
        for first in range(0, len(order), STRETCH):
            fits = self.fitting()
            jobs = order[first : first + STRETCH]
            if not np.count_nonzero(fits):
                break
            jobs = jobs[fits[jobs]]
            for job, ways in zip(jobs.tolist(), self.candidates.shapes.ways(jobs), strict=True):
                sites = self.contest.place(ways, evict=False)
                if sites is not None:
                    self.granted[job] = sites
                    filled.append(job)
        return filled

    def fitting(self) -> Bools:
        """Candidates whose GPUs are free now."""
        return self.candidates.shapes.fitting(self.pools, self.contest.free.gpus)
