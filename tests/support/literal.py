"""The linear problems as the papers write them, with PuLP: the solvers of slurm_fair.solve are held to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pulp  # type: ignore[import-untyped]

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.solve.answer import LIMIT_SECONDS, How, Matching, Shares, Table, usable
from slurm_fair.solve.shares import equal_rate

_BISECTIONS = 45


def max_min(
    rate: Table,
    gang: Floats,
    capacity: Floats,
    weight: Floats | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> Shares:
    """Gavel's max-min problem, one level."""
    rate = usable(rate, gang, capacity)
    weight = np.ones(len(gang)) if weight is None else weight
    problem, x = _fractions(pulp.LpMaximize, gang, capacity)
    least = problem.add_variable("least")
    problem.setObjective(least)
    equal = equal_rate(rate, capacity)
    for job in np.flatnonzero(rate.any(axis=1)).tolist():
        scale = float(gang[job] / (weight[job] * equal[job]))
        problem.addConstraint(least <= scale * _throughput(x, rate, job))
    return _shares(problem, x, rate, limit_seconds)


def max_sum(value: Table, gang: Floats, capacity: Floats, limit_seconds: float = LIMIT_SECONDS) -> Shares:
    """The largest sum of throughputs."""
    value = usable(value, gang, capacity)
    problem, x = _fractions(pulp.LpMaximize, gang, capacity)
    problem.setObjective(pulp.lpSum(_throughput(x, value, job) for job in range(len(gang))))
    return _shares(problem, x, value, limit_seconds)


def makespan(
    rate: Table, gang: Floats, capacity: Floats, left: Floats, limit_seconds: float = LIMIT_SECONDS
) -> Shares:
    """The least T, over the seconds y = x T that each job spends on each type."""
    rate = usable(rate, gang, capacity)
    problem = pulp.LpProblem("makespan", pulp.LpMinimize)
    end = problem.add_variable("end", 0)
    y = _grid(problem, "y", len(gang), len(capacity), None)
    problem.setObjective(end)
    for kind, gpus in enumerate(capacity.tolist()):
        problem.addConstraint(pulp.lpSum(g * row[kind] for g, row in _rows(gang, y)) <= gpus * end)
    for job, row in enumerate(y):
        problem.addConstraint(pulp.lpSum(row) <= end)
        if rate[job].any():
            problem.addConstraint(_throughput(y, rate, job) >= float(left[job]))
    _run(problem, limit_seconds)
    length = float(pulp.value(end))
    seconds = np.array([[cell.value() or 0.0 for cell in row] for row in y]).reshape(rate.shape)
    return Shares(seconds / max(length, 1e-300), length, How.EXACT)


def finish_time(
    rate: Table,
    gang: Floats,
    capacity: Floats,
    age: Floats,
    left: Floats,
    alone: Floats,
    limit_seconds: float = LIMIT_SECONDS,
) -> Shares:
    """The least peak by bisection; each step asks whether what it needs can be had."""
    rate = usable(rate, gang, capacity)
    can = rate.any(axis=1)
    low = float(((age + left / np.maximum(rate.max(axis=1), 1e-300)) / alone)[can].max(initial=0.0))
    high, best = 2.0 * max(low, 1.0), Shares(np.zeros(rate.shape), float("inf"), How.GREEDY)
    while (found := _at_most(high, rate, gang, capacity, age, left, alone, limit_seconds)) is None:
        low, high = high, 2.0 * high
    best = found
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        found = _at_most(middle, rate, gang, capacity, age, left, alone, limit_seconds)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return Shares(best.fraction, high, How.EXACT)


def assignment(cost: Table, room: Ints | None = None, limit_seconds: float = LIMIT_SECONDS) -> Matching:
    """Each row to one column with whole variables; all rows have to find one."""
    rows, columns = cost.shape
    room = np.ones(columns, dtype=np.int64) if room is None else room
    problem = pulp.LpProblem("assignment", pulp.LpMinimize)
    x = _grid(problem, "x", rows, columns, 1, whole=True)
    terms = [
        float(c) * v for prices, row in zip(cost.tolist(), x, strict=True) for c, v in _rows(prices, row)
    ]
    problem.setObjective(pulp.lpSum(terms))
    for row in x:
        problem.addConstraint(pulp.lpSum(row) == 1)
    for column in range(columns):
        problem.addConstraint(pulp.lpSum(row[column] for row in x) <= int(room[column]))
    _run(problem, limit_seconds)
    chosen = np.array([[cell.value() or 0.0 for cell in row] for row in x]).reshape(rows, columns)
    column_of = np.argmax(chosen, axis=1) if columns else np.full(rows, -1)
    return Matching(column_of.astype(np.int64), float(pulp.value(problem.objective) or 0.0), How.EXACT)


def _at_most(
    peak: float,
    rate: Table,
    gang: Floats,
    capacity: Floats,
    age: Floats,
    left: Floats,
    alone: Floats,
    limit_seconds: float,
) -> Shares | None:
    problem, x = _fractions(pulp.LpMaximize, gang, capacity)
    problem.setObjective(pulp.lpSum(cell for row in x for cell in row) * 0.0)
    for job in np.flatnonzero(rate.any(axis=1)).tolist():
        time = float(peak * alone[job] - age[job])
        if time <= 0:
            return None
        problem.addConstraint(_throughput(x, rate, job) >= float(left[job]) / time)
    answer = _shares(problem, x, rate, limit_seconds)
    return answer if problem.sol_status == pulp.LpSolutionOptimal else None


def _fractions(sense: int, gang: Floats, capacity: Floats) -> tuple[Any, list[list[Any]]]:
    problem = pulp.LpProblem("fractions", sense)
    x = _grid(problem, "x", len(gang), len(capacity), 1)
    for row in x:
        problem.addConstraint(pulp.lpSum(row) <= 1)
    for kind, gpus in enumerate(capacity.tolist()):
        problem.addConstraint(pulp.lpSum(g * row[kind] for g, row in _rows(gang, x)) <= gpus)
    return problem, x


def _grid(
    problem: Any, name: str, rows: int, columns: int, most: float | None, whole: bool = False
) -> list[list[Any]]:
    kind = pulp.LpInteger if whole else pulp.LpContinuous
    table = [[f"{name}_{i}_{j}" for j in range(columns)] for i in range(rows)]
    return [[problem.add_variable(each, 0, most, kind) for each in row] for row in table]


def _rows(values: Any, rows: Iterable[Any]) -> Iterable[tuple[float, Any]]:
    return ((float(value), row) for value, row in zip(values, rows, strict=True))


def _throughput(x: list[list[Any]], rate: Table, job: int) -> Any:
    return pulp.lpSum(r * cell for r, cell in _rows(rate[job], x[job]))


def _run(problem: Any, limit_seconds: float) -> None:
    problem.solve(pulp.HiGHS(msg=False, timeLimit=limit_seconds, threads=1))


def _shares(problem: Any, x: list[list[Any]], rate: Table, limit_seconds: float) -> Shares:
    _run(problem, limit_seconds)
    fraction = np.array([[cell.value() or 0.0 for cell in row] for row in x]).reshape(rate.shape)
    optimal = problem.sol_status == pulp.LpSolutionOptimal
    return Shares(
        fraction, float(pulp.value(problem.objective) or 0.0), How.EXACT if optimal else How.FEASIBLE
    )
