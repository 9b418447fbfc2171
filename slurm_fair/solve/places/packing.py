"""Jobs packed one by one: the answer that needs no solver, and the end of every other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.prices import best_uses
from slurm_fair.solve.places.problem import Picks, PlacesProblem


def packed(problem: PlacesProblem, fleet: Fleet, way: Floats) -> Picks:
    """Everybody's best at these prices as far as there is room, then whoever still fits."""
    chosen, surplus = best_uses(fleet, way)
    return packed_with(problem, fleet, way, chosen[surplus > 0])


def packed_with(problem: PlacesProblem, fleet: Fleet, way: Floats, chosen: Ints) -> Picks:
    """The chosen uses, one a job, as far as there is room; then the other jobs' by what they pay above the price.

    Of a kind that is over-full, those that pay least for a GPU are left out; the largest are laid first, each
    on the server that it leaves the least on (best fit, decreasing).
    """
    room = _Room.of(problem, fleet)
    ways = fleet.ways
    paid = ways.value - way[ways.way]
    chosen = _within(fleet, chosen, paid)
    size = ways.gpus[ways.way]
    for use in chosen[np.lexsort((chosen, -paid[chosen], -size[chosen], ~ways.several[ways.way[chosen]]))]:
        room.give(int(use))
    _fill(fleet, room, paid)
    return room.picks


def _within(fleet: Fleet, chosen: Ints, paid: Floats) -> Ints:
    """The uses that the GPUs of their kind suffice for, those that pay most for a GPU first."""
    ways = fleet.ways
    way = ways.way[chosen]
    kind, gpus = ways.kind[way], ways.gpus[way]
    order = np.lexsort((chosen, -paid[chosen] / gpus, kind))
    there = fleet.servers.reshape(-1, fleet.most + 1) @ np.arange(fleet.most + 1)
    total = np.cumsum(gpus[order])
    first = np.searchsorted(kind[order], kind[order])
    before = (total - gpus[order])[first] if len(order) else total
    return chosen[order[total - before <= there[kind[order]]]]


def _fill(fleet: Fleet, room: _Room, paid: Floats) -> None:
    """All other jobs in the order of what they pay, where there is room."""
    ways = fleet.ways
    waits = room.picks.column[ways.job] < 0
    waits &= room.may_fit()[ways.way]
    rest = np.flatnonzero(waits)
    for use in rest[np.argsort(-paid[rest], kind="stable")].tolist():
        if room.picks.column[ways.job[use]] < 0:
            room.give(use)


@dataclass(slots=True)
class _Room:
    """Servers with free GPUs while a plan is made."""

    problem: PlacesProblem
    fleet: Fleet
    free: list[int]  # [row]
    with_free: list[list[int]]  # [node] rows, some of which have less by now
    windows: list[list[tuple[int, int]]]  # [way] first row and number of servers, the next one last
    picks: Picks

    @classmethod
    def of(cls, problem: PlacesProblem, fleet: Fleet) -> _Room:
        """The room of a fleet on which nothing is placed yet."""
        node = problem.kind[fleet.used] * (fleet.most + 1) + problem.free[fleet.used]
        order = np.argsort(-node, kind="stable")[::-1]
        with_free: list[list[int]] = [[] for _ in range(len(fleet.servers))]
        for row, at in zip(order.tolist(), node[order].tolist(), strict=True):
            with_free[at].append(row)
        free = problem.free[fleet.used].tolist()
        return cls(problem, fleet, free, with_free, _by_waste(fleet), Picks.none(problem.jobs))

    def may_fit(self) -> Bools:
        """[way] False where there is no room for sure."""
        free, ways = np.array(self.free, dtype=np.int64), self.fleet.ways
        kind = self.problem.kind[self.fleet.used]
        most = np.zeros(1 + int(max(kind.max(initial=0), ways.kind.max(initial=0))), dtype=np.int64)
        np.maximum.at(most, kind, free)
        spare = np.array([len(each) > 0 for each in self.windows], dtype=bool)
        return np.where(ways.several, spare, ways.gpus <= most[ways.kind])

    def give(self, use: int) -> bool:
        """Lay one use if there is room."""
        ways = self.fleet.ways
        way = int(ways.way[use])
        if ways.several[way]:
            row, servers = self._window(way)
        else:
            row, servers = self._server(int(ways.kind[way]), int(ways.gpus[way])), 1
        if row < 0:
            return False
        job, picks = ways.job[use], self.picks
        picks.column[job], picks.first[job] = ways.columns[use], self.fleet.used[row]
        picks.servers[job] = servers
        return True

    def _server(self, kind: int, gpus: int) -> int:
        """The server that has the least left, now with less; -1 = none."""
        base = kind * (self.fleet.most + 1)
        for free in range(gpus, self.fleet.most + 1):
            rows = self.with_free[base + free]
            while rows:
                row = rows.pop()
                if self.free[row] == free:
                    self._leave(row, base, free - gpus)
                    return row
        return -1

    def _window(self, way: int) -> tuple[int, int]:
        """The window whose last server has the least left; its servers are full then."""
        windows, gpus = self.windows[way], int(self.fleet.ways.gpus[way])
        free, used = self.problem.free, self.fleet.used
        while windows:
            row, servers = windows.pop()
            rows = range(row, row + servers)
            if any(self.free[at] != free[used[at]] for at in rows):
                continue
            rest = sum(self.free[at] for at in rows) - gpus
            for at in rows:
                self.free[at] = 0
            base = int(self.fleet.ways.kind[way]) * (self.fleet.most + 1)
            self._leave(row + servers - 1, base, rest)
            return row, servers
        return -1, 0

    def _leave(self, row: int, base: int, free: int) -> None:
        self.free[row] = free
        if free:
            self.with_free[base + free].append(row)


def _by_waste(fleet: Fleet) -> list[list[tuple[int, int]]]:
    """The windows of every way, those that leave much on their last server first: they are taken from the end."""
    table = fleet.windows
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(fleet.ways))]
    for window in np.argsort(-(table.rest % (fleet.most + 1)), kind="stable").tolist():
        pieces = fleet.pieces[table.level[window]]
        alike = np.flatnonzero(pieces.likeness == pieces.likeness[table.piece[window]])
        rows = (pieces.first[alike] + table.offset[window])[::-1].tolist()
        found[table.way[window]] += [(row, int(table.servers[window])) for row in rows]
    return found
