"""The segments of a window in which each tenant's demand, weight and quota are constant."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import formulas
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.columns import NO_ROWS, Bools, Floats, Ints, all_of, any_of, ranks

Numbers = TypeVar("Numbers", NDArray[np.int64], NDArray[np.float64])

_NEVER = np.zeros(0)


class ActiveSpans(NamedTuple):
    """The span in which each job was active, in any order; a job that never was begins at inf and ends at -inf."""

    tenant: Ints
    gpus: Ints | Floats  # counts; as floats they need not be made such at every product
    weight: Floats
    since: Floats
    until: Floats

    def take(self, rows: Ints | Bools) -> Self:
        return type(self)(
            self.tenant[rows], self.gpus[rows], self.weight[rows], self.since[rows], self.until[rows]
        )


class ClusterInWindow(NamedTuple):
    """The GPUs and weights by which tenants share the cluster during a window."""

    total_gpus: float
    weight: Floats  # of each tenant
    last_job: Floats  # when each tenant had last had an active job before the window, -inf = never


class Timeline(NamedTuple):
    """Segments of constant shares, sorted by (tenant, time); each tenant has at least one."""

    uncut: bool  # each tenant has just one
    tenant: Ints
    seconds: Floats
    demand: Floats
    weight_sum: Floats
    quota: Floats
    first: Ints  # first segment of each tenant, and one past the last segment of all
    odd: Ints  # claims that were not active all along; the others have all of their tenant's segments
    odd_from: Ints  # the segments of those; none for one that was not active in the window at all
    odd_to: Ints


def timeline(
    claims: ActiveSpans,
    cluster: ClusterInWindow,
    settings: LedgerSettings,
    since: float,
    until: float,
    changing: Ints | None,
) -> Timeline:
    """Cut the window at every event that changes a tenant's demand, weights or quota.

    `changing` are the only claims that may begin or end in it, where that is known.
    """
    steps = _presence(claims, cluster, since, until, settings)
    odd, begin, end = _not_along(claims, since, until, changing)
    if not odd.size and not steps.time.size:
        return _uncut(claims, cluster, steps, until - since)
    real = (end > begin) & (end > since) & (begin < until)
    comes, goes = (real & (begin > since)).nonzero()[0], (real & (end < until)).nonzero()[0]
    came, gone, tenant = odd[comes], odd[goes], claims.tenant[odd]
    when = np.concatenate((begin[comes], end[goes]))
    cuts = _cuts(claims.tenant[np.concatenate((came, gone))], when, steps, since)
    demand, weight_sum = _at_start(claims, odd[~real], came, steps.present.size)
    first, arrivals = cuts.first, steps.present.size + comes.size
    odd_from, odd_to = first[tenant], first[tenant + 1]
    odd_from[comes] = cuts.place[steps.present.size : arrivals]
    odd_to[goes] = cuts.place[arrivals : arrivals + goes.size]
    return Timeline(
        uncut=False,
        tenant=cuts.tenant,
        seconds=cuts.seconds(until),
        demand=cuts.running(demand, claims.gpus[came], claims.gpus[gone]),
        weight_sum=cuts.running(weight_sum, claims.weight[came], claims.weight[gone]),
        quota=_quotas(cluster, steps, cuts),
        first=first,
        odd=odd,
        odd_from=odd_from,
        odd_to=odd_to if all_of(real) else np.where(real, odd_to, odd_from),
    )


class _Steps(NamedTuple):
    """Tenants that count in the quota: at the beginning, and each that joins (+1) or leaves (-1), with when."""

    present: Bools
    tenant: Ints
    time: Floats
    change: Ints


def _presence(
    claims: ActiveSpans, cluster: ClusterInWindow, since: float, until: float, settings: LedgerSettings
) -> _Steps:
    """A tenant counts while it has an active job and for the memory after it."""
    if settings.everyone_counts:
        return _Steps(np.ones(cluster.weight.size, dtype=bool), NO_ROWS, _NEVER, NO_ROWS)
    memory_seconds = settings.tenant_memory_seconds
    remembered = cluster.last_job + memory_seconds
    always = remembered >= until
    if all_of(always):
        return _Steps(always, NO_ROWS, _NEVER, NO_ROWS)
    rows = (~always).take(claims.tenant).nonzero()[0]
    if not len(rows) and not any_of((remembered > since) & ~always):  # who is forgotten stays so
        return _Steps(always, NO_ROWS, _NEVER, NO_ROWS)
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
    """The instants at which a tenant's presence really changes, from overlapping spans."""
    order = np.lexsort((-change, time, who))
    who, time, change = who[order], time[order], change[order]
    first = np.searchsorted(who, np.arange(len(count) + 1))
    before = count[who] + _running_in_group(change, first[who]) - change
    real = ((before == 0) & (change > 0)) | ((before == 1) & (change < 0))
    return _Steps(always | (count > 0), who[real], time[real], change[real])


class _Cuts(NamedTuple):
    """The instants that cut a window: per tenant its beginning, arrivals, departures and changes of quotas."""

    order: Ints  # the rows below sorted by (tenant, time)
    place: Ints  # where each row went
    tenant: Ints  # per sorted row
    time: Floats
    first: Ints  # first sorted row of each tenant, and one past the last of all
    begin: Ints  # first sorted row of the same tenant, per sorted row
    instants: Floats  # changes of quotas

    def seconds(self, until: float) -> Floats:
        """The length of each segment in seconds."""
        ends = np.empty(self.time.size)
        ends[:-1] = self.time[1:]
        ends[self.first[1:] - 1] = until
        return ends - self.time

    def running(self, at_start: Floats, comes: Ints | Floats, goes: Ints | Floats) -> Floats:
        """Each tenant's amount in every segment: the one at the start, and all that comes and goes."""
        changes: Floats = np.concatenate((at_start, comes, -goes))
        if self.instants.size:
            changes = np.concatenate((changes, np.zeros(self.instants.size * at_start.size)))
        return _running_in_group(changes[self.order], self.begin)


