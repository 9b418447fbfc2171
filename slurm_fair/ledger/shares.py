"""What is owed over a window, integrated exactly: shares are constant between two events.

Within one tenant every active job is owed at the rate w_i * min(D_i / w_i, level(t)), where the level is the
tenant's share per unit of weight. So one timeline of levels per tenant serves all of its jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import metrics
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.columns import Bools, Columns, Floats, Ints, check_lengths

Numbers = TypeVar("Numbers", NDArray[np.int64], NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Claims(Columns):
    """When which job was active, in any order."""

    tenant: Ints
    gpus: Ints
    weight: Floats
    since: Floats
    until: Floats

    def __post_init__(self) -> None:
        check_lengths(self)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the tenants share during a window."""

    total_gpus: float
    weight: Floats  # of each tenant
    last_job: Floats  # when each tenant had last had an active job before the window, -inf = never


@dataclass(frozen=True, slots=True)
class Owed:
    """Integrals over the window, and the share levels at its beginning."""

    claims: Floats  # of min(D_i, S_i), per claim
    quota: Floats  # of Q_j, per tenant
    demand: Floats  # of min(D_j, Q_j), per tenant
    first_level: Floats  # per tenant


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Segments of constant shares, sorted by (tenant, time); each tenant has at least one."""

    tenant: Ints
    seconds: Floats
    demand: Ints
    weight_sum: Floats
    quota: Floats
    first: Ints  # first segment of each tenant, and one past the last segment of all
    claim_from: Ints  # the segments of each claim
    claim_to: Ints


def integrate(claims: Claims, cluster: Cluster, since: float, until: float, settings: LedgerSettings) -> Owed:
    """What each claim and each tenant is owed between two instants."""
    steps = _presence(claims, cluster, since, until, settings.tenant_memory_seconds)
    line = _timeline(claims, cluster, steps, since, until)
    share = metrics.tenant_share(line.demand, line.quota)
    if settings.water_filled:
        level = _water_levels(claims, line, share)
    else:
        level = metrics.share_level(share, line.weight_sum)
    tenants = len(cluster.weight)
    return Owed(
        claims=_per_claim(claims, line, level),
        quota=totals(line.tenant, line.seconds * line.quota, tenants),
        demand=totals(line.tenant, line.seconds * share, tenants),
        first_level=level[line.first[:-1]],
    )


@dataclass(frozen=True, slots=True)
class _Steps:
    """Which tenants count in the quota: those at the beginning, and who joins (+1) or leaves (-1) when."""

    present: Bools
    tenant: Ints
    time: Floats
    change: Ints


def _presence(claims: Claims, cluster: Cluster, since: float, until: float, memory_seconds: float) -> _Steps:
    """A tenant counts while it has an active job and for the memory after it."""
    tenants = len(cluster.weight)
    remembered = cluster.last_job + memory_seconds
    spans = (claims.since <= since) & (claims.until + memory_seconds >= until)
    always = (remembered >= until) | (np.bincount(claims.tenant[spans], minlength=tenants) > 0)
    odd, others = np.flatnonzero(~always[claims.tenant]), np.flatnonzero(~always)
    tenant = np.concatenate([claims.tenant[odd], others])
    begin = np.concatenate([claims.since[odd], np.full(len(others), -np.inf)])
    end = np.concatenate([claims.until[odd] + memory_seconds, remembered[others]])
    count = np.bincount(tenant[(begin <= since) & (end > since)], minlength=tenants)
    joins, leaves = (begin > since) & (begin < until), (end > since) & (end < until)
    time = np.concatenate([begin[joins], end[leaves]])
    who = np.concatenate([tenant[joins], tenant[leaves]])
    change = np.repeat(np.array([1, -1]), [joins.sum(), leaves.sum()])
    return _toggles(always, count, who, time, change)


def _toggles(always: Bools, count: Ints, who: Ints, time: Floats, change: Ints) -> _Steps:
    """From overlapping spans to the instants at which a tenant's presence really changes."""
    order = np.lexsort((-change, time, who))
    who, time, change = who[order], time[order], change[order]
    first = np.searchsorted(who, np.arange(len(count) + 1))
    before = count[who] + _running_in_group(change, first, who) - change
    real = ((before == 0) & (change > 0)) | ((before == 1) & (change < 0))
    return _Steps(always | (count > 0), who[real], time[real], change[real])


