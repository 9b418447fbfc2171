"""Competitors of an ordered walk: `Rivals` (their leases are over; they may be evicted or move) or `NoRivals`."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.policy.packing.contest import Contest
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import Placer
from slurm_fair.policy.packing.room import Room
from slurm_fair.policy.view import View


class Rivals(Contest):
    """Jobs whose lease is over, some of which may be evicted."""

    def leave(self, contested: int) -> None:
        """The job moves to other nodes: the GPUs that it had are free."""
        if self.is_open(contested):
            self._evict(contested)


class NoRivals:
    """No competitors: one room, nobody to evict, and far less to prepare."""

    def __init__(self, view: View, pools: Pools, place: Placer) -> None:
        self._placer, self._pools = place, pools
        self.free = self.all = Room(pools, view.spare_gpus, view.spare_cpus, view.spare_memory_mb)
        self.left = view.free_in_all
        self.evicted: list[int] = []
        self._hopeless: set[Gang] = set()

    def clear_debts(self) -> list[int]:
        """Nobody could pay them."""
        return []

    def is_open(self, contested: int) -> bool:
        return False

    def renew(self, contested: int) -> None: ...

    def leave(self, contested: int) -> None: ...

    def place(self, ways: Sequence[Gang], evict: bool = True) -> Sites | None:
        """Lay a gang in one of its ways; None = fits nowhere."""
        for gang in ways:
            sites = None if gang in self._hopeless else self._placer(self.free, gang)
            if sites is not None:
                return self._claimed(gang, sites)
        self._hopeless.update(ways)
        return None

    def _claimed(self, gang: Gang, sites: Sites) -> Sites:
        claimed = gang.claims(sites, self._pools.size_of, self.free.gpus_of)
        for node, gpus in claimed:
            self.free.add(node, -gpus, -gang.cpus, -gang.memory_mb)
            self.left -= gpus
        return sites if gang.whole else claimed
