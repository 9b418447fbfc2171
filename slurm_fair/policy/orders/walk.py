"""One walk down an order of deservingness: each job renewed, placed or passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from slurm_fair.model import JobTable
from slurm_fair.model.columns import Bools, Ints, absent
from slurm_fair.model.ids import label
from slurm_fair.model.once import once
from slurm_fair.policy.packing.contest import Contest
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.rivals import NoRivals
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View

# Jobs looked at together: small enough that what cannot be granted any more costs next to nothing.
STRETCH = 2048
_FIRST_PART = 32
_SHORT = 64


class ListedTwice(ValueError):
    """An order lists a job more than once: its GPUs would be given out more than once."""


def refuse_twice(view: View, order: Ints) -> None:
    """ListedTwice where an order does that."""
    if len(order) < 2:
        return
    times = np.bincount(order)
    row = int(times.argmax())
    if times[row] > 1:
        job = label(int(view.snapshot.jobs.key[row]))
        raise ListedTwice(f"the order lists job {job} (row {row}) {times[row]} times")


class Candidates:
    """The jobs that a round is about: waiting ones, and running ones whose lease is over."""

    def __init__(
        self, jobs: JobTable, rows: Ints, contested: Ints, asking: Ints, shapes: Shapes, runs: int
    ) -> None:
        self._jobs = jobs
        self.rows = rows  # of the snapshot's jobs; "job" below counts along these
        self.contested = contested  # place among the contested jobs, -1 = it waits
        self.asking = asking  # place among those that `shapes` speaks of, -1 = it asks for no place
        self.shapes = shapes
        self.runs = runs  # how many of them are contested

    @once
    def tenant(self) -> Ints:
        tenant: Ints = self._jobs.tenant[self.rows]
        return tenant

    @once
    def gpus(self) -> Ints:
        gpus: Ints = self._jobs.gpus[self.rows]
        return gpus

    def ways(self, jobs: Ints) -> Sequence[Sequence[Gang]]:
        """In which each of these may lie; none of those that ask for no place."""
        asking = self.asking[jobs]
        if not self.runs:
            return self.shapes.ways(asking)
        ways = iter(self.shapes.ways(asking[asking >= 0]))
        return [next(ways) if asks else () for asks in (asking >= 0).tolist()]

    def fitting(self, pools: Pools, free: Ints) -> Bools:
        """Those whose GPUs would be found among these free ones."""
        fits = np.zeros(len(self.rows), dtype=bool)
        asks = self.asking >= 0
        fits[asks] = self.shapes.fitting(pools, free)[self.asking[asks]]
        return fits


def with_unlisted(view: View, contested: Ints, order: Ints, asking: Ints) -> tuple[Ints, Ints, Ints]:
    """The order, then the contested rows that are not in it; of each its number among these, and what it asks."""
    unlisted = contested[~view.flags(order)[contested]]
    rows = np.concatenate((order, unlisted))
    of_contest = view.flags(contested)[rows]
    numbers = of_contest.cumsum() * of_contest - 1
    return rows, numbers, np.concatenate((asking, absent(len(unlisted))))


def stretches(count: int) -> Iterator[Ints]:
    """So many jobs in growing parts: what is behind the last GPUs is not looked at."""
    first, size = 0, _SHORT
    while first < count:
        yield np.arange(first, min(first + size, count))
        first, size = first + size, min(2 * size, STRETCH)


class Walk:
    """What came of the candidates so far."""

    def __init__(self, candidates: Candidates, pools: Pools, contest: Contest | NoRivals) -> None:
        self.candidates, self.pools, self.contest = candidates, pools, contest
        self.granted: dict[int, Sites] = {}  # by job
        self.misfits: list[int] = []
        self._skipped: set[int] = set()  # tenants

    def strict(self, order: Ints) -> None:
        """Algorithm 1: a tenant whose next gang does not fit gets no more gangs placed in this round.

        Its own running jobs are still renewed when their turn comes: renewing needs no place to be found, and a
        gang that cannot start would otherwise cost its tenant the GPUs that it has. After the last job that waits
        nobody could take theirs any more.
        """
        if self.candidates.runs:
            last = (self.candidates.contested[order] < 0).nonzero()[0][-1:]
            order = order[: int(last[0]) + 1] if len(last) else order[:0]
        for first in range(0, len(order), STRETCH):
            if self.contest.left <= 0:
                return
            self._stretch(order[first : first + STRETCH])

    def _stretch(self, jobs: Ints) -> None:
        """In growing parts: a gang is worked out only for jobs whose tenant is not skipped by then."""
        size, contested = _FIRST_PART, self.candidates.contested
        while len(jobs):
            if self.misfits:
                jobs = jobs[(contested[jobs] >= 0) | ~self.skipped(jobs)]
            self._part(jobs[:size])
            jobs, size = jobs[size:], 2 * size

    def _part(self, jobs: Ints) -> None:
        contest, skipped, candidates = self.contest, self._skipped, self.candidates
        contested = candidates.contested[jobs]
        ways_of_next = iter(candidates.shapes.ways(candidates.asking[jobs[contested < 0]]))
        tenants = candidates.tenant[jobs].tolist()
        for job, number, tenant in zip(jobs.tolist(), contested.tolist(), tenants, strict=True):
            if number >= 0:
                if contest.is_open(number):
                    contest.renew(number)
                continue
            ways = next(ways_of_next)
            if tenant not in skipped:
                sites = contest.place(ways)
                if sites is None:
                    skipped.add(tenant)
                    self.misfits.append(job)
                else:
                    self.granted[job] = sites

    def skipped(self, jobs: Ints) -> Bools:
        """Which of these jobs are of tenants that get no more gangs placed."""
        out = np.zeros(int(self.candidates.tenant.max(initial=-1)) + 1, dtype=bool)
        out[list(self._skipped)] = True
        of_skipped: Bools = out[self.candidates.tenant[jobs]]
        return of_skipped

    def fill(self, order: Ints) -> list[int]:
        """Work conservation: whoever fits what nobody has, in order; returns the jobs granted."""
        filled = []
        for first in range(0, len(order), STRETCH):
            fits = self.fitting()
            jobs = order[first : first + STRETCH]
            if not np.count_nonzero(fits):
                break
            jobs = jobs[fits[jobs]]
            ways_of_each = self.candidates.shapes.ways(self.candidates.asking[jobs])
            for job, ways in zip(jobs.tolist(), ways_of_each, strict=True):
                sites = self.contest.place(ways, evict=False)
                if sites is not None:
                    self.granted[job] = sites
                    filled.append(job)
        return filled

    def fitting(self) -> Bools:
        """Candidates whose GPUs are free now."""
        return self.candidates.fitting(self.pools, self.contest.free.gpus)
