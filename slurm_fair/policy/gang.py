"""Where gangs may lie: pools of nodes, and how many nodes of a pool each gang takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import NodeTable, PartitionTable, Placement, Snapshot
from slurm_fair.model.columns import Bools, Ints

NOWHERE = -1
_BITS = 40  # partitions whose members make up one number; with the regions so far it stays below 2^63
Sites: TypeAlias = list[tuple[int, int]]  # (node, GPUs there)


class Gang(NamedTuple):
    """One job as a placer sees it: all of it or nothing. CPUs and memory are those of each node."""

    gpus: int
    pool: int
    nodes: int  # how many
    share: int  # GPUs that each of them must have free
    whole: bool  # bigger than any node: takes nodes that are free altogether
    cpus: int
    memory_mb: int
    wanted: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()

    def over(self, nodes: list[int], sizes: Ints) -> Sites:
        """The gang laid over these nodes: evenly, but whole nodes are filled one after the other."""
        if len(nodes) == 1:
            return [(nodes[0], self.gpus)]
        if not self.whole:
            least, more = divmod(self.gpus, len(nodes))
            return [(node, least + (i < more)) for i, node in enumerate(nodes)]
        sites, left = [], self.gpus
        for node in nodes:
            sites.append((node, min(left, int(sizes[node]))))
            left -= sites[-1][1]
        return sites


@dataclass(frozen=True, slots=True)
class Pools:
    """A pool is one GPU type of one partition; a region is a set of nodes that the same pools share."""

    size: Ints  # configured GPUs of each node
    region: Ints  # of each node, -1 = it cannot start work now
    nodes: NDArray[np.bool_]  # [pool, node], usable ones only
    regions: tuple[tuple[int, ...], ...]  # of each pool
    biggest: Ints  # of each pool: its biggest node, usable or not, so that a shape does not flicker
    types: int
    choices: Ints  # [partition * (types + 1) + type + 1, choice] -> pool, -1 = none

    @classmethod
    def of(cls, snapshot: Snapshot) -> Pools:
        """The pools of all partitions that are up; those of the same tables as the last time are at hand."""
        global _last
        if _last is not None:
            nodes, partitions, types, pools = _last
            if nodes is snapshot.nodes and partitions is snapshot.partitions and types == snapshot.gpu_types:
                return pools
        pools = cls._made(snapshot)
        _last = snapshot.nodes, snapshot.partitions, snapshot.gpu_types, pools
        return pools

    @classmethod
    def _made(cls, snapshot: Snapshot) -> Pools:
        nodes, partitions = snapshot.nodes, snapshot.partitions
        types = len(snapshot.gpu_types)
        region = _regions(snapshot)
        choices = np.full((len(partitions.names) * (types + 1), max(types, 1)), NOWHERE, dtype=np.int64)
        of_type = [nodes.gpu_type == gpu_type for gpu_type in range(types)]
        members: list[Bools] = []
        for partition in partitions.up.nonzero()[0].tolist():
            found = 0
            for gpu_type in range(types):
                inside = partitions.members[partition] & of_type[gpu_type]
                if not np.count_nonzero(inside):
                    continue
                choices[partition * (types + 1) + gpu_type + 1, 0] = len(members)
                choices[partition * (types + 1), found] = len(members)
                found += 1
                members.append(inside)
        inside_all = np.array(members, dtype=bool).reshape(len(members), len(nodes))
        usable = inside_all & nodes.usable
        return cls(
            size=nodes.gpus,
            region=region,
            nodes=usable,
            regions=_regions_of_pools(region, usable),
            biggest=(inside_all * nodes.gpus).max(axis=1, initial=0),
            types=types,
            choices=choices,
        )

    def choices_of(self, partition: Ints, gpu_type: Ints) -> Ints:
        """Pools in which each job may lie, as a [choice, job] table; type -1 = any."""
        pools: Ints = self.choices[partition * (self.types + 1) + gpu_type + 1].T
        return pools

    def neighbourhoods(self) -> Ints:
        """A number for each region; regions that some pool spans together have the same."""
        number = np.arange(int(self.region.max(initial=-1)) + 1)
        for regions in self.regions:
            together = number[list(regions)]
            if len(together):
                number[np.isin(number, together)] = together.min()
        return number


# Tables never change, so pools follow from which ones they are. Only the last ones: a look at the same machines
# often shows the very tables of the look before.
_last: tuple[NodeTable, PartitionTable, tuple[str, ...], Pools] | None = None


def _regions(snapshot: Snapshot) -> Ints:
    """Nodes of one type in the same partitions are one region."""
    nodes, members = snapshot.nodes, snapshot.partitions.members
    region = np.zeros(len(nodes), dtype=np.int64)
    region = _refined(region, nodes.gpu_type)
    for first in range(0, len(members), _BITS):
        some = members[first : first + _BITS].astype(np.int64)
        region = _refined(region, some[0] if len(some) == 1 else (1 << np.arange(len(some))) @ some)
    region[~nodes.usable] = NOWHERE
    return region


def _refined(region: Ints, column: Ints) -> Ints:
    """Regions that differ in this column too; their numbers go up with it."""
    if len(column) < 2 or column.min() == column.max():
        return region
    column = column - column.min()
    finer: Ints = np.unique(column * (int(region.max()) + 1) + region, return_inverse=True)[1]
    return finer


def _regions_of_pools(region: Ints, nodes: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Of each pool; those that few pools share come first, so that the others stay free for the others."""
    count = int(region.max(initial=NOWHERE)) + 1
    regions = [np.bincount(region[mask], minlength=count).nonzero()[0].tolist() for mask in nodes]
    shared = Counter(chain.from_iterable(regions))
    return tuple(tuple(sorted(of_pool, key=lambda each: (shared[each], each))) for of_pool in regions)


