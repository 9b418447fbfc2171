"""Charge one window: lives and runs in, a ledger at the window's end out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.lives import JobLives, JobRuns, at, join
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.ledger.shares import Claims, Cluster, integrate, totals
from slurm_fair.model import ClosedRuns, JobAccounts, Ledger, TenantAccounts
from slurm_fair.model.columns import Bools, Floats


@dataclass(frozen=True, slots=True)
class Totals:
    """What each life has come to by the window's end."""

    had: Floats
    owed: Floats
    waited: Floats
    ran: Floats


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the window adds to claims and tenants."""

    lives: Floats
    quota: Floats
    demand: Floats


def charge(
    ledger: Ledger, lives: JobLives, runs: JobRuns, until: float, settings: LedgerSettings
) -> tuple[Ledger, Totals]:
    """Integrals up to `until`; weights and the cluster's size are those that the ledger knew before."""
    runs, closed = runs.less_already_charged(lives.key, ledger.closed)
    used = gpu_seconds(runs, ledger.began)
    had = totals(runs.life, used - runs.charged, len(lives))
    owed = _owed(ledger, lives, until, settings)
    result = _totals(ledger, lives, runs, used, owed)
    charged = replace(
        ledger,
        time=until,
        tenants=_tenants_after(ledger.tenants, lives, had, owed, ledger.began),
        jobs=_accounts_after(lives, runs, used, result),
        closed=_closed_after(closed, lives, runs, used, until - settings.closed_memory_seconds),
    )
    return charged, result


def _totals(ledger: Ledger, lives: JobLives, runs: JobRuns, used: Floats, owed: _Shared) -> Totals:
    jobs, account = ledger.jobs, lives.account
    # A job without an account has what its runs had, also the part that its tenant was charged earlier.
    known = account[runs.life] >= 0
    charged, seconds = np.where(known, runs.charged, 0.0), np.where(known, runs.charged_seconds, 0.0)
    ran = totals(runs.life, runs.end - runs.start - seconds, len(lives))
    return Totals(
        had=at(jobs.had, account, 0.0) + totals(runs.life, used - charged, len(lives)),
        owed=at(jobs.owed, account, 0.0) + owed.lives,
        waited=np.maximum(at(jobs.waited, account, 0.0) + _active_seconds(ledger, lives) - ran, 0.0),
        ran=at(jobs.ran, account, 0.0) + ran,
    )


def gpu_seconds(runs: JobRuns, began: float) -> Floats:
    """What runs held since the ledger began."""
    seconds: Floats = np.maximum(runs.end - np.maximum(runs.start, began), 0.0)
    return seconds * runs.gpus


def _active_seconds(ledger: Ledger, lives: JobLives) -> Floats:
    """Seconds by which each life grew; negative for one that had ended before the last look was taken."""
    known_and_active = at(ledger.jobs.active, lives.account, False)
    seconds: Floats = lives.active_to - np.where(known_and_active, ledger.time, lives.active_from)
    return seconds


def _owed(ledger: Ledger, lives: JobLives, until: float, settings: LedgerSettings) -> _Shared:
    known = at(ledger.jobs.active, lives.account, False)
    real = np.flatnonzero((lives.active_to > lives.active_from) | known)
    since = np.where(known, -np.inf, np.maximum(lives.active_from, ledger.began))[real]
    until_when = lives.active_to[real]
    claims = Claims(lives.tenant[real], lives.gpus[real], lives.weight[real], since, until_when)
    cluster = Cluster(ledger.total_gpus, ledger.tenants.weight, ledger.tenants.last_job)
    window = integrate(claims, cluster, ledger.time, until, settings)
    owed, quota, demand = window.claims, window.quota, window.demand
    late = (~known[real] & (since < ledger.time)) | (known[real] & (until_when < ledger.time))
    if late.any():
        submit = np.where(known[real], lives.submit[real], since)
        missed = _late(ledger, claims, submit, late, cluster, window.first_level, settings)
        owed, quota, demand = owed + missed.lives, quota + missed.quota, demand + missed.demand
    per_life = np.zeros(len(lives))
    per_life[real] = owed
    return _Shared(per_life, quota, demand)


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
    joined = cluster.last_job + settings.tenant_memory_seconds <= ledger.time
    concerned = np.full(len(cluster.weight), bool(joined[news.tenant].any()))  # it changes everybody's quota
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
    tenants: TenantAccounts, lives: JobLives, had: Floats, owed: _Shared, began: float
) -> TenantAccounts:
    real = np.flatnonzero(lives.active_to > np.maximum(lives.active_from, began))
    last_job = tenants.last_job.copy()
    np.maximum.at(last_job, lives.tenant[real], lives.active_to[real])
    return tenants.with_columns(
        had=tenants.had + totals(lives.tenant, had, len(tenants)),
        owed_quota=tenants.owed_quota + owed.quota,
        owed_demand=tenants.owed_demand + owed.demand,
        last_job=last_job,
    )


def _accounts_after(lives: JobLives, runs: JobRuns, used: Floats, result: Totals) -> JobAccounts:
    run_start, run_had = np.zeros(len(lives)), np.zeros(len(lives))
    run_start[runs.life[runs.open]] = runs.start[runs.open]
    run_had[runs.life[runs.open]] = used[runs.open]
    left = np.flatnonzero(~lives.ended)
    if (np.diff(lives.key[left]) < 0).any():
        left = left[np.argsort(lives.key[left], kind="stable")]
    return JobAccounts(
        key=lives.key.take(left),
        submit=lives.submit.take(left),
        incarnation=lives.incarnation.take(left),
        restarts=lives.restarts.take(left),
        tenant=lives.tenant.take(left),
        gpus=lives.gpus.take(left),
        weight=lives.weight.take(left),
        had=result.had.take(left),
        owed=result.owed.take(left),
        waited=result.waited.take(left),
        ran=result.ran.take(left),
        run_start=run_start.take(left),
        run_had=run_had.take(left),
        active=(lives.account[left] < 0) | (lives.active_to[left] > lives.active_from[left]),
    )


def _closed_after(
    closed: ClosedRuns, lives: JobLives, runs: JobRuns, used: Floats, forget_before: float
) -> ClosedRuns:
    """Runs that ended, and ends of jobs that did not run since they were submitted, so that each counts once."""
    over = runs.take(np.flatnonzero(~runs.open))
    without_run = lives.ended.copy()
    without_run[over.life[over.incarnation == lives.incarnation[over.life]]] = False
    ends = lives.take(np.flatnonzero(without_run))
    fresh = ClosedRuns(
        key=np.concatenate([lives.key[over.life], ends.key]),
        submit=np.concatenate([over.incarnation, ends.incarnation]),
        start=np.concatenate([over.start, np.zeros(len(ends))]),
        end=np.concatenate([over.end, ends.active_to]),
        gpus=np.concatenate([over.gpus, ends.gpus]),
        tenant=np.concatenate([lives.tenant[over.life], ends.tenant]),
        charged=np.concatenate([used[~runs.open], np.zeros(len(ends))]),
        since=closed.since,
    )
    closed = join(closed, fresh)
    if len(closed) and forget_before > closed.since and (old := closed.end < forget_before).any():
        closed = closed.take(~old)
    return replace(closed, since=max(closed.since, forget_before))