def _cuts(who: Ints, when: Floats, steps: _Steps, since: float) -> _Cuts:
    """`who` comes or goes `when`."""
    everyone, tenants = np.arange(steps.present.size + 1), steps.present.size
    tenant, time = np.concatenate((everyone[:-1], who)), np.concatenate((constant(tenants, since), when))
    instants = _NEVER
    if steps.time.size:
        instants = np.unique(steps.time)
        tenant = np.concatenate((tenant, np.tile(everyone[:-1], instants.size)))
        time = np.concatenate((time, np.repeat(instants, tenants)))
    order = np.lexsort((time, tenant))
    tenant = tenant[order]
    first = tenant.searchsorted(everyone)
    return _Cuts(order, ranks(order.size, order), tenant, time[order], first, first[tenant], instants)


def _not_along(
    claims: ActiveSpans, since: float, until: float, changing: Ints | None
) -> tuple[Ints, Floats, Floats]:
    """Claims that were not active all along, and since and until when they were."""
    if since >= until:
        return np.arange(claims.tenant.size), claims.since, claims.until
    if changing is None:
        changing = (~((claims.since <= since) & (claims.until >= until))).nonzero()[0]
    begin, end = claims.since[changing], claims.until[changing]
    along = (begin <= since) & (end >= until)
    if any_of(along):
        changing, begin, end = changing[~along], begin[~along], end[~along]
    return changing, begin, end


def _uncut(claims: ActiveSpans, cluster: ClusterInWindow, steps: _Steps, seconds: float) -> Timeline:
    """Nothing changes in the window."""
    tenants = cluster.weight.size
    first = np.arange(tenants + 1)
    demand = totals(claims.tenant, claims.gpus, tenants)
    weight_sum = totals(claims.tenant, claims.weight, tenants)
    quota, whole = _steady_quotas(cluster, steps.present), constant(tenants, seconds)
    return Timeline(True, first[:-1], whole, demand, weight_sum, quota, first, NO_ROWS, NO_ROWS, NO_ROWS)


def _at_start(claims: ActiveSpans, never: Ints, came: Ints, tenants: int) -> tuple[Floats, Floats]:
    """Demand and weights of each tenant at the window's beginning, when some claims are not active."""
    gpus, weight = claims.gpus.copy(), claims.weight.copy()
    gpus[came], weight[came] = 0, 0.0
    if never.size:
        gpus[never], weight[never] = 0, 0.0
    return totals(claims.tenant, gpus, tenants), totals(claims.tenant, weight, tenants)


def _steady_quotas(cluster: ClusterInWindow, present: Bools) -> Floats:
    """Q_j while the same tenants count."""
    weight = counts = cluster.weight
    if not all_of(present):
        weight, counts = weight * present, weight[present]
    return formulas.quota(cluster.total_gpus, weight, float(np.add.reduce(counts)))


def _quotas(cluster: ClusterInWindow, steps: _Steps, cuts: _Cuts) -> Floats:
    """Q_j in every segment: nothing for a tenant that does not count then."""
    if not steps.time.size:
        return _steady_quotas(cluster, steps.present)[cuts.tenant]
    changes = np.zeros(len(cuts.order), dtype=np.int64)
    quota_rows = cuts.place[len(cuts.order) - len(cuts.instants) * len(cluster.weight) :]
    at = np.searchsorted(cuts.instants, steps.time)
    changes[quota_rows[at * len(cluster.weight) + steps.tenant]] = steps.change
    changes[cuts.first[:-1]] += steps.present
    present = _running_in_group(changes, cuts.begin) > 0
    by_step = _weight_sums(cluster, steps, cuts.instants)
    weight_sum = by_step[np.searchsorted(cuts.instants, cuts.time, side="right")]
    return np.where(present, formulas.quota(cluster.total_gpus, cluster.weight[cuts.tenant], weight_sum), 0.0)


def _weight_sums(cluster: ClusterInWindow, steps: _Steps, instants: Floats) -> Floats:
    """Sum of the weights of the tenants that count: at the beginning, then from each instant on."""
    at = np.searchsorted(instants, steps.time)
    changes = np.bincount(at, steps.change * cluster.weight[steps.tenant], len(instants))
    return np.cumsum(np.concatenate([[cluster.weight[steps.present].sum()], changes]))


def _running_in_group(values: Numbers, begin: Ints) -> Numbers:
    """Running sum that starts anew with each group; `begin` is the row at which the row's own group begins."""
    running = values.cumsum()
    anew: Numbers = running - running[begin]
    anew += values[begin]
    return anew


def constant(count: int, value: float) -> Floats:
    """One value over and over; np.full takes four times as long for a few."""
    values = np.empty(count)
    values.fill(value)
    return values


def totals(group: Ints, values: NDArray[np.int64] | Floats, count: int) -> Floats:
    """Sum of the values of each of `count` groups."""
    return np.bincount(group, values, count).astype(np.float64, copy=False)
