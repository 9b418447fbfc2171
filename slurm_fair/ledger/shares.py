"""What is owed over a window, integrated exactly: shares are constant between two events.

Within one tenant every active job is owed at the rate w_i * min(D_i / w_i, level(t)), where the level is the
tenant's share per unit of weight. So one timeline of levels per tenant serves all of its jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import metrics
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.columns import Bools, Columns, Floats, Ints, all_of, any_of, check_lengths

# M from each instant on, in order of time.
Changes: TypeAlias = Sequence[tuple[float, int]]
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
    demand: Floats
    weight_sum: Floats
    quota: Floats
    first: Ints  # first segment of each tenant, and one past the last segment of all
    odd: Ints  # claims that were not active all along; the others have all of their tenant's segments
    odd_from: Ints  # the segments of those; none for one that was not active in the window at all
    odd_to: Ints

    @property
    def uncut(self) -> bool:
        """Whether each tenant has one segment."""
        return len(self.tenant) == len(self.first) - 1


def integrate(claims: Claims, cluster: Cluster, since: float, until: float, settings: LedgerSettings) -> Owed:
    """What each claim and each tenant is owed between two instants."""
    steps = _presence(claims, cluster, since, until, settings)
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
        first_level=level.take(line.first[:-1]),
    )


def integrate_over_changes(
    claims: Claims, cluster: Cluster, changes: Changes, since: float, until: float, settings: LedgerSettings
) -> Owed:
    """The same where M changed in between."""
    before = [gpus for instant, gpus in changes if instant <= since]
    within = [(instant, gpus) for instant, gpus in changes if since < instant < until]
    cluster = replace(cluster, total_gpus=float(before[-1])) if before else cluster
    begins, ends = [since, *(at for at, _ in within)], [*(at for at, _ in within), until]
    levels = [cluster.total_gpus, *(float(gpus) for _, gpus in within)]
    parts = [
        integrate(claims, replace(cluster, total_gpus=gpus), begin, end, settings)
        for gpus, begin, end in zip(levels, begins, ends, strict=True)
    ]
    return Owed(
        claims=np.sum([part.claims for part in parts], axis=0),
        quota=np.sum([part.quota for part in parts], axis=0),
        demand=np.sum([part.demand for part in parts], axis=0),
        first_level=parts[0].first_level,
    )


@dataclass(frozen=True, slots=True)
class _Steps:
    """Which tenants count in the quota: those at the beginning, and who joins (+1) or leaves (-1) when."""

    present: Bools
    tenant: Ints
    time: Floats
    change: Ints


_NOBODY, _NEVER = np.zeros(0, dtype=np.int64), np.zeros(0)


def _presence(
    claims: Claims, cluster: Cluster, since: float, until: float, settings: LedgerSettings
) -> _Steps:
    """A tenant counts while it has an active job and for the memory after it."""
    if settings.everyone_counts:
        return _Steps(np.ones(len(cluster.weight), dtype=bool), _NOBODY, _NEVER, _NOBODY)
    memory_seconds = settings.tenant_memory_seconds
    remembered = cluster.last_job + memory_seconds
    always = remembered >= until
    if all_of(always):
        return _Steps(always, _NOBODY, _NEVER, _NOBODY)
    rows = (~always).take(claims.tenant).nonzero()[0]
    if not len(rows) and not any_of((remembered > since) & ~always):  # who is forgotten stays so
        return _Steps(always, _NOBODY, _NEVER, _NOBODY)
    some = claims.take(rows)
    spans = (some.since <= since) & (some.until + memory_seconds >= until)
    always[some.tenant[spans]] = True
    others = (~always).nonzero()[0]
    some, remembered = some.take(~always[some.tenant]), remembered[others]
    tenant = np.concatenate([some.tenant, others])
    begin = np.concatenate([some.since, np.full(len(others), -np.inf)])
    end = np.concatenate([some.until + memory_seconds, remembered])
    count = np.bincount(tenant[(begin <= since) & (end > since)], minlength=len(always))
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

    def totals(self, at_start: Floats, column: Ints | Floats) -> Floats:
        """Running total per tenant of a column of the claims, from what it is at the start."""
        steady = np.zeros(len(self.instants) * len(at_start))
        steps = np.concatenate([at_start, column[self.comes], -column[self.goes], steady])
        return _running_in_group(steps[self.order], self.first, self.tenant)


def _cuts(claims: Claims, comes: Ints, goes: Ints, steps: _Steps, since: float) -> _Cuts:
    tenants = len(steps.present)
    everyone, instants = np.arange(tenants), _NEVER
    who = [everyone, claims.tenant[comes], claims.tenant[goes]]
    when = [np.full(tenants, since), claims.since[comes], claims.until[goes]]
    if len(steps.time):
        instants = np.unique(steps.time)
        who.append(np.tile(everyone, len(instants)))
        when.append(np.repeat(instants, tenants))
    tenant, time = np.concatenate(who), np.concatenate(when)
    order = np.lexsort((time, tenant))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    tenant = tenant[order]
    first = tenant.searchsorted(np.arange(tenants + 1))
    return _Cuts(order, place, tenant, time[order], first, comes, goes, instants)


def _timeline(claims: Claims, cluster: Cluster, steps: _Steps, since: float, until: float) -> _Timeline:
    """Cut the window at every event that changes a tenant's demand, weights or quota."""
    along = (claims.since <= since) & (claims.until >= until)
    odd = (~along).nonzero()[0] if since < until else np.arange(len(claims))
    if not len(odd) and not len(steps.time):
        return _uncut(claims, cluster, steps, until - since)
    tenant, begin, end = claims.tenant[odd], claims.since[odd], claims.until[odd]
    real = (end > begin) & (end > since) & (begin < until)
    comes, goes = real & (begin > since), real & (end < until)
    cuts = _cuts(claims, odd[comes], odd[goes], steps, since)
    tenants, arrivals = len(cluster.weight), len(cuts.comes)
    ends = np.empty(len(cuts.time))
    ends[:-1] = cuts.time[1:]
    ends[cuts.first[1:] - 1] = until
    demand, weight_sum = _at_start(claims, odd[comes | ~real], tenants)
    odd_from, odd_to = cuts.first[tenant], cuts.first[tenant + 1]
    odd_from[comes] = cuts.place[tenants : tenants + arrivals]
    odd_to[goes] = cuts.place[tenants + arrivals : tenants + arrivals + len(cuts.goes)]
    return _Timeline(
        tenant=cuts.tenant,
        seconds=ends - cuts.time,
        demand=cuts.totals(demand, claims.gpus),
        weight_sum=cuts.totals(weight_sum, claims.weight),
        quota=_quotas(cluster, steps, cuts),
        first=cuts.first,
        odd=odd,
        odd_from=odd_from,
        odd_to=np.where(real, odd_to, odd_from),
    )


