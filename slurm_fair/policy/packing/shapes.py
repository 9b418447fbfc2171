"""The shapes in which gangs may lie: the pools, and the number of nodes in each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Placement, Snapshot
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.policy.packing.gang import NOWHERE, Gang, Pools, enough

_FEW = 32  # jobs whose shapes are sooner looked up one by one than worked out together
_MOST_MET = 4096  # shapes that are remembered


class Shapes(ABC):
    """The ways in which each of some jobs may lie; jobs are numbered as they were asked about."""

    __slots__ = ()

    @staticmethod
    def of(
        pools: Pools, snapshot: Snapshot, rows: Ints, gpu_type: Ints | None = None, *, spread: bool = False
    ) -> Shapes:
        """Shapes of these rows of the snapshot's jobs; those of a few are looked up among what was met before.

        `gpu_type` narrows each of these rows to one type (-1 = any that the job itself takes). With `spread` each
        job that asks for no number of nodes may also lie on more of them than it needs.
        """
        if len(rows) > _FEW or len(snapshot.wanted) or len(snapshot.barred):
            return _Table.together(pools, snapshot, rows, gpu_type, spread)
        return _Met.one_by_one(pools, snapshot, rows, gpu_type, spread)

    @abstractmethod
    def possible(self) -> Bools:
        """Jobs that some pool could take."""

    @abstractmethod
    def first_pool(self) -> Ints:
        """The pool in which each would lie first, -1 = none."""

    @abstractmethod
    def ways(self, jobs: Ints) -> Sequence[Sequence[Gang]]:
        """The ways in which each of these jobs may lie, those that spread it last."""

    @abstractmethod
    def ways_of(self, job: int) -> Sequence[Gang]:
        """The ways of one of them."""

    @abstractmethod
    def fitting(self, pools: Pools, free: Ints) -> Bools:
        """Jobs whose GPUs would be found among these free ones, CPUs, memory and named nodes aside."""


@dataclass(frozen=True, slots=True)
class _Met(Shapes):
    """Shapes of a few jobs; those of jobs that are alike are worked out once."""

    each: list[tuple[Gang, ...]]

    @classmethod
    def one_by_one(
        cls, pools: Pools, snapshot: Snapshot, rows: Ints, gpu_type: Ints | None, spread: bool
    ) -> _Met:
        """The ways of each; what makes them up is all that a shape is."""
        runs = _runs_on(pools, snapshot)
        jobs, met, each = snapshot.jobs, pools.met, []
        narrowed = jobs.gpu_type if gpu_type is None else _narrowed(jobs.gpu_type[rows], gpu_type)
        for at, row in enumerate(rows.tolist()):
            like = (
                jobs.partition.item(row),
                narrowed.item(row if gpu_type is None else at),
                jobs.gpus.item(row),
                jobs.nodes.item(row),
                jobs.gpus_per_node.item(row),
                jobs.cpus.item(row),
                jobs.memory_mb.item(row),
                jobs.most_nodes.item(row),
                spread,
                *(() if runs is None else runs[row].tolist()),
            )
            ways = met.get(like)
            if ways is None:
                alone = slice(at, at + 1)
                chosen = None if gpu_type is None else gpu_type[alone]
                table = _Table.together(pools, snapshot, rows[alone], chosen, spread)
                ways = tuple(table.ways(np.zeros(1, dtype=np.int64))[0])
                if len(met) >= _MOST_MET:
                    met.clear()
                met[like] = ways
            each.append(ways)
        return cls(each)

    def possible(self) -> Bools:
        return np.array([len(ways) > 0 for ways in self.each], dtype=bool)

    def first_pool(self) -> Ints:
        return np.array([ways[0].pool if ways else NOWHERE for ways in self.each], dtype=np.int64)

    def ways(self, jobs: Ints) -> Sequence[Sequence[Gang]]:
        return [self.each[job] for job in jobs.tolist()]

    def ways_of(self, job: int) -> Sequence[Gang]:
        return self.each[job]

    def fitting(self, pools: Pools, free: Ints) -> Bools:
        most = free.max(initial=0)  # what asks for more of one node need not be looked at
        fits = {
            ways: any((gang.whole or gang.share <= most) and enough(pools, free, gang) for gang in ways)
            for ways in set(self.each)
        }
        return np.array([fits[ways] for ways in self.each], dtype=bool)


@dataclass(frozen=True, slots=True)
class _Table(Shapes):
    """Shapes of many jobs: [choice, job] tables, one row per choice of pool, fewest nodes first."""

    pool: Ints  # -1 = not this way
    count: Ints
    share: Ints
    whole: Bools
    gpus: Ints  # by job, as the rest
    cpus: Ints
    memory_mb: Ints
    most: Ints  # nodes, 0 = as many as it takes
    splits_freely: Bools  # its user left to Slurm how its GPUs lie on its nodes
    spread: Bools  # may lie on more nodes than it needs, however its GPUs split
    wanted: dict[int, tuple[int, ...]]  # nodes, of the few that name some
    barred: dict[int, tuple[int, ...]]

    @classmethod
    def together(
        cls, pools: Pools, snapshot: Snapshot, rows: Ints, gpu_type: Ints | None, spread: bool
    ) -> _Table:
        """All at once, in few calls."""
        jobs, runs = snapshot.jobs, _runs_on(pools, snapshot)
        named = _nodes_named(snapshot, rows)
        gpus, per_node = jobs.gpus[rows], jobs.gpus_per_node[rows]
        asked = jobs.nodes[rows]
        nodes = np.maximum(np.maximum(asked, named), 1)
        pool = pools.choices_of(jobs.partition[rows], _narrowed(jobs.gpu_type[rows], gpu_type))
        biggest = np.append(pools.biggest, 0)[pool]
        count, share = nodes, gpus if nodes.max(initial=1) == 1 else -(-gpus // nodes)
        if np.count_nonzero(per_node):
            share = np.where(per_node > 0, per_node, share)
            count = np.where(per_node > 0, -(-gpus // np.maximum(per_node, 1)), nodes)
        too_big = share > biggest
        there, most = pool >= 0, jobs.most_nodes[rows]
        if runs is not None:
            there &= runs[rows[None, :], pools.type_of[pool]]
        # A node without a GPU of the gang would be no part of its place.
        possible = there & ~too_big & (count >= named) & (gpus >= count)
        whole, least, each = too_big, np.broadcast_to(count, pool.shape), np.broadcast_to(share, pool.shape)
        if np.count_nonzero(too_big):
            whole = too_big & (per_node == 0) & (biggest > 0)
            possible |= there & whole
            least = np.where(whole, -(-gpus // np.maximum(biggest, 1)), count)
            each = np.where(whole, biggest, share)
        if np.count_nonzero(most):
            possible &= (most == 0) | (least <= most)
        tables = _fewest_nodes_first(np.where(possible, pool, NOWHERE), least, each, whole)
        freely = per_node == 0
        loose = (
            freely & (gpus > 1) & (asked <= 1) & (most != 1) if spread else np.zeros(len(rows), dtype=bool)
        )
        wanted, barred = _nodes_by_job(snapshot.wanted, rows), _nodes_by_job(snapshot.barred, rows)
        return cls(*tables, gpus, jobs.cpus[rows], jobs.memory_mb[rows], most, freely, loose, wanted, barred)

    def possible(self) -> Bools:
        possible: Bools = self.pool.max(axis=0) >= 0
        return possible

    def first_pool(self) -> Ints:
        first: Ints = self.pool[0]
        return first

    def ways(self, jobs: Ints) -> list[list[Gang]]:
        result: list[list[Gang]] = [[] for _ in jobs]
        gpus, cpus, memory_mb, most = self.gpus[jobs], self.cpus[jobs], self.memory_mb[jobs], self.most[jobs]
        for pool, count, share, whole in zip(self.pool, self.count, self.share, self.whole, strict=True):
            nodes = np.maximum(count[jobs], 1)
            columns = (
                gpus,
                pool[jobs],
                nodes,
                share[jobs],
                whole[jobs],
                -(-cpus // nodes),
                -(-memory_mb // nodes),
                most,
                self.splits_freely[jobs] & ~whole[jobs] & (nodes > 1),
            )
            for ways, gang in zip(result, map(Gang, *(column.tolist() for column in columns)), strict=True):
                if gang.pool >= 0:
                    ways.append(gang)
        for i in np.flatnonzero(self.spread[jobs]).tolist():
            result[i] += [_spread(gang) for gang in result[i]]
        return self._with_names(jobs, result)

    def ways_of(self, job: int) -> Sequence[Gang]:
        if self.wanted or self.barred or self.spread.item(job):
            return self.ways(np.array([job]))[0]
        ways = []
        for pool, count, share, whole in zip(self.pool, self.count, self.share, self.whole, strict=True):
            if pool.item(job) >= 0:
                nodes, is_whole = max(count.item(job), 1), whole.item(job)
                ways.append(
                    Gang(
                        self.gpus.item(job),
                        pool.item(job),
                        nodes,
                        share.item(job),
                        is_whole,
                        -(-self.cpus.item(job) // nodes),
                        -(-self.memory_mb.item(job) // nodes),
                        self.most.item(job),
                        self.splits_freely.item(job) and not is_whole and nodes > 1,
                    )
                )
        return ways

    def _with_names(self, jobs: Ints, result: list[list[Gang]]) -> list[list[Gang]]:
        if not self.wanted and not self.barred:
            return result
        for i, job in enumerate(jobs.tolist()):
            wanted, barred = self.wanted.get(job, ()), self.barred.get(job, ())
            if wanted or barred:
                result[i] = [gang._replace(wanted=wanted, barred=barred) for gang in result[i]]
        return result

    def fitting(self, pools: Pools, free: Ints) -> Bools:
        fits: Bools = np.zeros(len(self.gpus), dtype=bool)
        having = _having(pools, free)
        if not having[:, 1].any():
            return fits
        for pool, count, share, whole in zip(self.pool, self.count, self.share, self.whole, strict=True):
            enough = having[pool, np.minimum(share, having.shape[1] - 1)] >= count
            if np.count_nonzero(whole):
                enough = np.where(whole, _wholly_free(pools, free)[pool] >= self.gpus, enough)
            if np.count_nonzero(self.spread):
                enough = enough | (self.spread & (_most_free(pools, free, pool, self.most) >= self.gpus))
            fits |= (pool >= 0) & enough
        return fits


def _spread(gang: Gang) -> Gang:
    """The same gang over more nodes: one GPU or more on each of them."""
    return gang._replace(nodes=1 if gang.whole else gang.nodes, share=1, whole=False, spread=True)


def _runs_on(pools: Pools, snapshot: Snapshot) -> Bools | None:
    """[job, type]: whether it runs there at all, which a speed of 0 denies; None where it is no question."""
    if pools.types < 2 or snapshot.told is None:
        return None
    return snapshot.told.rate > 0


def _narrowed(asked: Ints, gpu_type: Ints | None) -> Ints:
    """The chosen type of each job; the type that a job itself asks for stands above it."""
    return asked if gpu_type is None else np.where(asked >= 0, asked, gpu_type)


def _having(pools: Pools, free: Ints) -> Ints:
    """[pool, f]: nodes of the pool with at least f free GPUs; a last row for no pool."""
    most = int(pools.size.max(initial=0)) + 2
    counts = np.zeros((len(pools.nodes) + 1, most), dtype=np.int64)
    for pool, nodes in enumerate(pools.nodes):
        counts[pool] = np.bincount(np.maximum(free[nodes], 0), minlength=most)
    return counts[:, ::-1].cumsum(axis=1)[:, ::-1]


def _most_free(pools: Pools, free: Ints, pool: Ints, most: Ints) -> Ints:
    """Free GPUs of each job's pool, or of so many of its nodes as it may lie on: those that have most."""
    here = np.where(pools.nodes, np.maximum(free, 0), 0)
    sums = np.cumsum(-np.sort(-here, axis=1), axis=1)
    sums = np.vstack([sums, np.zeros((1, sums.shape[1]), dtype=np.int64)])
    count = np.where(most > 0, np.minimum(most, sums.shape[1]), sums.shape[1])
    found: Ints = sums[pool, count - 1]
    return found


