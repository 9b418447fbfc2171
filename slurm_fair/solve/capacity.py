"""One choice at most for each job, within the GPUs of each kind: exact places play no part (Sia, SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints, absent
from slurm_fair.solve.answer import LIMIT_SECONDS, How, Matching, gap_between
from slurm_fair.solve.linear import Effort, MatrixEntries, Problem, solve


@dataclass(frozen=True, slots=True)
class CapacityProblem:
    """Choose columns so that their values sum up to as much as can be."""

    job: Ints  # [column]
    on: Ints  # [column] the kind of GPUs
    gpus: Ints  # [column]
    value: Floats  # [column] a choice worth nothing, or less, is never taken
    jobs: int
    capacity: Ints  # [kind]


def within_capacity(
    problem: CapacityProblem, effort: Effort | None = None, limit_seconds: float = LIMIT_SECONDS
) -> Matching:
    """The column of each job, -1 = none; the best by value per GPU where the solver finds nothing in time."""
    some = np.flatnonzero((problem.value > 0) & (problem.gpus <= problem.capacity[problem.on]))
    greedy = _greedy(problem, some)
    if not len(some):
        return greedy
    columns, ones = np.arange(len(some)), np.ones(len(some))
    kinds = len(problem.capacity)
    cells = MatrixEntries.joined(
        (problem.job[some], columns, ones),
        (problem.jobs + problem.on[some], columns, problem.gpus[some].astype(np.float64)),
    )
    most = np.concatenate([np.ones(problem.jobs), problem.capacity.astype(np.float64)])
    found = solve(
        Problem(problem.value[some], ones, cells, np.zeros(problem.jobs + kinds), most, ones > 0),
        limit_seconds,
        effort,
    )
    if not found.found:
        return greedy
    chosen = some[found.x > 0.5]
    column = absent(problem.jobs)
    column[problem.job[chosen]] = chosen
    objective = float(problem.value[chosen].sum())
    if objective < greedy.objective:
        return greedy
    return Matching(column, objective, found.how, gap_between(max(found.bound, objective), objective))


def _greedy(problem: CapacityProblem, some: Ints) -> Matching:
    """The most valuable per GPU first."""
    column, left = absent(problem.jobs), problem.capacity.tolist()
    density = problem.value[some] / problem.gpus[some]
    for at in some[np.argsort(-density, kind="stable")].tolist():
        job, on, gpus = int(problem.job[at]), int(problem.on[at]), int(problem.gpus[at])
        if column[job] < 0 and gpus <= left[on]:
            column[job] = at
            left[on] -= gpus
    return Matching(column, float(problem.value[column[column >= 0]].sum()), How.GREEDY, float("nan"))
