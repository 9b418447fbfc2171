"""One walk down an order of deservingness: each job renewed, placed or passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from slurm_fair.model import JobTable
from slurm_fair.model.columns import Bools, Ints, absent, among
from slurm_fair.model.ids import label
from slurm_fair.model.once import once
from slurm_fair.policy.packing.contest import AnyContest, Contest, UncontestedRoom
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import Placer
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View

# Jobs looked at together: small enough that what cannot be granted any more costs next to nothing.
STRETCH = 2048
SHORT = 64
_FIRST_PART = 32
FEW = 8  # jobs that are sooner looked at than sorted out


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


def with_due_gangs_first(view: View, order: Ints) -> Ints:
    """The order, in which gangs go first for which nodes were set aside that are free now."""
    if not view.reserved or not view.due_gangs.size:
        return order
    first = view.due_gangs[view.flags(order)[view.due_gangs]]
    return np.concatenate((first, order[~view.flags(first)[order]]))


def may_place(view: View, pools: Pools, spread: bool) -> bool:
    """False where no waiting job could be placed, not even if every lease that is over ended.

    It goes by GPUs alone: what a gang needs on one node, of what the best node could give. With `spread` gangs lie
    wherever anything is free.
    """
    jobs, waits = view.snapshot.jobs, view.waiting_rows
    if not waits.size or len(view.snapshot.wanted):
        return bool(waits.size)
    offered = view.free_gpus
    if view.over_rows.size:
        places = view.lease_places
        theirs = view.over[places.row].nonzero()[0]
        offered = offered + np.bincount(places.node[theirs], places.gpus[theirs], len(offered))
    offered, gpus = offered[pools.usable], jobs.gpus[waits]
    least = gpus.min()
    if not offered.size or offered.sum() < least:
        return False
    if spread or offered.max() >= least:  # no gang needs more on one node than it has GPUs
        return True
    per_node, nodes = jobs.gpus_per_node[waits], np.maximum(jobs.nodes[waits], 1)
    share = np.where(per_node > 0, per_node, -(-gpus // nodes)).min()
    # A gang bigger than any node takes nodes that are free altogether, a small one too.
    return bool(offered.max() >= min(share, pools.size[pools.usable].min()))


def placed_alone(view: View, pools: Pools, place: Placer, spread: bool) -> Sites | None:
    """The sites of the only job that waits, on GPUs that nobody has: whatever the order, it gets these.

    None where another waits too, where it would have to evict somebody, or where GPUs are owed to others.
    """
    waits = view.waiting_rows
    if waits.size != 1 or view.owes or view.snapshot.jobs.array_limit.item(waits.item(0)) > 0:
        return None
    ways = Shapes.of(pools, view.snapshot, waits, spread=spread).ways_of(0)
    return UncontestedRoom(view, pools, place).place(ways)


class Candidates:
    """The jobs that a round is about: waiting ones, and running ones whose lease is over."""

    def __init__(
        self, jobs: JobTable, rows: Ints, contest_place: Ints, asking: Ints, shapes: Shapes, runs: int
    ) -> None:
        self._jobs = jobs
        self.rows = rows  # of the snapshot's jobs; "job" below counts along these
        self.contest_place = contest_place  # place among the contested jobs, -1 = it waits
        self.asking = asking  # place among those that `shapes` speaks of, -1 = it asks for no place
        self.shapes = shapes
        self.runs = runs  # how many of them are contested

    @once
    def tenant(self) -> Ints:
        return self._jobs.tenant[self.rows]

    @once
    def gpus(self) -> Ints:
        return self._jobs.gpus[self.rows]

    def ways(self, jobs: Ints) -> Sequence[Sequence[Gang]]:
        """The ways in which each of these may lie; none for those that ask for no place."""
        asking = self.asking[jobs]
        if not self.runs:
            return self.shapes.ways(asking)
        ways = iter(self.shapes.ways(asking[asking >= 0]))
        return [next(ways) if asks else () for asks in (asking >= 0).tolist()]

    def ways_of(self, asking: int) -> Sequence[Gang]:
        """The ways of the one with this place among those that ask; none for -1."""
        return self.shapes.ways_of(asking) if asking >= 0 else ()

    def fitting(self, pools: Pools, free: Ints) -> Bools:
        """True for candidates whose GPUs would be found among these free ones."""
        fits = np.zeros(len(self.rows), dtype=bool)
        asks = self.asking >= 0
        fits[asks] = self.shapes.fitting(pools, free)[self.asking[asks]]
        return fits


def with_unlisted(view: View, contested: Ints, order: Ints, asking: Ints) -> tuple[Ints, Ints, Ints]:
    """The order, then the contested rows that are not in it; each with its number among these and its gang."""
    unlisted = contested[~view.flags(order)[contested]]
    rows = np.concatenate((order, unlisted))
    of_contest = view.flags(contested)[rows]
    numbers = of_contest.cumsum() * of_contest - 1
    return rows, numbers, np.concatenate((asking, absent(len(unlisted))))


def contest_of(
    view: View, pools: Pools, place: Placer, candidates: Candidates, order: Ints, expected: Bools
) -> AnyContest:
    """The contest over the candidates' GPUs; `expected` are those whose lease is likely to be renewed."""
    if not candidates.runs:
        return UncontestedRoom(view, pools, place)
    contested = candidates.contest_place >= 0
    rank = np.full(len(candidates.rows), len(candidates.rows), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Contest(view, pools, place, candidates.rows[contested], rank[contested], ~expected[contested])


def stretches(order: Ints, size: int) -> Iterator[Ints]:
    """The order in growing parts; the first part has so many jobs."""
    while len(order):
        yield order[:size]
        order, size = order[size:], min(2 * size, STRETCH)


class Walk:
    """One walk down an order of candidates, and what came of it so far.

    A job that runs is renewed, if nobody ahead of it took its GPUs. A job that waits is placed. One
    that fits nowhere is passed over, and shuts its lane: nobody behind it in this lane is placed any more. Where
    there are no lanes it is passed over alone.
    """

    def __init__(self, candidates: Candidates, pools: Pools, contest: AnyContest) -> None:
        self.candidates, self.pools, self.contest = candidates, pools, contest
        self.granted: dict[int, Sites] = {}  # by job
        self.misfits: list[int] = []
        self.waits: Bools = candidates.contest_place < 0
        self.changes = self.waits  # jobs that may change what others get
        self._lane: Ints | None = None  # of each job
        self._shut: set[int] = set()  # lanes

    def strict(self, order: Ints) -> None:
        """Algorithm 1: a tenant whose next gang does not fit gets no more gangs placed in this round.

        Its own running jobs are still renewed: renewing needs no place to be found, and a
        gang that cannot start would otherwise cost its tenant the GPUs that it has.
        """
        self.down(order, self.candidates.tenant)

    def down(self, order: Ints, lane: Ints | None = None, first: int = STRETCH) -> None:
        """Renew, place or pass over each job of the order; `lane` is by job.

        The walk ends behind the last job that may change something: nobody takes the GPUs of those who run behind
        it. It also ends when no GPU may be had any more: that is asked before each stretch, of which the first has
        `first` jobs.
        """
        self._lane = lane
        last = self.changes[order].nonzero()[0][-1:]
        for jobs in stretches(order[: last.item() + 1 if last.size else 0], first):
            if self.contest.left <= 0:
                return
            if lane is None:
                self._visit(self._without_misfits(jobs))
            else:
                self._in_open_lanes(jobs)

    def _without_misfits(self, jobs: Ints) -> Ints:
        """The jobs without those that will not fit: a look at one costs far more than this does for all."""
        if len(jobs) <= FEW:
            return jobs
        misfit = self.waits[jobs] & ~self.candidates.fitting(self.pools, self.contest.all.gpus)[jobs]
        self.misfits += jobs[misfit].tolist()
        return jobs[~misfit]

    def _in_open_lanes(self, jobs: Ints) -> None:
        """Walk in growing parts: those whose lane is shut by then are left out of each."""
        size = _FIRST_PART
        while len(jobs):
            if self._shut:
                jobs = jobs[~(self.waits[jobs] & self.skipped(jobs))]
            self._visit(jobs[:size])
            jobs, size = jobs[size:], 2 * size

    def _visit(self, jobs: Ints) -> None:
        """Renew, place or pass over each of these; most are in shut lanes, and nobody asks for their gangs."""
        candidates, shut = self.candidates, self._shut
        lane = jobs if self._lane is None else self._lane[jobs]
        columns = (jobs, self.waits[jobs], lane, candidates.contest_place[jobs], candidates.asking[jobs])
        for job, waits, mine, at, asking in zip(*[column.tolist() for column in columns], strict=True):
            if not waits:
                self.keep_gpus(job, at, candidates.ways_of(asking))
            elif mine not in shut:
                sites = self.place(job, candidates.ways_of(asking))
                if sites is None:
                    shut.add(mine)
                    self.misfits.append(job)
                else:
                    self.granted[job] = sites

    def keep_gpus(self, job: int, contest_place: int, ways: Sequence[Gang]) -> None:
        """Renew the lease of a job that has GPUs: nobody may take them from now on."""
        if self.contest.is_open(contest_place):
            self.contest.protect(contest_place)

    def place(self, job: int, ways: Sequence[Gang], evict: bool = True) -> Sites | None:
        """Lay the gang of a job in one of its ways; None = it fits nowhere."""
        return self.contest.place(ways, evict)

    @property
    def shut(self) -> Ints:
        """Lanes in which nobody is placed any more."""
        return np.array(list(self._shut), dtype=np.int64)

    def skipped(self, jobs: Ints) -> Bools:
        """True for jobs in a lane that is shut."""
        return np.zeros(len(jobs), dtype=bool) if self._lane is None else among(self._lane[jobs], self.shut)

    def fill(self, order: Ints) -> list[int]:
        """Work conservation: whoever fits what nobody has, in order; returns the jobs granted."""
        filled = []
        for jobs in stretches(order, STRETCH):
            fits = self.fitting()
            if not np.count_nonzero(fits):
                break
            jobs, size = jobs[fits[jobs]], _FIRST_PART
            while jobs.size:
                granted = self._filled(jobs[:size])
                filled += granted
                jobs, size = jobs[size:], 2 * size
                if granted and jobs.size:  # mostly that was all that was free
                    jobs = jobs[self.fitting()[jobs]]
        return filled

    def _filled(self, jobs: Ints) -> list[int]:
        """Lay each on what nobody has; those that were laid."""
        laid = []
        for job, ways in zip(jobs.tolist(), self.candidates.ways(jobs), strict=True):
            sites = self.place(job, ways, evict=False)
            if sites is not None:
                self.granted[job] = sites
                laid.append(job)
        return laid

    def fitting(self) -> Bools:
        """Candidates whose GPUs are free now."""
        return self.candidates.fitting(self.pools, self.contest.free.gpus)
