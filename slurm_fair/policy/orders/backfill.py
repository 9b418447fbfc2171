"""Backfill: a job that cannot start is reserved its earliest place; others start only where they do not delay it.

EASY reserves for the first job that does not fit, of each partition; conservative for every job that is tested.
Both go by declared run times, in GPUs: CPUs and memory are looked at only for what starts now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from slurm_fair.model import Blocked, Plan, Verdict
from slurm_fair.model.columns import Floats, Ints, ranks
from slurm_fair.model.placement import slurm_fill
from slurm_fair.policy.draft import BLOCKED_REASONS, Draft, placed
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.ordered import Words
from slurm_fair.policy.packing.gang import Gang, Pools, Sites, able, enough, suffice
from slurm_fair.policy.packing.placement import Placer, spreads
from slurm_fair.policy.packing.room import Room
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View

Mode: TypeAlias = Literal["none", "easy", "conservative"]
RESERVED = "it does not fit now: a place is reserved for it"
WOULD_DELAY = "it would delay a job ahead of it, or does not fit now"


@dataclass(frozen=True, slots=True)
class Depth:
    """Bounds on what backfill looks at."""

    mode: Mode = "easy"
    jobs: int = 500  # tested in each plan
    window_seconds: float = 86400.0  # into the future
    resolution_seconds: float = 60.0


def backfilled(
    view: View,
    order: Ints,
    place: Placer,
    depth: Depth,
    score: Floats,
    memory: Mapping[str, Any],
    words: Words,
) -> Plan:
    """The plan for waiting rows in the order of their priority; nobody who runs is stopped."""
    sheet = Draft(view)
    sheet.give_reason(view.waiting_rows, words.waits)
    granted: dict[int, Sites] = {}
    if len(order) and view.snapshot.jobs.gpus[order].min() <= view.free_in_all:
        granted = _walked(view, order, place, depth, sheet, words)
    rows = np.array(list(granted), dtype=np.int64)
    places = placed(rows, list(granted.values()))
    return sheet.finish(places, lambda: ranks(len(score), order), score, memory)


def _walked(
    view: View, order: Ints, place: Placer, depth: Depth, sheet: Draft, words: Words
) -> dict[int, Sites]:
    pools = Pools.of(view.snapshot)
    order = order[: depth.jobs]
    shapes = Shapes.of(pools, view.snapshot, order, spread=spreads(place))
    possible = shapes.possible()
    over = np.zeros(len(order), dtype=bool)
    over[possible] = over_array_limit(view, order[possible])
    sheet.say(order[~possible], Verdict.WAIT, words.nowhere)
    sheet.say(order[over], Verdict.WAIT, BLOCKED_REASONS[Blocked.ARRAY_LIMIT])
    walk = _Walk(view, pools, place, depth, order, shapes)
    walk.go(np.flatnonzero(possible & ~over))
    sheet.say(order[walk.passed], Verdict.WAIT, WOULD_DELAY)
    sheet.say(order[walk.reserved], Verdict.WAIT, RESERVED)
    sheet.say(order[list(walk.granted)], Verdict.GRANT, words.granted)
    return {int(order[job]): sites for job, sites in walk.granted.items()}


class _Walk:
    """One walk down the priorities.

    It is no `Walk` of an order: a job that fits nowhere now may be given a place in time, and what is free for a
    job depends on how long it runs.
    """

    def __init__(
        self, view: View, pools: Pools, place: Placer, depth: Depth, order: Ints, shapes: Shapes
    ) -> None:
        self._view, self._pools, self._place, self._depth = view, pools, place, depth
        self._shapes = shapes
        self._partition: list[int] = view.snapshot.jobs.partition[order].tolist()
        self._seconds: list[float] = np.maximum(view.told.left_seconds[order], 1.0).tolist()
        free = np.where(pools.region >= 0, view.spare_gpus, 0)
        self._room = Room(pools, free, view.spare_cpus, view.spare_memory_mb)
        self._forecast: FreeGpus | None = None  # made when somebody is reserved a place
        self._failed: dict[Gang, float] = {}  # gangs that find no place now, if they run so long or longer
        self._heads: set[int] = set()  # partitions whose first job that does not fit was met
        self.granted: dict[int, Sites] = {}
        self.reserved: list[int] = []
        self.passed: list[int] = []

    def go(self, jobs: Ints) -> None:
        """Start, reserve or pass over each in order."""
        last = int(jobs[-1]) if len(jobs) else -1
        fits: list[bool] = self._shapes.fitting(
            self._pools, self._room.gpus
        ).tolist()  # later on it only shrinks
        for job, ways in zip(jobs.tolist(), self._shapes.ways(jobs), strict=True):
            sites = self._start(job, ways) if fits[job] and not self._shut(job) else None
            if sites is not None:
                self.granted[job] = sites
            elif self._shut(job) or not self._reserves(job):
                self.passed.append(job)
            else:
                self._heads.add(self._partition[job])
                self.reserved.append(job)
                if job != last and self._depth.mode != "none":
                    self._reserve(job, ways)

    def _shut(self, job: int) -> bool:
        return self._depth.mode == "none" and self._partition[job] in self._heads

    def _reserves(self, job: int) -> bool:
        return self._depth.mode == "conservative" or self._partition[job] not in self._heads

    def _start(self, job: int, ways: Sequence[Gang]) -> Sites | None:
        seconds = self._seconds[job]
        ways = [gang for gang in ways if not seconds >= self._failed.get(gang, np.nan)]
        room = self._room
        if ways and self._forecast is not None:
            free = np.minimum(room.gpus, self._forecast.throughout(seconds))
            fit = [gang for gang in ways if enough(self._pools, free, gang)]
            room = Room(self._pools, free, room.cpus, room.memory_mb) if fit else room
        else:
            fit = ways
        for gang in fit:
            sites = self._place(room, gang)
            if sites is not None:
                return self._taken(gang, sites, seconds)
        # What is free only shrinks, and the longer a job runs the less of it is free throughout.
        self._failed.update(dict.fromkeys(ways, 0.0 if self._forecast is None else seconds))
        return None

    def _taken(self, gang: Gang, sites: Sites, seconds: float) -> Sites:
        """Take a gang's place out of the room and the forecast; returns all that it may come to have."""
        taken = gang.taken(sites, self._pools.size_of, self._room.gpus.item)
        for node, gpus in taken:
            self._room.add(node, -gpus, -gang.cpus, -gang.memory_mb)
        if self._forecast is not None:
            self._forecast.take(0, seconds, taken)
        return sites if gang.whole else taken

    def _reserve(self, job: int, ways: Sequence[Gang]) -> None:
        if self._forecast is None:
            self._forecast = FreeGpus(self._view, self._pools, self._depth, self._seconds, self.granted)
        self._forecast.reserve(ways, self._seconds[job])


