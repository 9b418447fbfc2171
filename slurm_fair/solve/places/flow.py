"""The integer program over counts of servers: jobs choose ways, servers flow from free GPUs to fewer.

    max   sum v x                                                          (eq. 11)
    (job)    sum_{k,r} x_{ikr} <= 1                                        (eq. 12)
    (way)    sum_i x_{ikr} <= arcs and windows that offer r GPUs of kind k
    (node)   arcs that leave (k, c) - arcs that come to it + servers taken by windows - rests of windows <= n_{kc}
    (group)  windows that need a group of neighbours <= groups that look so

The last three are eq. 13 for servers that cannot be told apart: an arc is one server with c GPUs free that gives r
and has c - r left. The size does not grow with the number of servers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.solve.linear import MatrixEntries, Problem
from slurm_fair.solve.places.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Flow:
    """The program for some uses; others are taken for given."""

    fleet: Fleet
    uses: Ints  # [x] the uses that may be chosen
    given: Ints  # [way] uses that are taken for given

    @classmethod
    def of(cls, fleet: Fleet, uses: Ints | None = None, given: Ints | None = None) -> Flow:
        """All uses, or some beside those that are given."""
        uses = np.arange(len(fleet.ways.way)) if uses is None else uses
        taken = fleet.ways.way[given] if given is not None else np.zeros(0, dtype=np.int64)
        return cls(fleet, uses, np.bincount(taken, minlength=len(fleet.ways)))

    def program(self, *, whole: bool) -> Problem:
        """The program as arrays; columns are x, arcs, windows, rows are jobs, ways, nodes, groups."""
        fleet, ways, windows = self.fleet, self.fleet.ways, self.fleet.windows
        jobs, job = np.unique(ways.job[self.uses], return_inverse=True)
        x, arcs, count = len(self.uses), len(fleet.arc_way), len(windows.way)
        way_row = len(jobs)
        node_row = way_row + len(ways)
        group_row = node_row + len(fleet.servers)
        arc, window = x + np.arange(arcs), x + arcs + np.arange(count)
        cells = MatrixEntries.joined(
            _block(job, np.arange(x), 1.0),
            _block(way_row + ways.way[self.uses], np.arange(x), 1.0),
            _block(way_row + fleet.arc_way, arc, -1.0),
            _block(way_row + windows.way, window, -1.0),
            _block(node_row + fleet.arc_from, arc, 1.0),
            _block(node_row + fleet.arc_to, arc, -1.0),
            _summed(*self._of_windows(window, node_row, group_row)),
        )
        upper = np.concatenate([np.ones(len(jobs)), -self.given, fleet.servers, fleet.groups])
        worth = np.concatenate([ways.value[self.uses] / ways.unit, np.zeros(arcs + count)])
        most = np.concatenate([np.ones(x), np.full(arcs + count, np.inf)])
        return Problem(
            worth,
            most,
            cells,
            np.full(len(upper), -np.inf),
            upper.astype(np.float64),
            np.ones(len(worth), dtype=bool) if whole else None,
        )

    def _of_windows(self, window: Ints, node_row: int, group_row: int) -> tuple[Ints, Ints, Floats]:
        """The servers and groups that windows take, and the servers that they leave."""
        windows = self.fleet.windows
        (taker, node), (holder, group) = windows.node, windows.hold
        row = np.concatenate([node_row + node, group_row + group, node_row + windows.rest])
        column = np.concatenate([window[taker], window[holder], window])
        return row, column, np.repeat([1.0, -1.0], [len(taker) + len(holder), len(window)])

    def way_prices(self, price: Floats) -> Floats:
        """The prices of ways among those of all rows."""
        jobs = len(np.unique(self.fleet.ways.job[self.uses]))
        return np.maximum(price[jobs : jobs + len(self.fleet.ways)], 0.0) * self.fleet.ways.unit

    def parts(self, solution: Floats) -> tuple[Floats, Ints, Ints]:
        """The columns of an answer: x, arcs and windows."""
        x, arcs = len(self.uses), len(self.fleet.arc_way)
        rest = np.rint(solution[x:]).astype(np.int64)
        return solution[:x], rest[:arcs], rest[arcs:]


def _block(row: Ints, column: Ints, value: float) -> tuple[Ints, Ints, Floats]:
    return row, column, np.full(len(row), value)


def _summed(row: Ints, column: Ints, value: Floats) -> tuple[Ints, Ints, Floats]:
    """Entries added up where they meet: a window may take several servers that look alike."""
    wide = 1 + int(row.max(initial=0))
    cell, at = np.unique(column * wide + row, return_inverse=True)
    total: Floats = np.bincount(at, weights=value, minlength=len(cell)).astype(np.float64)
    return cell % wide, cell // wide, total