def _uncut(claims: Claims, cluster: Cluster, steps: _Steps, seconds: float) -> _Timeline:
    """Nothing changes in the window."""
    tenants = len(cluster.weight)
    first = np.arange(tenants + 1)
    demand, weight_sum = _at_start(claims, _NOBODY, tenants)
    quota = _steady_quotas(cluster, steps.present)
    whole = np.full(tenants, seconds)
    return _Timeline(first[:-1], whole, demand, weight_sum, quota, first, _NOBODY, _NOBODY, _NOBODY)


def _at_start(claims: Claims, absent: Ints, tenants: int) -> tuple[Floats, Floats]:
    """Demand and weights of each tenant at the window's beginning, when some claims are not active."""
    gpus, weight = claims.gpus, claims.weight
    if len(absent):
        gpus, weight = gpus.copy(), weight.copy()
        gpus[absent], weight[absent] = 0, 0.0
    return totals(claims.tenant, gpus, tenants), totals(claims.tenant, weight, tenants)


def _steady_quotas(cluster: Cluster, present: Bools) -> Floats:
    """Q_j while the same tenants count."""
    weight_sum = np.full(len(present), cluster.weight[present].sum())
    return np.where(present, metrics.quota(cluster.total_gpus, cluster.weight, weight_sum), 0.0)


def _quotas(cluster: Cluster, steps: _Steps, cuts: _Cuts) -> Floats:
    """Q_j in every segment: nothing for a tenant that does not count then."""
    if not len(steps.time):
        return _steady_quotas(cluster, steps.present).take(cuts.tenant)
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
    running = values.cumsum()
    begin = first.take(group)
    anew: Numbers = running - running.take(begin) + values.take(begin)
    return anew