def _wholly_free(pools: Pools, free: Ints) -> Ints:
    """GPUs of the pool's nodes that are free altogether; a last one for no pool."""
    idle = np.where((free == pools.size) & (free > 0), free, 0)
    return np.append((pools.nodes * idle).sum(axis=1), 0)


def _fewest_nodes_first(pool: Ints, count: Ints, share: Ints, whole: Bools) -> tuple[Ints, Ints, Ints, Bools]:
    if len(pool) < 2:
        return pool, count, share, whole
    order = np.argsort(np.where(pool >= 0, count, np.iinfo(np.int64).max), axis=0, kind="stable")
    return (
        np.take_along_axis(pool, order, axis=0),
        np.take_along_axis(count, order, axis=0),
        np.take_along_axis(share, order, axis=0),
        np.take_along_axis(whole, order, axis=0),
    )


def _nodes_named(snapshot: Snapshot, rows: Ints) -> Ints | int:
    """The number of nodes that these rows ask for by name."""
    if not len(snapshot.wanted):
        return 0
    return np.bincount(snapshot.wanted.row, minlength=len(snapshot.jobs))[rows]


def _nodes_by_job(named: Placement, rows: Ints) -> dict[int, tuple[int, ...]]:
    if len(named) == 0:
        return {}
    job_of = dict(zip(rows.tolist(), range(len(rows)), strict=True))
    nodes: dict[int, tuple[int, ...]] = {}
    for row, node in zip(named.row.tolist(), named.node.tolist(), strict=True):
        if row in job_of:
            nodes[job_of[row]] = (*nodes.get(job_of[row], ()), node)
    return nodes