@dataclass(frozen=True, slots=True)
class _Cuts:
    """The instants that cut a window: per tenant its beginning, arrivals, departures and changes of quotas."""

    order: Ints  # the rows below sorted by (tenant, time)
    place: Ints  # where each row went
    tenant: Ints  # per sorted row
    time: Floats
    first: Ints  # first sorted row of each tenant, and one past the last of all
    comes: Ints  # claims that begin in the window
    goes: Ints  # claims that end in it
    instants: Floats  # changes of quotas

    def totals(self, at_start: Numbers, column: Numbers) -> Numbers:
        """Running total per tenant of a column of the claims, from what it is at the start."""
        steady = np.zeros(len(self.instants) * len(at_start), dtype=column.dtype)
        steps = np.concatenate([at_start, column[self.comes], -column[self.goes], steady])
        return _running_in_group(steps[self.order], self.first, self.tenant)


def _cuts(claims: Claims, real: Bools, steps: _Steps, since: float, until: float) -> _Cuts:
    everyone, instants = np.arange(len(steps.present)), np.unique(steps.time)
    comes = np.flatnonzero(real & (claims.since > since))
    goes = np.flatnonzero(real & (claims.until < until))
    tenant = np.concatenate(
        [everyone, claims.tenant[comes], claims.tenant[goes], np.tile(everyone, len(instants))]
    )
    begin = np.full(len(everyone), since)
    time = np.concatenate(
        [begin, claims.since[comes], claims.until[goes], np.repeat(instants, len(everyone))]
    )
    order = np.lexsort((time, tenant))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first = np.searchsorted(tenant[order], np.arange(len(everyone) + 1))
    return _Cuts(order, place, tenant[order], time[order], first, comes, goes, instants)


def _timeline(claims: Claims, cluster: Cluster, steps: _Steps, since: float, until: float) -> _Timeline:
    """Cut the window at every event that changes a tenant's demand, weights or quota."""
    tenants = len(cluster.weight)
    real = (claims.until > claims.since) & (claims.until > since) & (claims.since < until)
    cuts = _cuts(claims, real, steps, since, until)
    ends = np.append(cuts.time[1:], until)
    ends[cuts.first[1:] - 1] = until
    there = np.flatnonzero(real & (claims.since <= since))
    demand = np.bincount(claims.tenant[there], claims.gpus[there], tenants).astype(np.int64)
    weight = totals(claims.tenant[there], claims.weight[there], tenants)
    claim_from, claim_to = cuts.first[claims.tenant], cuts.first[claims.tenant + 1]
    arrivals, departures = np.split(cuts.place[tenants:], [len(cuts.comes)])
    claim_from[cuts.comes], claim_to[cuts.goes] = arrivals, departures[: len(cuts.goes)]
    return _Timeline(
        tenant=cuts.tenant,
        seconds=ends - cuts.time,
        demand=cuts.totals(demand, claims.gpus),
        weight_sum=cuts.totals(weight, claims.weight),
        quota=_quotas(cluster, steps, cuts),
        first=cuts.first,
        claim_from=claim_from,
        claim_to=np.where(real, claim_to, claim_from),
    )


def _quotas(cluster: Cluster, steps: _Steps, cuts: _Cuts) -> Floats:
    """Q_j in every segment: nothing for a tenant that does not count then."""
    changes = np.zeros(len(cuts.order), dtype=np.int64)
    quota_rows = cuts.place[len(cuts.order) - len(cuts.instants) * len(cluster.weight) :]
    at = np.searchsorted(cuts.instants, steps.time)
    changes[quota_rows[at * len(cluster.weight) + steps.tenant]] = steps.change
    changes[cuts.first[:-1]] += steps.present
    present = _running_in_group(changes, cuts.first, cuts.tenant) > 0
    by_step = _weight_sums(cluster, steps, cuts.instants)
    weight_sum = by_step[np.searchsorted(cuts.instants, cuts.time, side="right")]
    return np.where(present, metrics.quota(cluster.total_gpus, cluster.weight[cuts.tenant], weight_sum), 0.0)


def _weight_sums(cluster: Cluster, steps: _Steps, instants: Floats) -> Floats:
    """Sum of the weights of the tenants that count: at the beginning, then from each instant on."""
    at = np.searchsorted(instants, steps.time)
    changes = np.bincount(at, steps.change * cluster.weight[steps.tenant], len(instants))
    return np.cumsum(np.concatenate([[cluster.weight[steps.present].sum()], changes]))


