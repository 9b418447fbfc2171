"""Gangs, and the pools of nodes in which they may lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Snapshot
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.once import kept_with, once
from slurm_fair.model.placement import slurm_fill

NOWHERE = -1
_BITS = 40  # partitions whose members make up one number; with the regions so far it stays below 2^63
Sites: TypeAlias = list[tuple[int, int]]  # (node, GPUs there)


class Gang(NamedTuple):
    """One way in which a job may lie, as a placer sees it: all of it or nothing.

    CPUs and memory are those of each node. They stay so where it is spread: Slurm takes a job's memory, and a
    task's CPUs, of every node.
    """

    gpus: int
    pool: int
    nodes: int  # how many
    share: int  # GPUs that each of them must have free
    whole: bool  # bigger than any node: takes nodes that are free altogether
    cpus: int
    memory_mb: int
    most: int = 0  # no more nodes than this; 0 = as many as it takes
    poured: bool = False  # its user left to Slurm how many of its GPUs lie on each of its nodes
    wanted: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    spread: bool = False  # over any nodes that have free GPUs, `nodes` of them or more

    def taken(self, sites: Sites, sizes: Sequence[int], free: Callable[[int], int]) -> Sites:
        """GPUs of its nodes that nobody else gets: Slurm splits a gang of no fixed split in its own way.

        `sites` is its place, `sizes` and `free` are the GPUs that nodes have at all, and now.
        """
        if self.whole:
            return [(node, sizes[node]) for node, _ in sites]
        if self.spread:
            return [(node, max(here, free(node))) for node, here in sites]
        if self.poured:
            nodes = [node for node, _ in sites]
            return slurm_fill(nodes, map(free, nodes), self.gpus)
        return sites

    def laid_over(self, nodes: list[int], sizes: Ints) -> Sites:
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


@dataclass(frozen=True)
class Pools:
    """A pool is one GPU type of one partition; a region is a set of nodes that the same pools share.

    Made when nodes or partitions change, so what follows from them is kept here: no slots.
    """

    size: Ints  # configured GPUs of each node
    capacity: Ints  # those of them that managed jobs can have now
    region: Ints  # of each node, -1 = it cannot start work now
    nodes: NDArray[np.bool_]  # [pool, node], usable ones only
    regions: tuple[tuple[int, ...], ...]  # of each pool
    type_of: Ints  # GPU type of each pool, and -1 for no pool
    biggest: Ints  # of each pool: its biggest node, usable or not, so that a shape does not flicker
    types: int
    choices: Ints  # [partition * (types + 1) + type + 1, choice] -> pool, -1 = none
    racks: Ints | None  # of each node; None where they are not known, or all nodes are in one

    @classmethod
    def of(cls, snapshot: Snapshot) -> Pools:
        """The pools of all partitions that are up.

        They are kept with the nodes: a look at the same machines often shows the very tables of the look before.
        """
        given = snapshot.partitions, snapshot.racks, snapshot.gpu_types
        return kept_with(snapshot.nodes, "_pools", given, lambda: cls._made(snapshot))

    @classmethod
    def _made(cls, snapshot: Snapshot) -> Pools:
        nodes, partitions = snapshot.nodes, snapshot.partitions
        types = len(snapshot.gpu_types)
        region = _regions(snapshot)
        most = max((len(ways) for ways in partitions.ways), default=1)
        choices = np.full(
            (len(partitions.names) * (types + 1), max(types, 1) * most), NOWHERE, dtype=np.int64
        )
        of_type = [nodes.gpu_type == gpu_type for gpu_type in range(types)]
        members: list[Bools] = []
        type_of: list[int] = []
        for partition in partitions.up.nonzero()[0].tolist():
            found = 0
            for gpu_type in range(types):
                of_this = 0
                for way in partitions.ways_of(partition):
                    inside = way & of_type[gpu_type]
                    if not np.count_nonzero(inside):
                        continue
                    choices[partition * (types + 1) + gpu_type + 1, of_this] = len(members)
                    choices[partition * (types + 1), found] = len(members)
                    found, of_this = found + 1, of_this + 1
                    members.append(inside)
                    type_of.append(gpu_type)
        inside_all = np.array(members, dtype=bool).reshape(len(members), len(nodes))
        usable = inside_all & nodes.usable
        return cls(
            size=nodes.gpus,
            capacity=nodes.capacity,
            region=region,
            nodes=usable,
            regions=_regions_of_pools(region, usable),
            type_of=np.array([*type_of, NOWHERE], dtype=np.int64),
            biggest=(inside_all * nodes.gpus).max(axis=1, initial=0),
            types=types,
            choices=choices,
            racks=_several(snapshot.racks),
        )

    @once
    def met(self) -> dict[tuple[int, ...], tuple[Gang, ...]]:
        """The ways in which gangs met so far may lie, by all that makes up a shape."""
        return {}

    @once
    def usable(self) -> Bools:
        """Nodes that lie in a region."""
        return self.region >= 0

    @once
    def most(self) -> int:
        """GPUs of the biggest node of all."""
        return int(self.size.max(initial=0))

    @once
    def tops(self) -> list[int]:
        """The GPUs that the k-th biggest node of each pool has at least, k = 1, 2, ...; only nodes all ours."""
        own = np.where(self.nodes & (self.capacity == self.size), self.size, 0)
        sizes: list[int] = (-np.sort(-own, axis=1)).min(axis=0, initial=self.most).tolist()
        return sizes if len(own) else []

    @once
    def levels(self) -> Ints:
        """First level of each node's region: one for each number of free GPUs; nodes of no region come last."""
        last = int(self.region.max(initial=NOWHERE)) + 1
        return np.where(self.usable, self.region, last) * (self.most + 1)

    @once
    def levels_of(self) -> list[int]:
        """The same as plain numbers, for those who look at one node at a time."""
        numbers: list[int] = self.levels.tolist()
        return numbers

    @once
    def level_count(self) -> int:
        """The number of regions, with that of no region."""
        return (int(self.region.max(initial=NOWHERE)) + 2) * (self.most + 1)

    @once
    def ladders(self) -> list[list[list[int]]]:
        """[pool][f]: the levels of f free GPUs, in the order of the pool's regions."""
        height = self.most + 1
        return [[[each * height + free for each in of] for free in range(height)] for of in self.regions]

    @once
    def size_of(self) -> list[int]:
        """The sizes as plain numbers."""
        numbers: list[int] = self.size.tolist()
        return numbers

    @once
    def neighbourhood(self) -> Ints:
        """A number for each region; regions that some pool spans together have the same."""
        number = np.arange(int(self.region.max(initial=NOWHERE)) + 1)
        for regions in self.regions:
            together = number[list(regions)]
            if len(together):
                number[np.isin(number, together)] = together.min()
        return number

    def choices_of(self, partition: Ints, gpu_type: Ints) -> Ints:
        """Pools in which each job may lie, as a [choice, job] table; type -1 = any."""
        pools: Ints = self.choices[partition * (self.types + 1) + gpu_type + 1].T
        return pools


