"""Bipartite assignment, and AlloX's order of jobs on GPU types (EuroSys 2020)."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, absent
from slurm_fair.solve.answer import LIMIT_SECONDS, How, Matching, Table, gap_between
from slurm_fair.solve.linear import MatrixEntries, Problem, solve

_MOST_CELLS = 400_000  # bigger ones go to the greedy rule at once


def assignment(cost: Table, room: Ints | None = None, limit_seconds: float = LIMIT_SECONDS) -> Matching:
    """Each row to one column, each column to at most `room` rows (one), at the least cost; inf = not there.

    The linear problem's corners are whole, so it is exact. As many rows as can be are matched: those that are
    not cost more than any that are.
    """
    rows, columns = cost.shape
    room = np.ones(columns, dtype=np.int64) if room is None else room
    row, column = np.nonzero(np.isfinite(cost))
    if len(row) == 0:
        return Matching(absent(rows), 0.0, How.EXACT)
    if len(row) > _MOST_CELLS:
        return _cheapest_first(cost, room)
    prices = cost[row, column]
    prize = 2.0 * (float(prices.max()) - min(float(prices.min()), 0.0) + 1.0) * (rows + 1)
    at = np.arange(len(row))
    ones = np.ones(len(row))
    cells = MatrixEntries.joined((row, at, ones), (rows + column, at, ones))
    most = np.concatenate([np.ones(rows), room.astype(np.float64)])
    problem = Problem(prize - prices, ones, cells, np.full(len(most), -np.inf), most)
    found = solve(problem, limit_seconds)
    if not found.found or found.how is not How.EXACT:
        return _cheapest_first(cost, room)
    taken = found.x > 0.5
    answer = absent(rows)
    answer[row[taken]] = column[taken]
    return Matching(answer, float(prices[taken].sum()), How.EXACT, gap_between(found.bound, found.objective))


def _cheapest_first(cost: Table, room: Ints) -> Matching:
    """Rows by their own least cost, each to the cheapest column that has room."""
    left, answer, total = room.copy(), absent(len(cost)), 0.0
    for row in np.argsort(cost.min(axis=1), kind="stable").tolist():
        prices = np.where(left > 0, cost[row], np.inf)
        column = int(np.argmin(prices))
        if np.isfinite(prices[column]):
            answer[row] = column
            left[column] -= 1
            total += float(prices[column])
    return Matching(answer, total, How.GREEDY, float("nan"))


def first_in_line(
    seconds: Table, machines: Ints, limit_seconds: float = LIMIT_SECONDS
) -> tuple[Ints, Matching]:
    """AlloX: jobs in line on machines of each type so that the mean completion time is least; who runs first.

    A job that is the k-th from the end of its machine's line delays k jobs, itself among them, so it costs
    k * seconds[i, j]. Returns the type on which each job runs now (-1 = it stands further back) and the
    matching, whose column is `type + types * (k - 1)`. With one type, that is shortest first.
    """
    jobs, types = seconds.shape
    none = absent(jobs)
    open_ = np.flatnonzero(machines > 0)
    if jobs == 0 or len(open_) == 0:
        return none, Matching(none, 0.0, How.EXACT)
    matching = _one_kind(seconds, machines, int(open_[0])) if len(open_) == 1 else None
    if matching is None:
        depth = -(-jobs // machines[open_])  # so deep that all could stand in line for one type
        place = np.arange(1, int(depth.max()) + 1)
        cost = (place[None, :, None] * seconds[:, None, :]).reshape(jobs, -1)
        room = np.where(place[:, None] <= -(-jobs // np.maximum(machines, 1)), machines, 0).ravel()
        cost[:, room == 0] = np.inf
        matching = assignment(cost, room, limit_seconds)
    return _heads(matching.column, seconds, types, machines), matching


def _one_kind(seconds: Table, machines: Ints, kind: int) -> Matching:
    """The longest stand last: one sort."""
    types = seconds.shape[1]
    able = np.flatnonzero(np.isfinite(seconds[:, kind]))
    order = able[np.argsort(-seconds[able, kind], kind="stable")]
    place = np.arange(len(order)) // machines[kind]  # 0 = last of its line
    column = absent(len(seconds))
    column[order] = kind + types * place
    return Matching(column, float(((place + 1) * seconds[order, kind]).sum()), How.EXACT)


def _heads(column: Ints, seconds: Table, types: int, machines: Ints) -> Ints:
    """Jobs with nobody before them: of each type the shortest of those furthest from the end, one a machine."""
    now = absent(len(column))
    for kind in range(types):
        mine = np.flatnonzero((column >= 0) & (column % types == kind))
        order = mine[np.lexsort((mine, seconds[mine, kind], -(column[mine] // types)))]
        now[order[: machines[kind]]] = kind
    return now


def shortest_line(seconds: Table, gang: Floats, capacity: Floats) -> Ints:
    """Longest processing time first: each whole job to the type whose load it raises least; -1 = nowhere."""
    load, kind = np.zeros(len(capacity)), absent(len(gang))
    can = np.isfinite(seconds) & (gang[:, None] <= capacity)
    best = np.where(can, seconds, np.inf).min(axis=1, initial=np.inf)
    for job in np.argsort(-(best * gang), kind="stable").tolist():
        if not np.isfinite(best[job]):
            continue
        more = np.where(can[job], gang[job] * seconds[job] / np.maximum(capacity, 1e-300), np.inf)
        kind[job] = int(np.argmin(np.maximum(load + more, np.where(can[job], seconds[job], np.inf))))
        load[kind[job]] += more[kind[job]]
    return kind


def whole_makespan(
    seconds: Table, gang: Floats, capacity: Floats, limit_seconds: float = LIMIT_SECONDS
) -> Matching:
    """Every job on one GPU type from now to its end, the last one done as early as can be (OSSP as a MILP).

    T >= seconds of each job where it is, and T >= GPU-seconds of a type / its GPUs. The start and the fallback
    is the longest-first rule.
    """
    start = shortest_line(seconds, gang, capacity)
    jobs, kinds = np.nonzero(np.isfinite(seconds) & (gang[:, None] <= capacity) & (start >= 0)[:, None])
    greedy = _length(start, seconds, gang, capacity)
    if len(jobs) == 0 or len(np.unique(kinds)) == 1 or len(jobs) > _MOST_CELLS:
        exact = len(np.unique(kinds)) <= 1
        return Matching(start, greedy, How.EXACT if exact else How.GREEDY, 0.0 if exact else float("nan"))
    found = solve(_whole_problem(seconds, gang, capacity, jobs, kinds, greedy), limit_seconds)
    if not found.found or -found.objective > greedy:
        return Matching(start, greedy, How.GREEDY, float("nan"))
    taken = found.x[:-1] > 0.5
    answer = absent(len(gang))
    answer[jobs[taken]] = kinds[taken]
    length = _length(answer, seconds, gang, capacity)
    return Matching(answer, length, found.how, gap_between(-found.bound, length))


def _whole_problem(
    seconds: Table, gang: Floats, capacity: Floats, jobs: Ints, kinds: Ints, most: float
) -> Problem:
    columns, everybody, types = len(jobs), len(gang), len(capacity)
    at, ones, spent = np.arange(columns), np.ones(columns), seconds[jobs, kinds]
    placed = np.bincount(jobs, minlength=everybody) > 0
    cells = MatrixEntries.joined(
        (jobs, at, ones),  # everybody somewhere
        (everybody + kinds, at, gang[jobs] * spent),  # a type's load ...
        (everybody + np.arange(types), np.full(types, columns), -capacity),  # ... within capacity * T
        (everybody + types + jobs, at, spent),  # each within T
        (everybody + types + np.arange(everybody), np.full(everybody, columns), -np.ones(everybody)),
    )
    least = np.concatenate([placed.astype(np.float64), np.full(types + everybody, -np.inf)])
    upper = np.concatenate([placed.astype(np.float64), np.zeros(types + everybody)])
    whole = np.append(np.ones(columns, dtype=bool), False)
    return Problem(
        np.append(np.zeros(columns), -1.0), np.append(ones, most * (1 + 1e-9)), cells, least, upper, whole
    )


def _length(kind: Ints, seconds: Table, gang: Floats, capacity: Floats) -> float:
    placed = np.flatnonzero(kind >= 0)
    spent = seconds[placed, kind[placed]]
    load = np.bincount(kind[placed], weights=gang[placed] * spent, minlength=len(capacity))
    return float(max(spent.max(initial=0.0), (load / np.maximum(capacity, 1e-300)).max(initial=0.0)))