@dataclass(frozen=True, slots=True)
class Shapes:
    """How each of some jobs may lie: [choice, job] tables, one row per choice of pool, fewest nodes first."""

    pool: Ints  # -1 = not this way
    count: Ints
    share: Ints
    whole: Bools
    gpus: Ints  # by job, as the rest
    cpus: Ints
    memory_mb: Ints
    wanted: dict[int, tuple[int, ...]]  # nodes, of the few that name some
    barred: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, pools: Pools, snapshot: Snapshot, rows: Ints, gpu_type: Ints | None = None) -> Shapes:
        """Of these rows of the snapshot's jobs; a job is counted along `rows` here.

        `gpu_type` narrows each of these rows to one type (-1 = any that the job itself takes).
        """
        jobs = snapshot.jobs
        named = _nodes_named(snapshot, rows)
        gpus, per_node = jobs.gpus[rows], jobs.gpus_per_node[rows]
        nodes = np.maximum(np.maximum(jobs.nodes[rows], named), 1)
        pool = pools.choices_of(jobs.partition[rows], _narrowed(jobs.gpu_type[rows], gpu_type))
        biggest = np.append(pools.biggest, 0)[pool]
        count, share = nodes, -(-gpus // nodes)
        if np.count_nonzero(per_node):
            share = np.where(per_node > 0, per_node, share)
            count = np.where(per_node > 0, -(-gpus // np.maximum(per_node, 1)), nodes)
        too_big = share > biggest
        # A node without a GPU of the gang would be no part of its place.
        possible = (pool >= 0) & ~too_big & (count >= named) & (gpus >= count)
        whole = too_big
        if np.count_nonzero(too_big):
            whole = too_big & (per_node == 0) & (biggest > 0)
            possible |= (pool >= 0) & whole
        tables = _fewest_nodes_first(
            np.where(possible, pool, NOWHERE),
            np.where(whole, -(-gpus // np.maximum(biggest, 1)), count),
            np.where(whole, biggest, share),
            whole,
        )
        wanted, barred = _nodes_by_job(snapshot.wanted, rows), _nodes_by_job(snapshot.barred, rows)
        return cls(*tables, gpus, jobs.cpus[rows], jobs.memory_mb[rows], wanted, barred)

    def possible(self) -> Bools:
        """Jobs that some pool could take."""
        possible: Bools = self.pool.max(axis=0) >= 0
        return possible

    def ways(self, jobs: Ints) -> list[list[Gang]]:
        """The ways in which each of these jobs may lie."""
        result: list[list[Gang]] = [[] for _ in jobs]
        gpus, cpus, memory_mb = self.gpus[jobs], self.cpus[jobs], self.memory_mb[jobs]
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
            )
            for ways, gang in zip(result, map(Gang, *(column.tolist() for column in columns)), strict=True):
                if gang.pool >= 0:
                    ways.append(gang)
        return self._with_names(jobs, result)

    def _with_names(self, jobs: Ints, result: list[list[Gang]]) -> list[list[Gang]]:
        if not self.wanted and not self.barred:
            return result
        for i, job in enumerate(jobs.tolist()):
            wanted, barred = self.wanted.get(job, ()), self.barred.get(job, ())
            if wanted or barred:
                result[i] = [gang._replace(wanted=wanted, barred=barred) for gang in result[i]]
        return result

    def fitting(self, pools: Pools, free: Ints) -> Bools:
        """Jobs whose GPUs would be found among these free ones, CPUs, memory and named nodes aside."""
        fits: Bools = np.zeros(len(self.gpus), dtype=bool)
        having = _having(pools, free)
        if not having[:, 1].any():
            return fits
        for pool, count, share, whole in zip(self.pool, self.count, self.share, self.whole, strict=True):
            enough = having[pool, np.minimum(share, having.shape[1] - 1)] >= count
            if np.count_nonzero(whole):
                enough = np.where(whole, _wholly_free(pools, free)[pool] >= self.gpus, enough)
            fits |= (pool >= 0) & enough
        return fits


def _narrowed(asked: Ints, gpu_type: Ints | None) -> Ints:
    """What a job itself asks for stands above the type that was chosen for it."""
    return asked if gpu_type is None else np.where(asked >= 0, asked, gpu_type)


def _having(pools: Pools, free: Ints) -> Ints:
    """[pool, f]: nodes of the pool with at least f free GPUs; a last row for no pool."""
    most = int(pools.size.max(initial=0)) + 2
    counts = np.zeros((len(pools.nodes) + 1, most), dtype=np.int64)
    for pool, nodes in enumerate(pools.nodes):
        counts[pool] = np.bincount(np.maximum(free[nodes], 0), minlength=most)
    having: Ints = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    return having


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
    """How many nodes these rows ask for by name."""
    if not len(snapshot.wanted):
        return 0
    named: Ints = np.bincount(snapshot.wanted.row, minlength=len(snapshot.jobs))[rows]
    return named


def _nodes_by_job(named: Placement, rows: Ints) -> dict[int, tuple[int, ...]]:
    if len(named) == 0:
        return {}
    job_of = dict(zip(rows.tolist(), range(len(rows)), strict=True))
    nodes: dict[int, tuple[int, ...]] = {}
    for row, node in zip(named.row.tolist(), named.node.tolist(), strict=True):
        if row in job_of:
            nodes[job_of[row]] = (*nodes.get(job_of[row], ()), node)
    return nodes
