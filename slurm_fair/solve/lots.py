"""The choice among exact lots: each job takes one of some places that were named, or none, as nodes have GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints, absent
from slurm_fair.solve.answer import How, gap_between
from slurm_fair.solve.linear import Effort, MatrixEntries, Problem, solve


@dataclass(frozen=True, slots=True)
class LotsProblem:
    """Each job in at most one lot, no node over its free GPUs, the sum of values as large as can be."""

    free: Ints  # [node] GPUs that may be given
    jobs: int
    job: Ints  # [lot] 0 .. jobs - 1
    value: Floats  # [lot]
    lot: Ints  # [part] the lot that it belongs to
    node: Ints  # [part]
    gpus: Ints  # [part]
    start: Ints | None = None  # [job] lots of a choice that is known, -1 = none: the solver begins with it

    def __post_init__(self) -> None:
        """Refuse what no solver could answer."""
        if len(self.job) != len(self.value) or not len(self.lot) == len(self.node) == len(self.gpus):
            raise ValueError("lots: columns of one table differ in length")
        if not np.isfinite(self.value).all():
            raise ValueError("lots: values are finite")
        if len(self.job) and not 0 <= self.job.min() <= self.job.max() < self.jobs:
            raise ValueError(f"lots: jobs are numbered from 0 to {self.jobs - 1}")


@dataclass(frozen=True, slots=True)
class LotsAnswer:
    """The lot that each job got, -1 = none, and what no choice can be worth more than."""

    lot: Ints  # [job]
    objective: float
    bound: float
    how: How
    seconds: float = 0.0  # wall clock of the solver

    @property
    def gap(self) -> float:
        """(bound - objective) / bound."""
        return gap_between(self.bound, self.objective) if self.bound > 0 else 0.0


def best_lots(problem: LotsProblem, effort: Effort, limit_seconds: float) -> LotsAnswer:
    """The best choice that the limits allow; nobody has a lot where the solver has no answer."""
    nobody = absent(problem.jobs)
    count = len(problem.job)
    if not count:
        return LotsAnswer(nobody, 0.0, 0.0, How.EXACT)
    unit = float(np.abs(problem.value).max()) / 1000.0 or 1.0  # a solver's tolerances are absolute
    used = np.unique(problem.node)
    cells = MatrixEntries.joined(
        (problem.job, np.arange(count), np.ones(count)),
        (problem.jobs + used.searchsorted(problem.node), problem.lot, problem.gpus.astype(np.float64)),
    )
    rows = problem.jobs + len(used)
    most = np.concatenate((np.ones(problem.jobs), np.maximum(problem.free[used], 0)))
    whole, start = np.ones(count, dtype=bool), None
    if problem.start is not None:
        start = np.zeros(count)
        start[problem.start[problem.start >= 0]] = 1.0
    least = np.full(rows, -np.inf)
    model = Problem(problem.value / unit, np.ones(count), cells, least, most.astype(float), whole, start)
    found = solve(model, limit_seconds, effort)
    bound = found.bound * unit
    if not found.found:
        return LotsAnswer(nobody, 0.0, bound, How.GREEDY, found.seconds)
    chosen = (found.x > 0.5).nonzero()[0]
    nobody[problem.job[chosen]] = chosen
    return LotsAnswer(nobody, float(problem.value[chosen].sum()), bound, found.how, found.seconds)
