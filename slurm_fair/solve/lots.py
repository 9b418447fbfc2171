"""The choice among exact lots: each job takes one of some places that were named, or none, as nodes have GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, absent
from slurm_fair.solve.answer import How, gap_between
from slurm_fair.solve.linear import Effort, MatrixEntries, Problem, solve


class Quotas(NamedTuple):
    """A worth of GPUs beside that of the lots: of each tenant so many, whichever of its jobs have them."""

    gpus: Floats  # [tenant]
    price: Floats  # [tenant] worth of one


class Payers(NamedTuple):
    """Jobs, and the quotas that their GPUs fill.

    A job that crosses its tenant's quota brings room for its GPUs beyond it, where it gets some.
    """

    tenant: Ints  # [job] whose quota its GPUs fill, -1 = nobody's
    beyond: Floats  # [job] GPUs beyond the quota that it crosses
    quotas: Quotas

    def take(self, jobs: Ints | Bools) -> Payers:
        """Some of the jobs."""
        return Payers(self.tenant[jobs], self.beyond[jobs], self.quotas)

    def room(self) -> Floats:
        """[tenant]: GPUs that may have the price, where all of these jobs get some."""
        return self.quotas.gpus + self._sums(self.beyond)

    def filled(self, gpus: Ints) -> Floats:
        """[tenant]: GPUs that have the price, where these jobs have so many."""
        return np.minimum(self._sums(gpus), self.room())

    def worth(self, gpus: Ints) -> float:
        """The worth of these in all."""
        return float((self.quotas.price * self.filled(gpus)).sum())

    def _sums(self, column: Ints | Floats) -> Floats:
        mine = self.tenant >= 0
        return np.bincount(self.tenant[mine], column[mine], len(self.quotas.gpus)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class LotsProblem:
    """Each job in at most one lot, no node over its free GPUs, all together worth as much as can be."""

    free: Ints  # [node] GPUs that may be given
    jobs: int
    job: Ints  # [lot] 0 .. jobs - 1
    value: Floats  # [lot]
    lot: Ints  # [part] the lot that it belongs to
    node: Ints  # [part]
    gpus: Ints  # [part]
    payers: Payers | None = None
    start: Ints | None = None  # [job] lots of a choice that is known, -1 = none: the solver begins with it

    def __post_init__(self) -> None:
        """Refuse what no solver could answer."""
        if len(self.job) != len(self.value) or not len(self.lot) == len(self.node) == len(self.gpus):
            raise ValueError("lots: columns of one table differ in length")
        if not np.isfinite(self.value).all():
            raise ValueError("lots: values are finite")
        if len(self.job) and not 0 <= self.job.min() <= self.job.max() < self.jobs:
            raise ValueError(f"lots: jobs are numbered from 0 to {self.jobs - 1}")

    def worth(self, lots: Ints) -> float:
        """The worth of these lots together."""
        value = float(self.value[lots].sum())
        if self.payers is None:
            return value
        return value + self.payers.take(self.job[lots]).worth(self.size[lots])

    @property
    def size(self) -> Ints:
        """[lot]: its GPUs on all nodes."""
        return np.bincount(self.lot, self.gpus, len(self.job)).astype(np.int64)


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
    dearest = 0.0 if problem.payers is None else float(problem.payers.quotas.price.max(initial=0.0))
    # A solver's tolerances are absolute.
    unit = max(float(np.abs(problem.value).max()), dearest) / 1000.0 or 1.0
    found = solve(_model(problem, unit), limit_seconds, effort)
    bound = found.bound * unit
    if not found.found:
        return LotsAnswer(nobody, 0.0, bound, How.GREEDY, found.seconds)
    chosen = (found.x[:count] > 0.5).nonzero()[0]
    nobody[problem.job[chosen]] = chosen
    return LotsAnswer(nobody, problem.worth(chosen), bound, found.how, found.seconds)


def _model(problem: LotsProblem, unit: float) -> Problem:
    """A column for each lot, and one for each tenant: its GPUs in these lots, up to its quota."""
    count, used = len(problem.job), np.unique(problem.node)
    blocks = [
        (problem.job, np.arange(count), np.ones(count)),
        (problem.jobs + used.searchsorted(problem.node), problem.lot, problem.gpus.astype(np.float64)),
    ]
    most_row = [np.ones(problem.jobs), np.maximum(problem.free[used], 0)]
    worth, most, start, tenants = [problem.value], [np.ones(count)], None, 0
    if problem.start is not None:
        taken = problem.start[problem.start >= 0]
        start = np.zeros(count)
        start[taken] = 1.0
    if problem.payers is not None:
        quotas, size = problem.payers.quotas, problem.size
        of_lots = problem.payers.take(problem.job)
        payer, beyond, _ = of_lots
        tenants, fills = len(quotas.gpus), (payer >= 0).nonzero()[0]
        each, crosses = np.arange(tenants), fills[beyond[fills] > 0]
        first = problem.jobs + len(used)  # y - GPUs of its lots <= 0, then y - what its lots bring <= quota
        blocks.append((first + payer[fills], fills, -size[fills].astype(np.float64)))
        blocks.append((first + tenants + payer[crosses], crosses, -beyond[crosses]))
        for row in (first, first + tenants):
            blocks.append((row + each, count + each, np.ones(tenants)))
        most_row += [np.zeros(tenants), quotas.gpus]
        worth.append(quotas.price)
        most.append(np.full(tenants, float(problem.free[used].sum())))
        if start is not None:
            start = np.concatenate((start, of_lots.take(taken).filled(size[taken])))
    rows = np.concatenate(most_row)
    whole = np.arange(count + tenants) < count
    return Problem(
        np.concatenate(worth) / unit,
        np.concatenate(most),
        MatrixEntries.joined(*blocks),
        np.full(len(rows), -np.inf),
        rows.astype(float),
        whole,
        start,
    )
