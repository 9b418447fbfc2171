"""Step functions of time with exact integrals, and what each tenant had and was owed in each window of time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import formulas
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs
from slurm_fair.ledger.settings import ReportShare
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.model.tenant_moment import TenantMoment

WINDOW_SECONDS = 3600.0
Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """`level[i]` from `time[i]` until the next instant, the last one for ever; 0 before the first."""

    time: Floats  # ascending, no two alike
    level: Floats

    @classmethod
    def of(cls, since: Floats, until: Floats, amount: Numbers | None = None) -> Self:
        """The sum over time of amounts (default: 1 each) that last from `since` to `until`."""
        amounts = np.ones(len(since)) if amount is None else np.asarray(amount, dtype=np.float64)
        real = until > since
        time, row = np.unique(np.concatenate([since[real], until[real]]), return_inverse=True)
        level = np.cumsum(np.bincount(row, np.concatenate([amounts[real], -amounts[real]]), len(time)))
        number = np.cumsum(np.bincount(row, np.repeat([1.0, -1.0], np.count_nonzero(real)), len(time)))
        return cls(
            time, np.where(number > 0, level, 0.0)
        )  # sums of fractions leave a rest where nothing lasts

    @classmethod
    def steady(cls, level: float, since: float) -> Self:
        """One level from an instant on."""
        return cls(np.array([since]), np.array([level]))

    @classmethod
    def seen(cls, seen: Iterable[tuple[float, float]], since: float) -> Self:
        """Levels and when each was first seen; what was seen first was there before, from `since` on."""
        pairs = sorted(seen)
        time, level = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
        time[0] = min(time[0], since)
        return cls(time, level)

    def at(self, instants: Floats) -> Floats:
        """The level at each instant; where it changes, the new one."""
        level = np.concatenate([[0.0], self.level])
        return level[np.searchsorted(self.time, instants, side="right")]

    def integral(self, since: Floats, until: Floats) -> Floats:
        """Exact integral between each two instants."""
        return self._up_to(until) - self._up_to(since)

    def mean(self, since: Floats, until: Floats) -> Floats:
        """Time-weighted mean between each two instants; the level itself where no time lies between them."""
        seconds = until - since
        mean = formulas.ratio(self.integral(since, until), seconds, nothing=0.0)
        return np.where(seconds > 0, mean, self.at(since))

    def times(self, factor: float) -> Self:
        """The same steps, every level multiplied."""
        return type(self)(self.time, self.level * factor)

    def where(self, wanted: Bools) -> Self:
        """1 where the level is wanted and 0 elsewhere; one entry a level."""
        return type(self)(self.time, wanted.astype(np.float64))

    def together(self, other: Self) -> tuple[Floats, Floats, Floats]:
        """All instants at which either changes, and both levels from each of them on."""
        time = np.union1d(self.time, other.time)
        return time, self.at(time), other.at(time)

    def least(self, other: Self) -> Self:
        """The smaller of both at every instant."""
        time, one, two = self.together(other)
        return type(self)(time, np.minimum(one, two))

    def _up_to(self, instants: Floats) -> Floats:
        """The integral from the beginning to each instant."""
        if not len(self.time):
            return np.zeros(len(instants))
        whole = np.concatenate([[0.0], np.cumsum(self.level[:-1] * np.diff(self.time))])
        row = np.searchsorted(self.time, instants, side="right") - 1
        since = np.maximum(row, 0)
        return np.where(row >= 0, whole[since] + self.level[since] * (instants - self.time[since]), 0.0)


@dataclass(frozen=True, slots=True)
class TenantWindows:
    """The windows over which tenant unfairness is counted; had and owed in GPU-seconds of the window."""

    edges: Floats  # one more than there are windows
    had: Floats  # [tenant, window]
    owed: Floats  # [tenant, window]: integral of S_j = min(D_j, Q_j)
    demanded: Bools  # [tenant, window]: jobs of the tenant were active all along

    @property
    def unfair(self) -> float:
        """Tenant unfairness: the part of (tenant, window) pairs with demand all along and rho_j < 1."""
        return formulas.unfair_fraction(self.had, self.owed, self.demanded)

    def unfair_of(self, tenant: int) -> float:
        """The same of one tenant's windows."""
        mine = slice(tenant, tenant + 1)
        return formulas.unfair_fraction(self.had[mine], self.owed[mine], self.demanded[mine])


