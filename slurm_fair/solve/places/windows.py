"""The adjacent servers on which spread jobs may lie: the one place that says which configurations there are.

Servers with something free that follow one another in one kind and block are a run. It is cut into disjoint
pairs: idle servers with idle ones first, then neighbours that are left. Two pairs that follow one another are a
group of four, two of these a group of eight, and so on. In each group a way has one window: the first start from
which the fewest servers hold the gang, each but the last filled to its end (Hops 3.6, "each node must be filled
as much as possible"). A way's windows are those in the smallest groups that have any, and of these those with the
least number of servers (3.6, "once there are fewer nodes ... we won't generate configurations with more").

So two windows are disjoint or one group holds the other, and groups that look alike can be counted instead of
named. On idle servers, pairs lose nothing against windows that start anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.solve.places.problem import PlacesProblem
from slurm_fair.solve.places.ways import Ways


@dataclass(frozen=True, slots=True)
class Pieces:
    """One level of the cut: disjoint groups of adjacent servers with something free."""

    first: Ints  # [piece] row among the servers with something free
    end: Ints  # [piece]
    run: Ints  # [piece]
    likeness: Ints  # [piece] equal for pieces that look alike, 0, 1, ...

    def joined_by_two(self, starts: Bools) -> Pieces:
        """The next level: a piece that starts none joins the one before it."""
        at = np.flatnonzero(starts)
        end = self.end[np.append(at[1:], len(starts)) - 1] if len(at) else self.end[:0]
        joined = np.append(at[1:], len(starts)) - at > 1
        second = np.where(joined, self.likeness[np.minimum(at + 1, len(starts) - 1)], -1)
        most = 2 + int(self.likeness.max(initial=0))
        _, likeness = np.unique(self.likeness[at] * most + second, return_inverse=True)
        return Pieces(self.first[at], end, self.run[at], likeness.astype(np.int64))

    def by_two(self) -> Pieces:
        """Pieces joined two and two within their runs, in their order."""
        return self.joined_by_two(_position(self.run) % 2 == 0)


def _position(run: Ints) -> Ints:
    """The place of each row among the neighbouring rows with the same number."""
    new = np.append(True, run[1:] != run[:-1])[: len(run)]
    start = np.flatnonzero(new)
    return np.arange(len(run)) - start[np.cumsum(new) - 1] if len(run) else run


def _servers(problem: PlacesProblem, used: Ints) -> Pieces:
    """The lowest level: each server by itself."""
    far = np.diff(used) != 1
    other = (np.diff(problem.kind[used]) != 0) | (np.diff(problem.block[used]) != 0)
    run = np.cumsum(np.append(False, far | other)[: len(used)])
    look = problem.kind[used] * (1 + problem.free.max(initial=0)) + problem.free[used]
    rows = np.arange(len(used))
    return Pieces(rows, rows + 1, run, np.unique(look, return_inverse=True)[1].astype(np.int64))


def _paired(problem: PlacesProblem, used: Ints, alone: Pieces) -> Pieces:
    """Pairs: idle servers with idle ones first, then those that are left with their neighbours."""
    idle = problem.free[used] == problem.size[used]
    second = _second(alone.run, idle)
    left = ~(second | np.append(second[1:], False)[: len(second)])
    return alone.joined_by_two(~(second | _second(alone.run, left)))


def _second(run: Ints, some: Bools) -> Bools:
    """Every second one of neighbouring rows of a run that are marked."""
    stretch = np.cumsum(np.append(True, (run[1:] != run[:-1]) | (some[1:] != some[:-1]))[: len(run)])
    second: Bools = some & (_position(stretch) % 2 == 1)
    return second


@dataclass(frozen=True, slots=True)
class Layer:
    """Groups of one level and the windows in those that look alike, one of each way."""

    pieces: Pieces
    piece: Ints  # [window] the first piece that looks so
    offset: Ints  # [window] the first server, counted from the piece's
    servers: Ints  # [window]
    way: Ints  # [window]


def levels_of(problem: PlacesProblem, ways: Ways) -> tuple[Ints, tuple[Pieces, ...], tuple[Layer, ...]]:
    """Rows of servers with something free, every level of their cut, and the windows of levels 1, 2, ..."""
    used = np.flatnonzero(problem.free > 0)
    pieces = [_servers(problem, used)]
    levels: list[Layer] = []
    open_ = np.flatnonzero(ways.several)
    while len(open_):
        last = pieces[-1]
        nxt = _paired(problem, used, last) if len(pieces) == 1 else last.by_two()
        if len(nxt.first) == len(last.first) and len(pieces) > 1:
            break
        pieces.append(nxt)
        level = _level(problem, used, ways, nxt, open_)
        levels.append(level)
        open_ = np.setdiff1d(open_, level.way)
    return used, tuple(pieces), tuple(levels)


def _level(problem: PlacesProblem, used: Ints, ways: Ways, pieces: Pieces, open_: Ints) -> Layer:
    """The windows of some ways in one piece of each likeness."""
    _, piece = np.unique(pieces.likeness, return_index=True)
    wide = int((pieces.end - pieces.first).max(initial=0))
    row = pieces.first[piece][:, None] + np.arange(wide)
    inside = row < pieces.end[piece][:, None]
    free = np.where(inside, problem.free[used[np.where(inside, row, 0)]], 0) if len(used) else row
    kind = problem.kind[used[pieces.first[piece]]]
    found = [_windows(free, np.flatnonzero(kind == ways.kind[way]), ways.gpus[way], way) for way in open_]
    look, offset, servers, way = (np.concatenate(each) for each in zip(*found, strict=True))
    return Layer(pieces, piece[look], offset, servers, way)


def _windows(free: Ints, mine: Ints, gpus: int, way: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The windows of one way in some rows of free GPUs: row, offset, number of servers, way."""
    wide = free.shape[1]
    summed = np.concatenate([np.zeros((len(mine), 1), dtype=np.int64), np.cumsum(free[mine], axis=1)], axis=1)
    most = wide + 1
    needed = np.full((len(mine), max(wide, 1)), most)
    for offset in range(wide):
        held = summed[:, offset + 1 :] - summed[:, offset : offset + 1]
        enough = held >= gpus
        count = np.where(enough.any(axis=1), 1 + enough.argmax(axis=1), most)
        needed[:, offset] = np.where(count > 1, count, most)  # on one server it would not be spread
    offset, count = needed.argmin(axis=1), needed.min(axis=1, initial=most)
    kept = (count < most) & (count == count.min(initial=most))
    return mine[kept], offset[kept], count[kept], np.full(int(kept.sum()), way)