def _per_claim(claims: Claims, line: _Timeline, level: Floats) -> Floats:
    """Integral of each claim's rate over its segments."""
    at_start = line.first[:-1]
    share = metrics.job_share(level.take(at_start).take(claims.tenant), claims.weight)
    owed = metrics.job_claim(claims.gpus, share) * line.seconds.take(at_start).take(claims.tenant)
    if line.uncut:  # then a claim was active all along, or not at all
        owed[line.odd] = 0.0
        return owed
    several = (line.first[1:] - at_start) > 1
    several = several.take(claims.tenant)
    several[line.odd] = False
    many = several.nonzero()[0]
    owed[many] = _over_whole_window(claims.tenant[many], claims.gpus[many], claims.weight[many], line, level)
    owed[line.odd] = _over_parts(claims.gpus[line.odd], claims.weight[line.odd], line, level)
    return owed


def _over_whole_window(tenant: Ints, gpus: Ints, weight: Floats, line: _Timeline, level: Floats) -> Floats:
    """Jobs active all along: segments sorted by level are below or above the job's ceiling, by bisection."""
    order = np.lexsort((level, line.tenant))
    sorted_level, seconds = level[order], line.seconds[order]
    below = _from_zero(sorted_level * seconds)
    above = _from_zero(seconds)
    ceiling = metrics.ceiling(gpus, weight)
    low = _pairs(line.tenant, sorted_level).searchsorted(_pairs(tenant, ceiling), side="right")
    capped_seconds = above[line.first[tenant + 1]] - above[low]
    capped = np.where(capped_seconds > 0, gpus * capped_seconds, 0.0)
    return weight * (below[low] - below[line.first[tenant]]) + capped


def _pairs(tenant: Ints, level: Floats) -> NDArray[np.complex128]:
    """Complex numbers sort by their real part first."""
    pairs = np.empty(len(tenant), dtype=np.complex128)
    pairs.real, pairs.imag = tenant, level
    return pairs


def _over_parts(gpus: Ints, weight: Floats, line: _Timeline, level: Floats) -> Floats:
    """Jobs that came or went: one running integral per distinct ceiling, read at both ends."""
    owed = np.zeros(len(gpus))
    alike: dict[float, list[int]] = defaultdict(list)
    for row, ceiling in enumerate(metrics.ceiling(gpus, weight).tolist()):
        alike[ceiling].append(row)
    for ceiling, rows in alike.items():
        integral = _from_zero(np.minimum(level, ceiling) * line.seconds)
        owed[rows] = weight[rows] * (integral[line.odd_to[rows]] - integral[line.odd_from[rows]])
    return owed


def totals(group: Ints, values: NDArray[np.int64] | Floats, count: int) -> Floats:
    """Sum of the values of each of `count` groups."""
    return np.bincount(group, values, count).astype(np.float64, copy=False)


def _from_zero(values: Floats) -> Floats:
    """Integral up to each boundary."""
    integral = np.zeros(len(values) + 1)
    values.cumsum(out=integral[1:])
    return integral


def _water_levels(claims: Claims, line: _Timeline, share: Floats) -> Floats:
    """Max-min level of every segment: the n-th segments of all tenants at once, for n = 0, 1, ..."""
    highest = float(np.max(metrics.ceiling(claims.gpus, claims.weight)[claims.weight > 0], initial=0.0))
    level = np.zeros(len(share))
    claim_from, claim_to = line.first[claims.tenant], line.first[claims.tenant + 1]
    claim_from[line.odd], claim_to[line.odd] = line.odd_from, line.odd_to
    for number in range(int(np.diff(line.first).max(initial=0))):
        at = line.first[:-1] + number
        tenants = np.flatnonzero(at < line.first[1:])
        group = np.full(len(line.first) - 1, -1, dtype=np.int64)
        group[tenants] = np.arange(len(tenants))
        row = at[claims.tenant]
        there = (group[claims.tenant] >= 0) & (claim_from <= row) & (row < claim_to)
        some = claims.take(there)
        rows = at[tenants]
        level[rows] = metrics.water_levels(group[some.tenant], some.gpus, some.weight, share[rows])
    return np.minimum(level, highest)
