"""The contest for GPUs: a gang takes free ones first, then those of likely losers, then those of jobs owed less.

A contested job runs under a lease that is over. Until it is renewed, a job that is owed more may evict it;
it is evicted only when its GPUs are taken, so nobody stops for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from slurm_fair.model import Placement
from slurm_fair.model.columns import Bools, Ints, ranks
from slurm_fair.model.once import once
from slurm_fair.model.sizes import shares
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import Placer
from slurm_fair.policy.packing.room import Amounts, Loss, Room
from slurm_fair.policy.view import View

Stake: TypeAlias = tuple[int, Amounts]


class Contest:
    """Three rooms over the same nodes. Each has all GPUs of the room before it (one room where nothing is added).

    `free` holds GPUs that nobody has. `likely` adds GPUs of contested jobs that are not expected to be renewed.
    `all` adds GPUs of every contested job that has not been renewed yet.
    """

    def __init__(
        self, view: View, pools: Pools, placer: Placer, rows: Ints, rank: Ints, loser: Bools
    ) -> None:
        """`rows` are contested jobs, `rank` their places in the order, `loser` those likely to be evicted."""
        self._view, self._placer, self._pools = view, placer, pools
        self._rank, self._losers = rank, loser
        self._loser: list[bool] = loser.tolist()
        self._open = [True] * len(rows)  # neither renewed nor evicted yet
        self._stakes = _Stakes(view, pools, rows, rank, loser)
        self._hopeless: dict[bool, set[Gang]] = {True: set(), False: set()}  # evicting allowed or not
        self._left = 0
        self.evicted: list[int] = []

    @once
    def free(self) -> Room:
        view = self._view
        return Room(self._pools, view.spare_gpus, view.spare_cpus, view.spare_memory_mb)

    @once
    def _rooms(self) -> list[Room]:
        """Made before the first GPUs change hands; in many rounds none do."""
        rooms = [self.free]
        losers = self._loser.count(True)
        if losers:
            rooms.append(self._room(self._losers))
        if losers < len(self._losers):
            everyone = np.ones(len(self._losers), dtype=bool)
            loss = Loss(rooms[-1].gpus, self._stakes.least_per_node(self._rank))
            rooms.append(self._room(everyone, loss))
        self._left = int(np.maximum(rooms[-1].gpus, 0).sum())  # a debt on one node takes nothing from others
        return rooms

    def _room(self, of: Bools, loss: Loss | None = None) -> Room:
        held = self._stakes.per_node(of)
        free = (self.free.gpus, self.free.cpus, self.free.memory_mb)
        gpus, cpus, memory_mb = (have + more for have, more in zip(free, held, strict=True))
        return Room(self._pools, gpus, cpus, memory_mb, loss)

    @once
    def likely(self) -> Room:
        """Free ones and those of likely losers."""
        return self._rooms[1 if True in self._loser else 0]

    @once
    def _held_in(self) -> tuple[list[Room], list[Room]]:
        """Rooms that have what a likely loser holds, and those that have what another holds."""
        rooms = self._rooms[1:]
        return rooms, [room for room in rooms if room is not self.likely]

    @property
    def all(self) -> Room:
        """The room with every GPU that may still be had."""
        return self._rooms[-1]

    @property
    def left(self) -> int:
        """GPUs that may still be had."""
        return self._left if self._rooms else 0

    def clear_debts(self) -> list[int]:
        """Evict where more was promised than is free: an earlier plan gave these GPUs away; returns them."""
        before = len(self.evicted)
        if not self._open:
            return []
        for node in indebted(self._view, self._pools):
            _, cpus, memory_mb = self.free.amounts(node)
            self._make_way(node, (0, cpus, memory_mb))
        return self.evicted[before:]

    def is_open(self, contested: int) -> bool:
        """True if it is neither renewed nor evicted yet."""
        return self._open[contested]

    def protect(self, contested: int) -> None:
        """Renew a job: nobody evicts it from now on."""
        self._open[contested] = False
        with_likely, without = self._held_in
        rooms = with_likely if self._loser[contested] else without
        for node, (gpus, cpus, memory_mb) in self._stakes.of(contested):
            for room in rooms:
                room.add(node, -gpus, -cpus, -memory_mb)
            self._left -= gpus

    def place(self, ways: Sequence[Gang], evict: bool = True) -> Sites | None:
        """Lay a gang in one of its ways where it harms least, and evict who must leave; None = fits nowhere."""
        # What did not fit all that may be had will not fit later: it only shrinks.
        hopeless = self._hopeless[evict]
        if hopeless:
            ways = [gang for gang in ways if gang not in hopeless]
        for room in self._rooms if evict else self._rooms[:1]:
            for gang in ways:
                sites = self._placer(room, gang)
                if sites is not None:
                    return self._claimed(gang, sites)
        hopeless.update(ways)
        return None

    def _claimed(self, gang: Gang, sites: Sites) -> Sites:
        """Its place from now on, as Slurm will split it; a spread gang takes all that it may come to have."""
        sizes, in_order = self._pools.size_of, sites
        if gang.poured:  # what comes free where most is missing may do for the others of its nodes
            in_order = sorted(sites, key=lambda site: self.free.gpus_of(site[0]) - site[1])
        for node, here in in_order:
            if gang.poured and self._pours(gang, sites):
                break
            gpus = sizes[node] if gang.whole else here
            if not self.free.carries(node, gpus, gang.cpus, gang.memory_mb):
                self._make_way(node, (gpus, gang.cpus, gang.memory_mb))
        taken = gang.taken(sites, sizes, self.free.gpus_of)
        for node, gpus in taken:
            for room in self._rooms:
                room.add(node, -gpus, -gang.cpus, -gang.memory_mb)
            self._left -= gpus
        return sites if gang.whole else taken

    def _pours(self, gang: Gang, sites: Sites) -> bool:
        """True if its nodes have enough together, each of them one GPU at least."""
        each = all(self.free.carries(node, 1, gang.cpus, gang.memory_mb) for node, _ in sites)
        return each and sum(self.free.gpus_of(node) for node, _ in sites) >= gang.gpus

    def _make_way(self, node: int, need: Amounts) -> None:
        """Evict likely losers and then those owed least, and none that is not needed."""
        free = self.free.amounts(node)
        gpus, cpus, memory_mb = need[0] - free[0], need[1] - free[1], need[2] - free[2]
        victims = []
        for stake in self._stakes.on(node):
            if self._open[stake[0]]:
                victims.append(stake)
                held = stake[1]
                gpus, cpus, memory_mb = gpus - held[0], cpus - held[1], memory_mb - held[2]
                if gpus <= 0 and cpus <= 0 and memory_mb <= 0:
                    break
        if len(victims) > 1:
            victims = _needed(victims, (-gpus, -cpus, -memory_mb))
        for contested, _ in victims:
            self._evict(contested)

    def leave(self, contested: int) -> None:
        """Free the GPUs of a job that goes elsewhere."""
        if self.is_open(contested):
            self._evict(contested)

    def take_back(self, contested: int) -> None:
        """Keep where it is a job that left and found no other place."""
        self.evicted.remove(contested)
        for node, (gpus, cpus, memory_mb) in self._stakes.of(contested):
            for room in self._rooms:
                room.add(node, -gpus, -cpus, -memory_mb)
            self._left -= gpus

    def _evict(self, contested: int) -> None:
        self._open[contested] = False
        self.evicted.append(contested)
        rooms = [self.free, self.likely]
        if self._loser[contested] or self.likely is self.free:
            rooms = [self.free]
        for node, (gpus, cpus, memory_mb) in self._stakes.of(contested):
            for room in rooms:
                room.add(node, gpus, cpus, memory_mb)


class UncontestedRoom:
    """A contest without contested jobs: one room, nobody to evict, and far less to prepare."""

    def __init__(self, view: View, pools: Pools, place: Placer) -> None:
        self._placer, self._pools = place, pools
        self.free = self.all = Room(pools, view.spare_gpus, view.spare_cpus, view.spare_memory_mb)
        self.left = view.free_in_all
        self.evicted: list[int] = []
        self._hopeless: set[Gang] = set()

    def clear_debts(self) -> list[int]:
        """Evict nobody: no contested job could pay."""
        return []

    def is_open(self, contested: int) -> bool:
        return False

    def protect(self, contested: int) -> None: ...

    def leave(self, contested: int) -> None: ...

    def take_back(self, contested: int) -> None: ...

    def place(self, ways: Sequence[Gang], evict: bool = True) -> Sites | None:
        """Lay a gang in one of its ways; None = fits nowhere."""
        for gang in ways:
            sites = None if gang in self._hopeless else self._placer(self.free, gang)
            if sites is not None:
                return self._claimed(gang, sites)
        self._hopeless.update(ways)
        return None

    def _claimed(self, gang: Gang, sites: Sites) -> Sites:
        taken = gang.taken(sites, self._pools.size_of, self.free.gpus_of)
        for node, gpus in taken:
            self.free.add(node, -gpus, -gang.cpus, -gang.memory_mb)
            self.left -= gpus
        return sites if gang.whole else taken


AnyContest: TypeAlias = Contest | UncontestedRoom


def _needed(stakes: list[Stake], to_spare: Amounts) -> list[Stake]:
    """The stakes without which too little would be left; the later ones, which stop last, are let off first."""
    needed = []
    gpus, cpus, memory_mb = to_spare
    for stake in reversed(stakes):
        held = stake[1]
        if gpus >= held[0] and cpus >= held[1] and memory_mb >= held[2]:
            gpus, cpus, memory_mb = gpus - held[0], cpus - held[1], memory_mb - held[2]
        else:
            needed.append(stake)
    return needed


class _Stakes:
    """Holdings of contested jobs on usable nodes, by job and by node."""

    def __init__(self, view: View, pools: Pools, rows: Ints, rank: Ints, loser: Bools) -> None:
        """`rank` and `loser` order the jobs of each node: the first is evicted first."""
        self._view, self._pools = view, pools
        self._rows, self._rank, self._loser = rows, rank, loser

    @once
    def _held(self) -> tuple[Placement, tuple[Ints, Ints, Ints]]:
        """Placement by contested job and usable node, and the GPUs, CPUs and memory there."""
        jobs, rows = self._view.snapshot.jobs, self._rows
        held = self._view.lease_places.renumber(ranks(len(jobs), rows))
        of_use = self._pools.usable[held.node]
        # By the sizes that they hold: a plan may be asking other sizes of elastic ones in this view.
        gpus, cpus, memory_mb = shares(held, rows[held.row], jobs, self._view.snapshot.sizes)
        return held.take(of_use), (gpus[of_use], cpus[of_use], memory_mb[of_use])

    @once
    def _amounts(self) -> list[Amounts]:
        return list(zip(*(column.tolist() for column in self._held[1]), strict=True))

    @once
    def _of_job(self) -> tuple[list[Stake], list[int]]:
        """All stakes in the order of the jobs, and where those of each job begin."""
        held = self._held[0]
        stakes = list(zip(held.node.tolist(), self._amounts, strict=True))
        return stakes, _first(held.row, len(self._rows))

    @once
    def _on_node(self) -> tuple[list[Stake], list[int]]:
        """All stakes in the order of the nodes, and where those of each node begin."""
        held, amounts = self._held[0], self._amounts
        # Likely losers first, then those owed least.
        by_node = np.lexsort((-self._rank[held.row], ~self._loser[held.row], held.node))
        jobs = held.row[by_node].tolist()
        stakes = [(job, amounts[at]) for job, at in zip(jobs, by_node.tolist(), strict=True)]
        return stakes, _first(held.node[by_node], len(self._pools.region))

    def of(self, contested: int) -> list[Stake]:
        """(node, what of it) of one job."""
        stakes, first = self._of_job
        return stakes[first[contested] : first[contested + 1]]

    def on(self, node: int) -> list[Stake]:
        """(job, what it has) on one node."""
        stakes, first = self._on_node
        return stakes[first[node] : first[node + 1]]

    def per_node(self, of: Bools) -> tuple[Ints, Ints, Ints]:
        """GPUs, CPUs and memory that these jobs hold on each node."""
        held, columns = self._held
        chosen = of[held.row].nonzero()[0]
        node, nodes = held.node[chosen], len(self._pools.region)
        gpus, cpus, memory_mb = (
            np.bincount(node, weights=column[chosen], minlength=nodes).astype(np.int64) for column in columns
        )
        return gpus, cpus, memory_mb

    def least_per_node(self, of_job: Ints) -> Ints:
        """The least of a number of the jobs on each node; more than any where there are none."""
        held = self._held[0]
        least = np.full(len(self._pools.region), of_job.max(initial=-1) + 1, dtype=np.int64)
        np.minimum.at(least, held.node, of_job[held.row])
        return least


def indebted(view: View, pools: Pools) -> list[int]:
    """Usable nodes of which more was promised than is free."""
    owing = view.spare_gpus < 0
    if not np.count_nonzero(owing):
        return []
    return (owing & pools.usable).nonzero()[0].tolist()


def _first(sorted_values: Ints, count: int) -> list[int]:
    """The index at which each value begins, and at which the last one ends."""
    first: list[int] = sorted_values.searchsorted(np.arange(count + 1)).tolist()
    return first
