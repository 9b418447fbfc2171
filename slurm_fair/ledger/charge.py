"""Charge one window: lives and runs in, a ledger at the window's end out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.lives import JobLives, JobRuns, at, join
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.ledger.shares import Changes, Claims, Cluster, integrate, integrate_over_changes, totals
from slurm_fair.model import ClosedRuns, JobAccounts, Ledger, TenantAccounts
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of, begins_with


class Totals(NamedTuple):
    """What each life has come to, at one end of the window."""

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
    ledger: Ledger,
    lives: JobLives,
    runs: JobRuns,
    until: float,
    settings: LedgerSettings,
    changes: Changes = (),
) -> tuple[Ledger, Totals]:
    """Integrals up to `until`; weights and the cluster's size are those that the ledger knew before.

    `changes` are those of the size since then, as far as their instants are known.
    """
    whole, (runs, closed) = runs, runs.less_already_charged(lives.key, ledger.closed)
    before, active = _before(ledger.jobs, lives.account)
    used = gpu_seconds(runs, ledger.began)
    had = totals(runs.life, used - runs.charged, len(lives))
    owed = _owed(ledger, lives, active, until, settings, changes)
    result = _totals(before, lives, runs if runs is whole else _all_theirs(lives, runs), used, owed.lives)
    tenants = _tenants_after(ledger.tenants, lives, had, owed, ledger.began)
    jobs = _accounts_after(lives, runs, used, result)
    closed = _closed_after(closed, lives, runs, used, until - settings.closed_memory_seconds)
    return Ledger(until, ledger.began, ledger.total_gpus, tenants, jobs, closed), result


def _before(jobs: JobAccounts, account: Ints) -> tuple[Totals, Bools]:
    """What each life had come to, and whether it was active as last seen; nothing for one without an account."""
    columns = (jobs.had, jobs.owed, jobs.waited, jobs.ran)
    fresh = len(account) - len(jobs)
    if not begins_with(account, np.arange(len(jobs))):
        return Totals(*(at(column, account, 0.0) for column in columns)), at(jobs.active, account, False)
    if not fresh:  # a life for each account, in their order
        return Totals(*columns), jobs.active
    nothing = np.zeros(fresh)
    active = np.concatenate([jobs.active, np.zeros(fresh, dtype=bool)])
    return Totals(*(np.concatenate([column, nothing]) for column in columns)), active


def _all_theirs(lives: JobLives, runs: JobRuns) -> JobRuns:
    """A job without an account has what its runs had, also the part that its tenant was charged earlier."""
    known = lives.account[runs.life] >= 0
    return runs.with_columns(
        charged=np.where(known, runs.charged, 0.0),
        charged_seconds=np.where(known, runs.charged_seconds, 0.0),
    )


def _totals(before: Totals, lives: JobLives, runs: JobRuns, used: Floats, owed: Floats) -> Totals:
    ran = totals(runs.life, runs.end - runs.start - runs.charged_seconds, len(lives))
    # A life's seconds are negative when it had ended before the last look was taken.
    waited = before.waited + (lives.active_to - lives.active_from) - ran
    return Totals(
        had=before.had + totals(runs.life, used - runs.charged, len(lives)),
        owed=before.owed + owed,
        waited=np.maximum(waited, 0.0),
        ran=before.ran + ran,
    )


def gpu_seconds(runs: JobRuns, began: float) -> Floats:
    """What runs held since the ledger began."""
    seconds: Floats = np.maximum(runs.end - np.maximum(runs.start, began), 0.0)
    return seconds * runs.gpus


def _owed(
    ledger: Ledger,
    lives: JobLives,
    known: Bools,
    until: float,
    settings: LedgerSettings,
    changes: Changes,
) -> _Shared:
    """`known` are the lives that were active as last seen."""
    since = np.where(known, -np.inf, np.maximum(lives.active_from, ledger.began))
    claims, submit = Claims(lives.tenant, lives.gpus, lives.weight, since, lives.active_to), lives.submit
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
        owed, per_claim = np.zeros(len(lives)), owed
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
    tenants: TenantAccounts, lives: JobLives, had: Floats, owed: _Shared, began: float
) -> TenantAccounts:
    last_job, tenant, until = tenants.last_job.copy(), lives.tenant, lives.active_to
    real = until > np.maximum(lives.active_from, began)
    if not all_of(real):
        tenant, until = tenant[real], until[real]
    np.maximum.at(last_job, tenant, until)
    return tenants.with_columns(
        had=tenants.had + totals(lives.tenant, had, len(tenants)),
        owed_quota=tenants.owed_quota + owed.quota,
        owed_demand=tenants.owed_demand + owed.demand,
        last_job=last_job,
    )


def _accounts_after(lives: JobLives, runs: JobRuns, used: Floats, result: Totals) -> JobAccounts:
    run_start, run_had = np.zeros(len(lives)), np.zeros(len(lives))
    rows = runs.open.nonzero()[0]
    life = runs.life.take(rows)
    run_start[life], run_had[life] = runs.start.take(rows), used.take(rows)
    accounts = JobAccounts(
        key=lives.key,
        submit=lives.submit,
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
        active=(lives.account < 0) | (lives.active_to > lives.active_from),
    )
    if any_of(lives.ended):
        accounts = accounts.take(~lives.ended)
    if any_of(accounts.key[1:] < accounts.key[:-1]):
        accounts = accounts.take(accounts.key.argsort(kind="stable"))
    return accounts


def _closed_after(
    closed: ClosedRuns, lives: JobLives, runs: JobRuns, used: Floats, forget_before: float
) -> ClosedRuns:
    """Runs that ended, and ends of jobs that did not run since they were submitted, so that each counts once."""
    if not all_of(runs.open) or any_of(lives.ended):
        closed = join(closed, _closed_now(lives, runs, used, closed.since))
    if forget_before <= closed.since:
        return closed
    old = closed.end < forget_before
    if any_of(old):
        closed = closed.take(~old)
    return closed.with_columns(since=forget_before)


def _closed_now(lives: JobLives, runs: JobRuns, used: Floats, since: float) -> ClosedRuns:
    over = (~runs.open).nonzero()[0]
    life, incarnation = runs.life[over], runs.incarnation[over]
    without_run = lives.ended.copy()
    without_run[life[incarnation == lives.incarnation[life]]] = False
    ends = without_run.nonzero()[0]
    nothing, both = np.zeros(len(ends)), np.concatenate([life, ends])
    return ClosedRuns(
        key=lives.key[both],
        submit=np.concatenate([incarnation, lives.incarnation[ends]]),
        start=np.concatenate([runs.start[over], nothing]),
        end=np.concatenate([runs.end[over], lives.active_to[ends]]),
        gpus=np.concatenate([runs.gpus[over], lives.gpus[ends]]),
        tenant=lives.tenant[both],
        charged=np.concatenate([used[over], nothing]),
        since=since,
    )
