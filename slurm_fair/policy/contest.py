"""Who gets whose GPUs: free ones first, then those of likely losers, then those of jobs that are owed less.

A contested job runs under a lease that is over. Until it is renewed, a job that is owed more may evict it;
it is evicted only when its GPUs are taken, so nobody stops for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.policy.gang import Gang, Pools, Sites
from slurm_fair.policy.placement import Placer
from slurm_fair.policy.room import Amounts, Room
from slurm_fair.policy.view import View


class Contest:
    """Three rooms over the same nodes, each with all that the one before it has.

    free: nobody has it. losers: and what contested jobs hold that are not expected to be renewed.
    all: and what every contested job holds that has not been renewed yet.
    """

    def __init__(
        self, view: View, pools: Pools, placer: Placer, rows: Ints, rank: Ints, loser: Bools
    ) -> None:
        """`rows` are contested jobs, `rank` their places in the order of deservingness."""
        self._placer = placer
        self._sizes = pools.size
        self._rank: list[int] = rank.tolist()
        self._loser: list[bool] = loser.tolist()
        self._open = [True] * len(rows)  # neither renewed nor evicted yet
        self._stakes = _Stakes(view, pools, rows)
        self._hopeless: set[Gang] = set()
        self.evicted: list[int] = []
        spare = (view.spare_gpus, view.spare_cpus, view.spare_memory_mb)
        self.free = Room(pools, *spare)
        self._rooms = [self.free]
        if loser.any():
            self._rooms.append(self._room(pools, loser))
        self._loser_room = self._rooms[-1]
        if not loser.all():
            everyone = np.ones(len(rows), dtype=bool)
            self._rooms.append(self._room(pools, everyone, self._loser_room.gpus))
        usable = pools.region >= 0
        self.left = int(np.maximum(self._rooms[-1].gpus[usable], 0).sum())

    def _room(self, pools: Pools, of: Bools, spared: Ints | None = None) -> Room:
        held = self._stakes.per_node(of, len(pools.size))
        free = (self.free.gpus, self.free.cpus, self.free.memory_mb)
        gpus, cpus, memory_mb = (have + more for have, more in zip(free, held, strict=True))
        return Room(pools, gpus, cpus, memory_mb, spared)

    def clear_debts(self) -> list[int]:
        """Evict where more was promised than is free: an earlier plan gave these GPUs away; returns them."""
        before = len(self.evicted)
        for node in np.flatnonzero((self.free.pools.region >= 0) & (self.free.gpus < 0)).tolist():
            self._make_way(node, (0, 0, 0))
        return self.evicted[before:]

    def is_open(self, contested: int) -> bool:
        """Could it still be renewed?"""
        return self._open[contested]

    def renew(self, contested: int) -> None:
        """From now on nobody may evict it."""
        self._open[contested] = False
        for node, gpus, cpus, memory_mb in self._stakes.of(contested):
            for room in self._rooms[1:]:
                if room is not self._loser_room or self._loser[contested]:
                    room.add(node, -gpus, -cpus, -memory_mb)
            self.left -= gpus

    def place(self, ways: list[Gang], evict: bool = True) -> Sites | None:
        """Lay a gang in one of its ways where it harms least, evicting whom it must; None = fits nowhere."""
        # What did not fit all that may be had will not fit later: it only shrinks.
        ways = [gang for gang in ways if gang not in self._hopeless]
        for room in self._rooms if evict else self._rooms[:1]:
            for gang in ways:
                sites = self._placer(room, gang)
                if sites is not None:
                    self._claim(gang, sites)
                    return sites
        self._hopeless.update(ways)
        return None

    def _claim(self, gang: Gang, sites: Sites) -> None:
        for node, here in sites:
            # Slurm may split a gang over whole nodes in its own way: nobody else gets what is left on them.
            gpus = int(self._sizes[node]) if gang.whole else here
            if not self.free.carries(node, gpus, gang.cpus, gang.memory_mb):
                self._make_way(node, (gpus, gang.cpus, gang.memory_mb))
            for room in self._rooms:
                room.add(node, -gpus, -gang.cpus, -gang.memory_mb)
            self.left -= gpus

    def _make_way(self, node: int, need: Amounts) -> None:
        """Evict likely losers and then those owed least, and none that is not needed."""
        free = self.free.amounts(node)
        missing = (need[0] - free[0], need[1] - free[1], need[2] - free[2])
        for contested in _needed(self._open_on(node), missing):
            self._evict(contested)

    def _open_on(self, node: int) -> list[tuple[int, Amounts]]:
        on_node = [(c, held) for c, held in self._stakes.on(node) if self._open[c]]
        return sorted(on_node, key=lambda stake: (not self._loser[stake[0]], -self._rank[stake[0]]))

    def _evict(self, contested: int) -> None:
        self._open[contested] = False
        self.evicted.append(contested)
        for node, gpus, cpus, memory_mb in self._stakes.of(contested):
            self.free.add(node, gpus, cpus, memory_mb)
            if self._loser_room is not self.free and not self._loser[contested]:
                self._loser_room.add(node, gpus, cpus, memory_mb)


def _needed(stakes: list[tuple[int, Amounts]], missing: Amounts) -> Iterator[int]:
    """The first that together have what is missing, without those that later ones make needless."""
    taken, lacks = [], missing
    for contested, held in stakes:
        if max(lacks) <= 0:
            break
        taken.append((contested, held))
        lacks = (lacks[0] - held[0], lacks[1] - held[1], lacks[2] - held[2])
    for contested, held in reversed(taken):
        without = (lacks[0] + held[0], lacks[1] + held[1], lacks[2] + held[2])
        if max(without) <= 0:
            lacks = without
        else:
            yield contested


class _Stakes:
    """What contested jobs hold on usable nodes, by job and by node."""

    def __init__(self, view: View, pools: Pools, rows: Ints) -> None:
        jobs = view.snapshot.jobs
        contested_of = np.full(len(jobs), -1, dtype=np.int64)
        contested_of[rows] = np.arange(len(rows))
        held = view.lease_places.renumber(contested_of)
        parts = np.maximum(np.bincount(held.row, minlength=len(rows)), 1)
        held = held.take(pools.region[held.node] >= 0)
        self._job = held.row
        job_row = rows[held.row]
        self._node = held.node
        self._held = (
            held.gpus,
            -(-jobs.cpus[job_row] // parts[held.row]),
            -(-jobs.memory_mb[job_row] // parts[held.row]),
        )
        self._first: list[int] = np.searchsorted(held.row, np.arange(len(rows) + 1)).tolist()
        self._list = list(zip(held.node.tolist(), *(column.tolist() for column in self._held), strict=True))
        self._by_node: dict[int, list[int]] = {}
        for at, node in enumerate(held.node.tolist()):
            self._by_node.setdefault(node, []).append(at)
        self._jobs: list[int] = held.row.tolist()

    def of(self, contested: int) -> list[tuple[int, int, int, int]]:
        """(node, GPUs, CPUs, memory) of one job."""
        return self._list[self._first[contested] : self._first[contested + 1]]

    def on(self, node: int) -> Iterator[tuple[int, Amounts]]:
        """(job, (GPUs, CPUs, memory)) on one node."""
        for at in self._by_node.get(node, ()):
            _, gpus, cpus, memory_mb = self._list[at]
            yield self._jobs[at], (gpus, cpus, memory_mb)

    def per_node(self, of: Bools, nodes: int) -> tuple[Ints, Ints, Ints]:
        """GPUs, CPUs and memory that these jobs hold on each node."""
        chosen = of[self._job]
        node = self._node[chosen]
        gpus, cpus, memory_mb = (
            np.bincount(node, weights=column[chosen], minlength=nodes).astype(np.int64)
            for column in self._held
        )
        return gpus, cpus, memory_mb
