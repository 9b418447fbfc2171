"""Charge one window: lives and runs in, a ledger at the window's end out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.lives import JobLives, JobRuns, Window, join
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.ledger.shares import Changes, Claims, Cluster, integrate, integrate_over_changes, totals
from slurm_fair.model import ClosedRuns, JobAccounts, Ledger, TenantAccounts
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of

# Closed runs are forgotten many at a time: when their memory has become so much (a part) too long.
_FORGET_PART = 1 / 8


class Charged(NamedTuple):
    """What each life has come to at the window's end, and what each of its runs has had since the beginning."""

    had: Floats
    owed: Floats
    waited: Floats
    ran: Floats
    used: Floats


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the window adds to claims and tenants."""

    lives: Floats
    quota: Floats
    demand: Floats


def charge(
    ledger: Ledger, window: Window, until: float, settings: LedgerSettings, changes: Changes = ()
) -> tuple[Ledger, Charged]:
    """Integrals up to `until`; weights and the cluster's size are those that the ledger knew before.

    `changes` are those of the size since then, as far as their instants are known.
    """
    accounts, lives, runs = window.accounts, window.lives, window.runs
    charged, closed = runs.less_already_charged(window.fresh, accounts.key, ledger.closed)
    count, used = lives.ended.size, gpu_seconds(charged, ledger.began)
    had = totals(runs.life, used - charged.charged, count)
    owed = _owed(ledger, accounts, lives, until, settings, changes)
    tenants = _tenants_after(ledger.tenants, accounts.tenant, lives, had, owed, ledger.began)
    if charged is not runs:
        charged = _all_theirs(lives, charged)
        had = totals(runs.life, used - charged.charged, count)
    ran = totals(runs.life, runs.end - runs.start - charged.charged_seconds, count)
    # A life's seconds are negative when it had ended before the last look was taken.
    waited = accounts.waited + (lives.active_to - lives.active_from) - ran
    result = Charged(
        had=accounts.had + had,
        owed=accounts.owed + owed.lives,
        waited=np.maximum(waited, 0.0),
        ran=accounts.ran + ran,
        used=used,
    )
    jobs = _accounts_after(window, result)
    closed = _closed_after(closed, window, used, until, settings.closed_memory_seconds)
    return Ledger(until, ledger.began, ledger.total_gpus, tenants, jobs, closed), result


def _all_theirs(lives: JobLives, runs: JobRuns) -> JobRuns:
    """A job without an account has what its runs had, also the part that its tenant was charged earlier."""
    met = lives.met[runs.life]
    return runs.with_columns(
        charged=np.where(met, runs.charged, 0.0),
        charged_seconds=np.where(met, runs.charged_seconds, 0.0),
    )


def gpu_seconds(runs: JobRuns, began: float) -> Floats:
    """What runs held since the ledger began."""
    seconds: Floats = np.maximum(runs.end - np.maximum(runs.start, began), 0.0)
    return seconds * runs.gpus


def _owed(
    ledger: Ledger,
    accounts: JobAccounts,
    lives: JobLives,
    until: float,
    settings: LedgerSettings,
    changes: Changes,
) -> _Shared:
    known, submit = accounts.active, accounts.submit  # known: active as last seen
    since = np.where(known, -np.inf, np.maximum(lives.active_from, ledger.began))
    claims = Claims(accounts.tenant, accounts.gpus, accounts.weight, since, lives.active_to)
    real = (lives.active_to > lives.active_from) | known
    some = not all_of(real)
    if some:
        rows = real.nonzero()[0]
        claims, submit, known = claims.take(rows), submit[rows], known[rows]
    cluster = Cluster(max(ledger.total_gpus, 0.0), ledger.tenants.weight, ledger.tenants.last_job)
    if changes:
        window = integrate_over_changes(claims, cluster, changes, ledger.time, until, settings)
    else:
        window = integrate(claims, cluster, ledger.time, until, settings)
    owed, quota, demand = window.claims, window.quota, window.demand
    late = np.where(known, claims.until, claims.since) < ledger.time
    if any_of(late):
        submit = np.where(known, submit, claims.since)
        missed = _late(ledger, claims, submit, late, cluster, window.first_level, settings)
        owed, quota, demand = owed + missed.lives, quota + missed.quota, demand + missed.demand
    if some:
        owed, per_claim = np.zeros(real.size), owed
        owed[rows] = per_claim
    return _Shared(owed, quota, demand)


def _late(
    ledger: Ledger,
    claims: Claims,
    submit: Floats,
    late: Bools,
    cluster: Cluster,
    level: Floats,
    settings: LedgerSettings,
) -> _Shared:
    """Mend what was integrated before the news came (Slurm's times are whole seconds, cut off).

    The last seconds are integrated again, once as they were believed and once as they are now known, over the
    jobs that the ledger knows. That is exact unless other jobs of the tenant ended, or nodes or weights
    changed, in those very seconds. News older than `late_seconds` (a partition that became managed) changes
    only what the job itself is owed, at today's level: siblings and tenants have been told their shares.
    """
    known = np.isneginf(claims.since)
    news = claims.take(np.flatnonzero(late))
    from_time = np.where(known[late], news.until, news.since)
    earliest = max(ledger.began, ledger.time - settings.late_seconds, float(from_time.min()))
    joined = cluster.last_job[news.tenant] + settings.tenant_memory_seconds <= ledger.time
    widened = bool(joined.any()) and not settings.everyone_counts  # it changes everybody's quota
    concerned = np.full(len(cluster.weight), widened)
    concerned[news.tenant] = True
    rows = np.flatnonzero(concerned[claims.tenant])
    is_known = np.flatnonzero(known[rows])
    truth = claims.take(rows).with_columns(since=submit[rows])
    belief = truth.take(is_known).with_columns(until=np.full(len(is_known), np.inf))
    # Tenants outside the concerned ones keep their quotas: they count as present through last_job.
    now = integrate(truth, cluster, earliest, ledger.time, settings)
    then = integrate(belief, cluster, earliest, ledger.time, settings)
    owed = np.zeros(len(claims))
    owed[rows] = now.claims
    owed[rows[is_known]] -= then.claims
    older = np.where(known[late], 0.0, np.maximum(earliest - news.since, 0.0))
    share = metrics.job_share(level[news.tenant], news.weight)
    owed[late] += metrics.job_claim(news.gpus, share) * older
    quota, demand = now.quota - then.quota, now.demand - then.demand
    return _Shared(owed, np.where(concerned, quota, 0.0), np.where(concerned, demand, 0.0))


def _tenants_after(
    tenants: TenantAccounts, tenant: Ints, lives: JobLives, had: Floats, owed: _Shared, began: float
) -> TenantAccounts:
    last_job, count = tenants.last_job.copy(), tenants.last_job.size
    real = lives.active_to > np.maximum(lives.active_from, began)
    if all_of(real):
        np.maximum.at(last_job, tenant, lives.active_to)
    else:
        np.maximum.at(last_job, tenant[real], lives.active_to[real])
    return TenantAccounts(
        names=tenants.names,
        weight=tenants.weight,
        had=tenants.had + totals(tenant, had, count),
        owed_quota=tenants.owed_quota + owed.quota,
        owed_demand=tenants.owed_demand + owed.demand,
        last_job=last_job,
    )


def _accounts_after(window: Window, result: Charged) -> JobAccounts:
    """Of those who live on, sorted by key."""
    accounts, lives, runs = window.accounts, window.lives, window.runs
    run_start, run_had = np.zeros(lives.ended.size), np.zeros(lives.ended.size)
    life, start, used = runs.life, runs.start, result.used
    if window.over.size:
        rows = runs.open.nonzero()[0]
        life, start, used = life.take(rows), start.take(rows), used.take(rows)
    run_start[life], run_had[life] = start, used
    after = JobAccounts(
        key=accounts.key,
        submit=accounts.submit,
        incarnation=lives.incarnation,
        restarts=lives.restarts,
        tenant=lives.tenant,
        gpus=lives.gpus,
        weight=lives.weight,
        had=result.had,
        owed=result.owed,
        waited=result.waited,
        ran=result.ran,
        run_start=run_start,
        run_had=run_had,
        active=lives.active,
    )
    if window.ended.size:
        after = after.take((~lives.ended).nonzero()[0])
    if any_of(after.key[1:] < after.key[:-1]):
        after = after.take(after.key.argsort(kind="stable"))
    return after


def _closed_after(
    closed: ClosedRuns, window: Window, used: Floats, until: float, memory_seconds: float
) -> ClosedRuns:
    """Runs that ended, and ends of jobs that did not run since they were submitted, so that each counts once."""
    if window.over.size or window.ended.size:
        closed = join(closed, _closed_now(window, used, closed.since))
    forget_before = until - memory_seconds
    if forget_before - closed.since < _FORGET_PART * memory_seconds:
        return closed
    kept = (closed.end >= forget_before).nonzero()[0]
    return replace(closed.take(kept), since=forget_before)


def _closed_now(window: Window, used: Floats, since: float) -> ClosedRuns:
    accounts, lives, runs, over = window.accounts, window.lives, window.runs, window.over
    life, incarnation = runs.life[over], runs.incarnation[over]
    without_run = lives.ended.copy()
    without_run[life[incarnation == lives.incarnation[life]]] = False
    ends = without_run.nonzero()[0]
    with_run = ClosedRuns(
        key=accounts.key[life],
        submit=incarnation,
        start=runs.start[over],
        end=runs.end[over],
        gpus=runs.gpus[over],
        tenant=accounts.tenant[life],
        charged=used[over],
        since=since,
    )
    if not ends.size:
        return with_run
    nothing = np.zeros(ends.size)
    return with_run.joined(
        ClosedRuns(
            key=accounts.key[ends],
            submit=lives.incarnation[ends],
            start=nothing,
            end=lives.active_to[ends],
            gpus=accounts.gpus[ends],
            tenant=accounts.tenant[ends],
            charged=nothing,
            since=since,
        )
    )