class FreeGpus:
    """GPUs of each node that come free, by when: row 0 is now."""

    def __init__(
        self,
        view: View,
        pools: Pools,
        depth: Depth,
        seconds: list[float],
        granted: Mapping[int, Sites],
    ) -> None:
        """`granted` start now, each for its `seconds`."""
        held, step = view.holdings, depth.resolution_seconds
        self._step, self._window = step, depth.window_seconds
        left = np.maximum(view.told.left_seconds, 1.0)[held.row]
        begun = [(seconds[job], node, gpus) for job, sites in granted.items() for node, gpus in sites]
        left = np.append(left, [each[0] for each in begun])
        node = np.append(held.node, np.array([each[1] for each in begun], dtype=np.int64))
        gpus = np.append(held.gpus, np.array([each[2] for each in begun], dtype=np.int64))
        soon = left <= depth.window_seconds
        ends = np.ceil(left[soon] / step) * step
        self._at, row = np.unique(np.append(0.0, ends), return_inverse=True)  # seconds from now
        self._pools = pools
        self._free = np.zeros((len(self._at), len(pools.size)), dtype=np.int64)
        np.add.at(self._free, (row[1:], node[soon]), gpus[soon])
        self._free[0] += view.spare_gpus - np.bincount(
            node[len(held) :], gpus[len(held) :], len(pools.size)
        ).astype(np.int64)
        self._free = np.where(pools.region >= 0, self._free.cumsum(axis=0), 0)
        self._throughout: dict[int, Ints] = {}

    def throughout(self, seconds: float) -> Ints:
        """GPUs of each node that are free from now on for so long."""
        last = self._until(0.0, seconds)
        if last not in self._throughout:
            self._throughout[last] = self._free[:last].min(axis=0)
        return self._throughout[last]

    def take(self, first: int, seconds: float, sites: Sites) -> None:
        """These GPUs are in use from that row on, for so long."""
        last = self._row_at(float(self._at[first]) + seconds)
        for node, gpus in sites:
            self._free[first:last, node] -= gpus
        self._throughout.clear()

    def _row_at(self, at: float) -> int:
        """The row that begins then, made where there is none; an end beyond the window is beyond all rows."""
        at = float(np.ceil(at / self._step) * self._step) if at <= self._window else np.inf
        row = int(np.searchsorted(self._at, at, side="left"))
        if np.isfinite(at) and (row == len(self._at) or self._at[row] != at):
            self._at = np.insert(self._at, row, at)
            self._free = np.insert(self._free, row, self._free[row - 1], axis=0)
        return row

    def reserve(self, ways: Sequence[Gang], seconds: float) -> None:
        """The earliest place for a gang; none where declared run times do not show one."""
        found = [(at, gang) for gang in ways if (at := self._earliest(gang, seconds)) is not None]
        if not found:
            return
        first, gang = min(found, key=lambda each: each[0])
        least = self._least(first, seconds)
        sites = self._sites(gang, least)
        self.take(first, seconds, gang.taken(sites, self._pools.size_of, least.item))

    def _until(self, start: float, seconds: float) -> int:
        return int(np.searchsorted(self._at, start + seconds, side="left"))

    def _least(self, first: int, seconds: float) -> Ints:
        last = max(self._until(float(self._at[first]), seconds), first + 1)
        least: Ints = self._free[first:last].min(axis=0)
        return least

    def _earliest(self, gang: Gang, seconds: float) -> int | None:
        nodes = able(self._pools, self._free, gang)
        for first in np.flatnonzero(suffice(self._pools, self._free, nodes, gang)).tolist():
            if enough(self._pools, self._least(first, seconds), gang):
                return int(first)
        return None

    def _sites(self, gang: Gang, free: Ints) -> Sites:
        """The sites that leave as few GPUs beside them as may be; nodes asked for by name come first."""
        nodes = np.flatnonzero(able(self._pools, free, gang))
        size = self._pools.size
        cost = -size[nodes] if gang.whole else -free[nodes] if gang.spread else free[nodes]
        nodes = nodes[np.lexsort((cost, ~np.isin(nodes, gang.wanted)))]
        if gang.spread:
            count = int(np.searchsorted(np.cumsum(free[nodes]), gang.gpus)) + 1
            nodes = np.sort(nodes[: max(count, gang.nodes, len(gang.wanted))])
            return slurm_fill(nodes.tolist(), free[nodes].tolist(), gang.gpus)
        if gang.whole:
            nodes = nodes[: int(np.searchsorted(np.cumsum(size[nodes]), gang.gpus)) + 1]
        return gang.laid_over(nodes[: len(nodes) if gang.whole else gang.nodes].tolist(), size)