def _several(racks: Ints | None) -> Ints | None:
    """Racks that differ: where all are one they say nothing."""
    return racks if racks is not None and len(racks) and racks.min() != racks.max() else None


def _regions(snapshot: Snapshot) -> Ints:
    """Nodes of one type in the same partitions are one region."""
    nodes, members = snapshot.nodes, snapshot.partitions.members
    if snapshot.partitions.ways:
        members = np.concatenate(snapshot.partitions.ways)
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
    """Regions of each pool; those that few pools share come first, so that others stay free for others."""
    count = int(region.max(initial=NOWHERE)) + 1
    regions = [np.bincount(region[mask], minlength=count).nonzero()[0].tolist() for mask in nodes]
    shared = Counter(chain.from_iterable(regions))
    return tuple(tuple(sorted(of_pool, key=lambda each: (shared[each], each))) for of_pool in regions)


def able(pools: Pools, free: Ints, gang: Gang) -> Bools:
    """Nodes, for each row of `free`, that have enough GPUs for a part of the gang."""
    nodes = pools.nodes[gang.pool]
    if gang.barred:
        nodes = nodes.copy()
        nodes[list(gang.barred)] = False
    able: Bools = nodes & ((free == pools.size) & (free > 0) if gang.whole else free >= gang.share)
    return able


def suffice(pools: Pools, free: Ints, able: Bools, gang: Gang) -> Bools:
    """True where these nodes, of which so much is free, are enough for the whole gang."""
    if gang.spread:
        most = np.sort(np.where(able, free, 0), axis=-1)[..., -(gang.most or gang.gpus) :]
        found: Bools = (most.sum(axis=-1) >= gang.gpus) & (able.sum(axis=-1) >= gang.nodes)
        return found
    return able @ pools.size >= gang.gpus if gang.whole else able.sum(axis=-1) >= gang.nodes


def enough(pools: Pools, free: Ints, gang: Gang) -> bool:
    """True if the gang's GPUs are among these free ones."""
    return bool(suffice(pools, free, able(pools, free, gang), gang))