def _running_in_group(values: Numbers, first: Ints, group: Ints) -> Numbers:
    """Running sum that starts anew with each of the sorted groups, which begin at `first`."""
    running = np.cumsum(values)
    begin = first[group]
    return running - running[begin] + values[begin]


def _per_claim(claims: Claims, line: _Timeline, level: Floats) -> Floats:
    """Integral of each claim's rate over its segments."""
    steady_level, seconds = level[line.first[:-1]], line.seconds[line.first[:-1]]
    share = metrics.job_share(steady_level[claims.tenant], claims.weight)
    owed = metrics.job_claim(claims.gpus, share) * seconds[claims.tenant]
    # Most tenants have one segment, and that was all; the others' jobs are integrated over theirs.
    several = np.diff(line.first) > 1
    odd = np.flatnonzero(several[claims.tenant] | (line.claim_from == line.claim_to))
    first, end = line.first[claims.tenant[odd]], line.first[claims.tenant[odd] + 1]
    whole = (line.claim_from[odd] == first) & (line.claim_to[odd] == end)
    many, parts = odd[whole], odd[~whole]
    owed[many] = _over_whole_window(claims.take(many), line, level)
    owed[parts] = _over_parts(claims.take(parts), line.claim_from[parts], line.claim_to[parts], line, level)
    return owed


def _over_whole_window(claims: Claims, line: _Timeline, level: Floats) -> Floats:
    """Jobs active all along: segments sorted by level are below or above the job's ceiling, by bisection."""
    order = np.lexsort((level, line.tenant))
    sorted_level, seconds = level[order], line.seconds[order]
    below = _from_zero(sorted_level * seconds)
    above = _from_zero(seconds)
    ceiling = metrics.ceiling(claims.gpus, claims.weight)
    first, end = line.first[claims.tenant], line.first[claims.tenant + 1]
    low, high = first.copy(), end.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        under = open_ & (sorted_level[np.minimum(middle, len(sorted_level) - 1)] <= ceiling)
        low, high = np.where(under, middle + 1, low), np.where(open_ & ~under, middle, high)
    capped_seconds = above[end] - above[low]
    capped = np.where(capped_seconds > 0, claims.gpus * capped_seconds, 0.0)
    return claims.weight * (below[low] - below[first]) + capped


def _over_parts(claims: Claims, from_row: Ints, to_row: Ints, line: _Timeline, level: Floats) -> Floats:
    """Jobs that came or went: one running integral per distinct ceiling, read at both ends."""
    owed = np.zeros(len(claims))
    ceilings, which = np.unique(metrics.ceiling(claims.gpus, claims.weight), return_inverse=True)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(ceilings) + 1))
    for number, ceiling in enumerate(ceilings.tolist()):
        rows = order[bounds[number] : bounds[number + 1]]
        integral = _from_zero(np.minimum(level, ceiling) * line.seconds)
        owed[rows] = claims.weight[rows] * (integral[to_row[rows]] - integral[from_row[rows]])
    return owed


def totals(group: Ints, values: NDArray[np.int64] | Floats, count: int) -> Floats:
    """Sum of the values of each of `count` groups."""
    return np.bincount(group, values, count).astype(np.float64, copy=False)


def _from_zero(values: Floats) -> Floats:
    """Integral up to each boundary."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _water_levels(claims: Claims, line: _Timeline, share: Floats) -> Floats:
    """Max-min level of every segment: the n-th segments of all tenants at once, for n = 0, 1, ..."""
    highest = float(np.max(metrics.ceiling(claims.gpus, claims.weight)[claims.weight > 0], initial=0.0))
    level = np.zeros(len(share))
    for number in range(int(np.diff(line.first).max(initial=0))):
        at = line.first[:-1] + number
        tenants = np.flatnonzero(at < line.first[1:])
        group = np.full(len(line.first) - 1, -1, dtype=np.int64)
        group[tenants] = np.arange(len(tenants))
        row = at[claims.tenant]
        there = (group[claims.tenant] >= 0) & (line.claim_from <= row) & (row < line.claim_to)
        some = claims.take(there)
        rows = at[tenants]
        level[rows] = metrics.water_levels(group[some.tenant], some.gpus, some.weight, share[rows])
    return np.minimum(level, highest)
