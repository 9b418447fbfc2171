"""Problems over fractions of time (Gavel, OSDI 2020, section 4).

X[i, j] is the part of its time that job i has on GPU type j. All of them keep to two kinds of limits:
sum_j X[i, j] <= 1  and  sum_i gang_i X[i, j] <= capacity_j.  With one GPU type each has a closed form, which is
exact; with several it is a linear problem, and a rule that is always in time stands in for a solver that is late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.answer import LIMIT_SECONDS, How, Shares, Table, gap_between, usable
from slurm_fair.solve.filling import (
    centred,
    densest_first,
    floor_of,
    lowest_peak,
    topped_up,
    water_filled,
)
from slurm_fair.solve.linear import MatrixEntries, Problem, Solution, solve

_CLOSE = 1e-7
_ROUNDS = 25  # of raising the lowest; the rest keeps what it has then
_DESCENTS = 40

# What is left is shared out in one of these ways; with several GPU types by raising the lowest.
Leftover = Callable[[Floats, Floats, float], Floats]


def equal_rate(rate: Table, capacity: Floats) -> Floats:
    """Each job's rate if its time were spent on the GPU types in proportion to their sizes (Gavel's X_equal)."""
    total = capacity.sum()
    return (rate * capacity).sum(axis=1) / total if total > 0 else np.zeros(len(rate))


def max_min(
    rate: Table,
    gang: Floats,
    capacity: Floats,
    weight: Floats | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> Shares:
    """Max-min fairness: the least of  gang_i thr_i(X) / (weight_i thr_i(X_equal))  as large as can be.

    Then the next least, and so on (water-filling). Jobs that can run nowhere get nothing and do not count.
    """
    rate = usable(rate, gang, capacity)
    can = np.asarray(rate.any(axis=1))
    weight = np.ones(len(gang)) if weight is None else weight
    need = weight * equal_rate(rate, capacity) / gang
    if not can.any():
        return _nothing(rate)
    if len(capacity) > 1:
        return _raised(_Fleet.of(rate, gang, capacity), np.where(can, need, 0.0), limit_seconds)
    fraction = np.zeros(len(gang))
    fraction[can] = water_filled(gang[can], weight[can], float(capacity[0]))
    return _one_type(fraction, float((fraction[can] * gang[can] / weight[can]).min()))


def max_sum(value: Table, gang: Floats, capacity: Floats, limit_seconds: float = LIMIT_SECONDS) -> Shares:
    """The largest sum of  value[i, j] X[i, j]: all throughput, no fairness."""
    value = usable(value, gang, capacity)
    if not value.any():
        return _nothing(value)
    if len(capacity) == 1:
        fraction = densest_first(value[:, 0], gang, float(capacity[0]))
        return _one_type(fraction, float((fraction * value[:, 0]).sum()))
    fleet = _Fleet.of(value, gang, capacity)
    worth, least = value[fleet.jobs, fleet.types], np.full(fleet.first_job_row, -np.inf)
    problem = Problem(worth, np.ones(len(worth)), fleet.limits(), least, fleet.most())
    found = solve(problem, limit_seconds)
    if not found.found:
        table = _densest_by_type(fleet)
        return Shares(table, float((table * value).sum()), How.GREEDY, float("nan"))
    gap = gap_between(found.bound, found.objective)
    return Shares(fleet.table(found.x), found.objective, found.how, gap, found.seconds)


def finish_time(
    rate: Table,
    gang: Floats,
    capacity: Floats,
    age: Floats,
    left: Floats,
    alone: Floats,
    leftover: Leftover = topped_up,
    limit_seconds: float = LIMIT_SECONDS,
) -> Shares:
    """The least peak of finish-time fairness, (age_i + left_i / thr_i(X)) / alone_i (Gavel 4.2, Themis' rho)."""
    rate = usable(rate, gang, capacity)
    can = np.asarray(rate.any(axis=1))
    if not can.any():
        return _nothing(rate)
    if len(capacity) > 1:
        return _descended(_Fleet.of(rate, gang, capacity), age, left, alone, limit_seconds)
    gpus, fraction = float(capacity[0]), np.zeros(len(gang))
    peak, needed = lowest_peak(age[can], left[can] / rate[can, 0], alone[can], gang[can], gpus)
    fraction[can] = leftover(needed, gang[can], gpus)
    return _one_type(fraction, peak)


def least_makespan(
    rate: Table,
    gang: Floats,
    capacity: Floats,
    left: Floats,
    leftover: Leftover = centred,
    limit_seconds: float = LIMIT_SECONDS,
) -> Shares:
    """The least T in which everybody's `left` can be done by time-sharing; the open shop with preemption.

    T = 1/t for the largest t with thr_i(X) >= t left_i: no bisection is needed.
    """
    rate = usable(rate, gang, capacity)
    can = rate.any(axis=1) & (left > 0)
    if not can.any():
        return _nothing(rate)
    if len(capacity) > 1:
        raised = _raised(_Fleet.of(rate, gang, capacity), np.where(can, left, 0.0), limit_seconds)
        length = 1.0 / raised.objective if raised.objective > 0 else float("inf")
        return Shares(raised.fraction, length, raised.how, raised.gap, raised.seconds)
    need = np.where(can, left / np.where(can, rate[:, 0], 1.0), 0.0)
    gpus = float(capacity[0])
    level = floor_of(need, gang, gpus, can)
    fraction = np.zeros(len(gang))
    fraction[can] = leftover(np.minimum(level * need[can], 1.0), gang[can], gpus)
    return _one_type(fraction, 1.0 / level)


# -- several GPU types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fleet:
    """Jobs and the GPUs that they share; `jobs` and `types` name the possible pairs, one column each."""

    rate: Table
    gang: Floats
    capacity: Floats
    jobs: Ints
    types: Ints

    @classmethod
    def of(cls, rate: Table, gang: Floats, capacity: Floats) -> _Fleet:
        """All pairs with a rate."""
        jobs, types = np.nonzero(rate)
        return cls(rate, gang, capacity, jobs, types)

    @property
    def can(self) -> Bools:
        """Jobs that can run somewhere."""
        return np.asarray(self.rate.any(axis=1))

    @property
    def first_job_row(self) -> int:
        """Rows before those of the jobs' rates: GPUs of each type, time of each job."""
        return len(self.capacity) + len(self.gang)

    def limits(self) -> MatrixEntries:
        """The rows that every problem has."""
        columns, ones = np.arange(len(self.jobs)), np.ones(len(self.jobs))
        gpus = (self.types, columns, self.gang[self.jobs])
        return MatrixEntries.joined(gpus, (len(self.capacity) + self.jobs, columns, ones))

    def most(self) -> Floats:
        """The most that the rows may come to."""
        return np.concatenate([self.capacity, np.ones(len(self.gang))])

    def table(self, x: Floats) -> Table:
        """The columns as a table."""
        table = np.zeros(self.rate.shape)
        table[self.jobs, self.types] = np.clip(x, 0.0, 1.0)
        return table


def _raised(fleet: _Fleet, need: Floats, limit_seconds: float) -> Shares:
    """The largest t with thr_i(X) >= t need_i for all who can; then those who bind are fixed and the rest raised.

    Who binds is told by the prices of their rows: they sum to one, so each round fixes somebody.
    """
    open_, floor = fleet.can & (need > 0), np.zeros(len(need))
    found, spent = list[Solution](), 0.0
    while open_.any() and len(found) < _ROUNDS:
        lifted = _lift(fleet, need, open_, floor, limit_seconds - spent)
        if not lifted.found:
            break
        found.append(lifted)
        spent += lifted.seconds
        if lifted.how is not How.EXACT:
            break
        binds = open_ & (np.abs(lifted.price[fleet.first_job_row :]) * need > _CLOSE)
        floor[binds] = lifted.objective * (1.0 - _CLOSE) * need[binds]
        if not binds.any():
            break
        open_ = open_ & ~binds
    if not found:
        return _in_proportion(fleet, need)
    how = found[0].how
    gap = 0.0 if how is How.EXACT else float("nan")
    return Shares(fleet.table(found[-1].x[:-1]), found[0].objective, how, gap, spent)


def _lift(fleet: _Fleet, need: Floats, open_: Bools, floor: Floats, limit_seconds: float) -> Solution:
    """One such problem; its last column is t, its last rows are the jobs' rates."""
    columns, first, open_jobs = len(fleet.jobs), fleet.first_job_row, np.flatnonzero(open_)
    limits = fleet.limits()
    rates = (first + fleet.jobs, np.arange(columns), fleet.rate[fleet.jobs, fleet.types])
    lifts = (first + open_jobs, np.full(len(open_jobs), columns), -need[open_jobs])
    cells = MatrixEntries.joined((limits.row, limits.column, limits.value), rates, lifts)
    least = np.concatenate([np.full(first, -np.inf), np.where(open_, 0.0, floor)])
    most = np.concatenate([fleet.most(), np.full(len(need), np.inf)])
    worth = np.append(np.zeros(columns), 1.0)
    return solve(Problem(worth, np.append(np.ones(columns), np.inf), cells, least, most), limit_seconds)


def _descended(fleet: _Fleet, age: Floats, left: Floats, alone: Floats, limit_seconds: float) -> Shares:
    """Shares from a feasible peak, lowered while what it needs can be exceeded by some factor."""
    shares = _in_proportion(fleet, equal_rate(fleet.rate, fleet.capacity))
    peak = _peak(fleet, shares.fraction, age, left, alone)
    spent = 0.0
    for _ in range(_DESCENTS):
        need = left / np.maximum(peak * alone - age, 1e-12)
        better = _raised(fleet, np.where(fleet.can, need, 0.0), limit_seconds - spent)
        spent += better.seconds
        reached = _peak(fleet, better.fraction, age, left, alone)
        if better.how is How.GREEDY or not reached < peak:
            break
        done = reached > peak * (1.0 - _CLOSE)
        shares, peak = better, reached
        if done:
            break
    return Shares(shares.fraction, peak, shares.how, shares.gap, spent)


def _peak(fleet: _Fleet, fraction: Table, age: Floats, left: Floats, alone: Floats) -> float:
    can = fleet.can
    got = np.maximum((fraction * fleet.rate).sum(axis=1)[can], 1e-200)
    return float(((age[can] + left[can] / got) / alone[can]).max())


def _in_proportion(fleet: _Fleet, need: Floats) -> Shares:
    """Shares by need without a solver: each job on the types that it can use, in proportion to their sizes."""
    rate, gang, capacity = fleet.rate, fleet.gang, fleet.capacity
    can = fleet.can & (need > 0)
    part = np.where(rate > 0, capacity, 0.0)
    part = part / np.maximum(part.sum(axis=1, keepdims=True), 1e-300)
    mixed = (part * rate).sum(axis=1)
    asked = np.where(can, need / np.where(can, mixed, 1.0), 0.0)
    fraction = part * (floor_of(asked, gang, float(capacity.sum()), can) * asked)[:, None]
    over = np.max((gang[:, None] * fraction).sum(axis=0) / np.maximum(capacity, 1e-300), initial=1.0)
    fraction = fraction / over
    level = float(((fraction * rate).sum(axis=1)[can] / need[can]).min(initial=np.inf))
    return Shares(fraction, level if can.any() else 0.0, How.GREEDY, float("nan"))


def _densest_by_type(fleet: _Fleet) -> Table:
    """Best value per GPU first, over all types at once; the rates are the values."""
    value, gang = fleet.rate, fleet.gang
    fraction, time, gpus = np.zeros_like(value), np.ones(len(gang)), fleet.capacity.astype(np.float64)
    for at in np.argsort(-value[fleet.jobs, fleet.types] / gang[fleet.jobs], kind="stable").tolist():
        job, kind = fleet.jobs[at], fleet.types[at]
        part = min(time[job], gpus[kind] / gang[job])
        fraction[job, kind] = part
        time[job] -= part
        gpus[kind] -= part * gang[job]
    return fraction


def _one_type(fraction: Floats, objective: float) -> Shares:
    return Shares(fraction[:, None], objective, How.EXACT)


def _nothing(rate: Table) -> Shares:
    return Shares(np.zeros(rate.shape), 0.0, How.EXACT)