def edges_of(since: float, until: float, seconds: float = WINDOW_SECONDS) -> Floats:
    """Windows of fixed length from `since` on; what is left over at the end is no window."""
    count = max(int((until - since) // seconds), 0)
    return since + seconds * np.arange(count + 1, dtype=np.float64)


def exact_windows(
    outcomes: Outcomes,
    runs: Runs,
    weight: Floats,
    total_gpus: float | Steps,
    edges: Floats,
    weight_sum: float | None = None,
    share: ReportShare = "demand",
    counts_seconds: float = math.inf,
    along: Bools | None = None,
) -> TenantWindows:
    """Windows from the jobs and runs themselves, exact at every arrival, start, stop and end.

    Weights do not change, M (by the GPUs' weights) may: Steps. A job is active from its submission to its end:
    holds are not known.
    `weight_sum`, `counts_seconds` and `along` are those of `quotas_of`.
    """
    capacity = total_gpus if isinstance(total_gpus, Steps) else Steps.steady(total_gpus, float(edges[0]))
    every_quota = quotas_of(outcomes, weight, capacity, weight_sum, counts_seconds, along)
    shape = (len(outcomes.tenants), len(edges) - 1)
    had, owed, busy = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    jobs_of = _by_group(outcomes.tenant, shape[0])
    runs_of = _by_group(outcomes.tenant[runs.job], shape[0])
    since, until, end = edges[:-1], edges[1:], outcomes.ended_or_now
    for tenant, (jobs, ran) in enumerate(zip(jobs_of, runs_of, strict=True)):
        demand = _demand(outcomes, end, jobs, runs.take(ran))
        quotas = every_quota[tenant]
        owing = demand.least(quotas) if share == "demand" else quotas
        held = Steps.of(runs.start[ran], runs.end[ran], runs.weighed_gpus[ran])
        had[tenant], owed[tenant] = held.integral(since, until), owing.integral(since, until)
        busy[tenant] = demand.where(demand.level > 0).integral(since, until)
    return TenantWindows(edges, had, owed, busy >= (until - since) * (1.0 - 1e-9))


def _demand(outcomes: Outcomes, end: Floats, jobs: Ints, runs: Runs) -> Steps:
    """GPUs by weight that a tenant asks for: while a job runs, those that it holds."""
    since, until = outcomes.submit[jobs], end[jobs]
    gpus = outcomes.gpus[jobs] * outcomes.gpu_weight[jobs]
    other = runs.take(runs.gpu_weight != outcomes.gpu_weight[runs.job])
    if len(other):
        more = other.gpus * (other.gpu_weight - outcomes.gpu_weight[other.job])
        since, until = np.concatenate([since, other.start]), np.concatenate([until, other.end])
        gpus = np.concatenate([gpus, more])
    return Steps.of(since, until, gpus)


def quotas_of(
    outcomes: Outcomes,
    weight: Floats,
    capacity: Steps,
    weight_sum: float | None = None,
    counts_seconds: float = math.inf,
    along: Bools | None = None,
) -> list[Steps]:
    """Q of each tenant over time.

    Where a tenant counts for `counts_seconds` beyond its jobs, it does so from its first one on; inf = all the
    time, as those do that are `along`. `weight_sum` is that of all who count, if some are not in the table: those
    count all the time.
    """
    here = float(weight.sum())
    whole = here if weight_sum is None else weight_sum
    if math.isinf(counts_seconds):
        parts = formulas.quota(1.0, weight, np.full(len(weight), whole))
        return [capacity.times(part) for part in parts.tolist()]
    end = outcomes.ended_or_now + counts_seconds
    jobs_of = _by_group(outcomes.tenant, len(weight))
    counts = [Steps.of(outcomes.submit[jobs], end[jobs]) for jobs in jobs_of]
    time = np.unique(np.concatenate([capacity.time, *(steps.time for steps in counts)]))
    gpus = capacity.at(time)
    here_then = np.array([steps.at(time) > 0 for steps in counts], dtype=bool).reshape(len(weight), len(time))
    present = weight[:, None] * (here_then if along is None else here_then | along[:, None])
    total = present.sum(axis=0) + max(whole - here, 0.0)
    return [Steps(time, formulas.ratio(gpus * row, total, nothing=0.0)) for row in present]


def _by_group(group: Ints, count: int) -> list[Ints]:
    order = np.argsort(group, kind="stable")
    return np.split(order, np.searchsorted(group[order], np.arange(1, count)))[:count]


def sampled_windows(
    time: Floats, had: Floats, owed: Floats, demand: Floats, edges: Floats, late_seconds: float = 300.0
) -> TenantWindows:
    """Windows from the ledger's integrals, which are exact at the instants `time` (columns are [time, tenant]).

    An edge is moved to the first instant at or after it; a window without one within `late_seconds` of an edge
    counts for nobody. `demand` is GPUs asked for at each instant.
    """
    if not len(time):
        nothing = np.zeros((had.shape[1], len(edges) - 1))
        return TenantWindows(edges, nothing, nothing, nothing > 0)
    row = np.minimum(np.searchsorted(time, edges), len(time) - 1)
    near = (time[row] >= edges) & (time[row] - edges <= late_seconds)
    idle = np.concatenate([np.zeros((1, demand.shape[1])), np.cumsum(demand <= 0, axis=0)])
    demanded = (np.diff(idle[row], axis=0) == 0).T & (near[:-1] & near[1:] & (np.diff(row) > 0))
    moved = np.where(near, time[row], edges)
    return TenantWindows(moved, np.diff(had[row], axis=0).T, np.diff(owed[row], axis=0).T, demanded)


def windows_of_moments(
    moments: Iterable[TenantMoment], edges: Floats, late_seconds: float = 300.0
) -> tuple[tuple[str, ...], TenantWindows]:
    """The same from tenants' accounts as the journal and its export keep them, and the tenants' names."""
    kept = list(moments)
    names = tuple(sorted({moment.tenant for moment in kept}))
    time = np.unique(np.array([moment.time for moment in kept], dtype=np.float64))
    number = {name: row for row, name in enumerate(names)}
    row = np.searchsorted(time, np.array([moment.time for moment in kept], dtype=np.float64))
    column = np.array([number[moment.tenant] for moment in kept], dtype=np.int64)
    had, owed, demand = (np.zeros((len(time), len(names))) for _ in range(3))
    had[row, column] = [moment.had for moment in kept]
    owed[row, column] = [moment.owed_demand for moment in kept]
    demand[row, column] = [moment.demand for moment in kept]
    return names, sampled_windows(time, had, owed, demand, edges, late_seconds)
