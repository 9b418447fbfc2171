"""Counts become places: windows on groups of neighbours, then each server along the arcs that it takes."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.problem import Picks, PlacesProblem


def lay(problem: PlacesProblem, fleet: Fleet, chosen: Ints, arcs: Ints, windows: Ints) -> Picks:
    """The places of some uses, one a job, in so many arcs and windows as the program has.

    Larger groups first: what they touch is then no longer there for smaller ones, as in the program's rows.
    Then servers with the most free GPUs: an arc leads to fewer, so all that come to a node are there by then.
    """
    picks = Picks.none(problem.jobs)
    waiting = _by_way(fleet, chosen)
    free, touched = problem.free[fleet.used].copy(), np.zeros(len(fleet.used), dtype=bool)
    for window in np.argsort(-fleet.windows.level, kind="stable").tolist():
        if windows[window]:
            rows = _lay_window(fleet, window, int(windows[window]), free, touched)
            _pick(fleet, picks, waiting[fleet.windows.way[window]], rows, int(fleet.windows.servers[window]))
    node = problem.kind[fleet.used] * (fleet.most + 1) + free
    for arc in np.lexsort((fleet.arc_way, -(fleet.arc_from % (fleet.most + 1)))).tolist():
        if not arcs[arc]:
            continue
        way = fleet.arc_way[arc]
        rows = np.flatnonzero(node == fleet.arc_from[arc])[: arcs[arc]]
        node[rows] -= fleet.ways.gpus[way]
        _pick(fleet, picks, waiting[way], rows, 1)
    return picks


def _by_way(fleet: Fleet, chosen: Ints) -> list[list[int]]:
    waiting: list[list[int]] = [[] for _ in range(len(fleet.ways))]
    for use in chosen.tolist():
        waiting[fleet.ways.way[use]].append(use)
    return waiting


def _lay_window(fleet: Fleet, window: int, count: int, free: Ints, touched: Bools) -> Ints:
    """The first rows of so many windows, on the first groups that look so and that none has touched."""
    table, servers = fleet.windows, int(fleet.windows.servers[window])
    pieces = fleet.pieces[table.level[window]]
    open_ = ~np.logical_or.reduceat(touched, pieces.first)
    alike = pieces.likeness == pieces.likeness[table.piece[window]]
    first: Ints = pieces.first[alike & open_][:count] + table.offset[window]
    every = first[:, None] + np.arange(servers)
    touched[every] = True
    free[every] = 0
    free[first + servers - 1] = table.rest[window] % (fleet.most + 1)
    return first


def _pick(fleet: Fleet, picks: Picks, waiting: list[int], rows: Ints, servers: int) -> None:
    """Rows for the first who wait; where nobody does, the program offered more than it needed."""
    uses = waiting[: len(rows)]
    del waiting[: len(rows)]
    jobs = fleet.ways.job[uses]
    picks.column[jobs], picks.servers[jobs] = fleet.ways.columns[uses], servers
    picks.first[jobs] = fleet.used[rows[: len(uses)]]
