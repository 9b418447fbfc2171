"""Servers that look alike, counted: so many of a kind with so many GPUs free, and groups of adjacent ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Ints
from slurm_fair.solve.places.problem import PlacesProblem
from slurm_fair.solve.places.ways import Ways
from slurm_fair.solve.places.windows import Layer, Pieces, levels_of

_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Windows:
    """One window for each way and each group in which it has one, with all that it takes from others."""

    level: Ints  # [window]
    piece: Ints  # [window] the first piece of its level that looks so
    offset: Ints  # [window]
    servers: Ints  # [window]
    way: Ints  # [window]
    group: Ints  # [window]
    rest: Ints  # [window] the node of its last server once the window is taken
    node: tuple[Ints, Ints]  # window and node of each server that it takes
    hold: tuple[Ints, Ints]  # window and group of each group that it makes useless, its own among them


@dataclass(frozen=True, slots=True)
class Fleet:
    """The servers of a problem by likeness. A node is a kind of server with a number of GPUs free."""

    ways: Ways  # with the columns that can be had
    used: Ints  # [row] servers with something free
    pieces: tuple[Pieces, ...]
    most: int  # GPUs free on one server
    servers: Ints  # [node] how many
    arc_from: Ints  # [arc] a server of this node ...
    arc_way: Ints  # [arc] ... gives the GPUs of this way, all on it
    windows: Windows
    groups: Ints  # [group] how many

    @classmethod
    def of(cls, problem: PlacesProblem) -> Fleet:
        """The servers of a problem."""
        ways = Ways.of(problem)
        used, pieces, levels = levels_of(problem, ways)
        most = int(problem.free.max(initial=0))
        nodes = problem.kinds * (most + 1)
        servers = np.bincount(problem.kind[used] * (most + 1) + problem.free[used], minlength=nodes)
        arc_from, arc_way = _arcs(ways, servers, most)
        windows, groups = _windows(problem, ways, used, (pieces, levels))
        possible = np.zeros(len(ways), dtype=bool)
        possible[arc_way] = possible[windows.way] = True
        return cls(ways.without(possible), used, pieces, most, servers, arc_from, arc_way, windows, groups)

    @property
    def arc_to(self) -> Ints:
        """The node of the server afterwards."""
        return self.arc_from - self.ways.gpus[self.arc_way]


def _arcs(ways: Ways, servers: Ints, most: int) -> tuple[Ints, Ints]:
    """Every way on one server, from every number of free GPUs that a server of its kind can come to."""
    highest = np.where(servers.reshape(-1, most + 1) > 0, np.arange(most + 1), 0).max(axis=1, initial=0)
    way = np.repeat(np.flatnonzero(~ways.several), most)
    free = np.tile(np.arange(1, most + 1), len(way) // most if most else 0)
    fits = (ways.gpus[way] <= free) & (free <= highest[ways.kind[way]])
    return (ways.kind[way] * (most + 1) + free)[fits], way[fits]


def _windows(
    problem: PlacesProblem, ways: Ways, used: Ints, cut: tuple[tuple[Pieces, ...], tuple[Layer, ...]]
) -> tuple[Windows, Ints]:
    """The windows of all levels in one table, and how often their groups are there."""
    pieces, levels = cut
    high = 1 + int(problem.free.max(initial=0))
    level = np.repeat(np.arange(1, len(levels) + 1), [len(each.way) for each in levels])
    piece, offset, servers, way, first, look = (
        np.concatenate([_NONE, *columns])
        for columns in zip(
            (_NONE,) * 6,
            *(
                (e.piece, e.offset, e.servers, e.way, e.pieces.first[e.piece], e.pieces.likeness[e.piece])
                for e in levels
            ),
            strict=True,
        )
    )
    window, row = spans(first + offset, servers)
    free = problem.free[used[row]]
    rest = np.bincount(window, weights=free, minlength=len(way)).astype(np.int64) - ways.gpus[way]
    groups = _Groups.of(pieces, level, look)
    node = (window, ways.kind[way][window] * high + free)
    table = Windows(
        level,
        piece,
        offset,
        servers,
        way,
        groups.own,
        ways.kind[way] * high + rest,
        node,
        groups.held(pieces, level[window], window, row),
    )
    return table, groups.many


def spans(first: Ints, many: Ints) -> tuple[Ints, Ints]:
    """Every row of spans that begin at `first` and are so long, and the span that it belongs to."""
    span = np.repeat(np.arange(len(many)), many)
    return span, first[span] + np.arange(len(span)) - (np.cumsum(many) - many)[span]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups that have windows of their own: a number for each level and likeness."""

    number: tuple[Ints, ...]  # [level][likeness] -1 = none of its own
    own: Ints  # [window]
    many: Ints  # [group] pieces that look so

    @classmethod
    def of(cls, pieces: tuple[Pieces, ...], level: Ints, look: Ints) -> _Groups:
        """The groups of windows by level and likeness."""
        own, number, many = np.zeros(len(level), dtype=np.int64), [], [_NONE]
        count = 0
        for at, each in enumerate(pieces):
            mine = level == at
            found, place = np.unique(look[mine], return_inverse=True)
            own[mine] = count + place
            numbers = np.full(1 + int(each.likeness.max(initial=-1)), -1)
            numbers[found] = count + np.arange(len(found))
            number.append(numbers)
            many.append(np.bincount(each.likeness, minlength=len(numbers))[found])
            count += len(found)
        return cls(tuple(number), own, np.concatenate(many))

    def held(self, pieces: tuple[Pieces, ...], level: Ints, window: Ints, row: Ints) -> tuple[Ints, Ints]:
        """The groups of their own and of lower levels that windows touch, one entry a piece."""
        holder, group = [_NONE], [_NONE]
        for at, each in enumerate(pieces):
            if not at:
                continue
            mine = level >= at
            piece = np.searchsorted(each.first, row[mine], side="right") - 1
            pair = np.unique(window[mine] * (1 + len(each.first)) + piece)
            number = self.number[at][each.likeness[pair % (1 + len(each.first))]]
            holder.append(pair[number >= 0] // (1 + len(each.first)))
            group.append(number[number >= 0])
        return np.concatenate(holder), np.concatenate(group)
