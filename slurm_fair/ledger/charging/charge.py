"""Charge one window: its lives and runs make the ledger at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.shares import Changes, integrate, integrate_over_changes
from slurm_fair.ledger.charging.timeline import ActiveSpans, ClusterInWindow, constant, totals
from slurm_fair.ledger.charging.window import JobLives, JobRuns, Window
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import ClosedRuns, JobAccounts, Ledger, TenantAccounts
from slurm_fair.model.columns import ZERO, Bools, Floats, Ints, any_of

# Closed runs are forgotten many at a time: when their memory has become so much (a part) too long.
_FORGET_PART = 1 / 2
# Queue and accounting may tell of ends that differ by seconds: a run that accounting still has charged is known.
_EDGE_SECONDS = 60.0
_OF_JOBS = tuple(field.name for field in fields(JobAccounts))


class Charged(NamedTuple):
    """Sums of each life at the window's end, and of each of its runs since the beginning."""

    had: Floats
    owed: Floats
    waited: Floats
    ran: Floats
    used: Floats


class _OwedInWindow(NamedTuple):
    """The amounts that a window adds to claims and tenants."""

    of_jobs: Floats
    by_quota: Floats
    by_demand: Floats


def charge(
    ledger: Ledger,
    window: Window,
    until: float,
    settings: LedgerSettings,
    changes: Changes = (),
    looked: Sequence[float] = (),
) -> tuple[Ledger, Charged]:
    """Charge everybody up to `until`, by the weights and the cluster's size of the last look.

    `changes` are later changes of the size whose instants are known. `looked` are the instants of the looks that
    this window folds together.
    """
    lives, runs, before, met = window.lives, window.runs, ledger.jobs, ledger.jobs.key.size
    charged, closed = runs.less_already_charged(window.fresh, lives.key, ledger.closed)
    count, used = lives.key.size, gpu_seconds(runs, ledger.began)
    had = totals(runs.life, used - charged.charged, count)
    along = lives.active & (lives.active_to >= until)
    changing = (~along).nonzero()[0]
    owed = _owed(ledger, lives, changing, until, settings, changes)
    last_job = _last_job(ledger, lives, along, changing, until)
    tenants = _tenants_after(ledger.tenants, lives.tenant, had, owed, last_job)
    # A job that is new to the ledger is credited with all that its runs had, also with what its tenant was
    # charged for them earlier.
    if charged is not runs:
        already = runs.life < met
        had = totals(runs.life, used - charged.charged * already, count)
        charged = charged._replace(charged_seconds=charged.charged_seconds * already)
    ran = totals(runs.life, runs.end - runs.start - charged.charged_seconds, count)
    # A life's seconds are negative when it had ended before the last look was taken.
    waited = lives.active_to - lives.waits_from
    waited[:met] += before.waited
    waited -= ran
    had[:met] += before.had
    owed.of_jobs[:met] += before.owed
    ran[:met] += before.ran
    result = Charged(had, owed.of_jobs, np.maximum(waited, ZERO), ran, used)
    closed = _closed_after(closed, window, used, looked or (until,), settings.closed_memory_seconds)
    jobs = _accounts_after(window, result)
    after = Ledger(until, ledger.began, ledger.total_gpus, tenants, jobs, closed, ledger.weighted_gpus)
    return after, result


def gpu_seconds(runs: JobRuns, began: float) -> Floats:
    """GPU-seconds by weight that runs held since the ledger began."""
    seconds: Floats = np.maximum(runs.end - np.maximum(runs.start, began), ZERO)
    return seconds * runs.gpus * runs.gpu_weight


def _owed(
    ledger: Ledger,
    lives: JobLives,
    changing: Ints,
    until: float,
    settings: LedgerSettings,
    changes: Changes,
) -> _OwedInWindow:
    """`changing` are the lives that were not active as last seen, or not to the end."""
    claims, late = _claims(ledger, lives, changing)
    if until <= ledger.time and not late.size:
        # Jobs changed hands at the last look, and it is that instant still.
        nothing = np.zeros(ledger.tenants.weight.size)
        return _OwedInWindow(np.zeros(lives.key.size), nothing, nothing)
    cluster = ClusterInWindow(ledger.shared_gpus, ledger.tenants.weight, ledger.tenants.last_job)
    if changes:
        sums = integrate_over_changes(claims, cluster, changes, ledger.time, until, settings)
    else:
        sums = integrate(claims, cluster, ledger.time, until, settings, changing)
    if not late.size:
        return _OwedInWindow(sums.claims, sums.quota, sums.demand)
    submit = np.where(lives.active, lives.submit, claims.since)
    missed = _late(ledger, claims, submit, late, cluster, sums.first_level, settings)
    return _OwedInWindow(*(one + more for one, more in zip(sums[:3], missed, strict=True)))


def _claims(ledger: Ledger, lives: JobLives, changing: Ints) -> tuple[ActiveSpans, Ints]:
    """The span in which each life claims a share, and the lives of which news came late."""
    since, until = constant(lives.key.size, -np.inf), lives.active_to
    gpus = lives.gpus * lives.gpu_weight
    if not changing.size:
        return ActiveSpans(lives.tenant, gpus, lives.weight, since, until), changing
    begin, end, known = lives.active_from[changing], until[changing], lives.active[changing]
    # Also not a known one that ended at the instant of its submission, which is that of the last look.
    never = (end <= begin) & (~known | ((end <= lives.submit[changing]) & (end >= ledger.time)))
    begin = np.maximum(begin, ledger.began)
    if any_of(never):
        begin[never] = np.inf
        until = until.copy()
        until[changing[never]] = -np.inf
    late = changing[np.where(known, end, begin) < ledger.time]
    begin[known & ~never] = -np.inf
    since[changing] = begin
    return ActiveSpans(lives.tenant, gpus, lives.weight, since, until), late


def _late(
    ledger: Ledger,
    claims: ActiveSpans,
    submit: Floats,
    late: Ints,
    cluster: ClusterInWindow,
    level: Floats,
    settings: LedgerSettings,
) -> _OwedInWindow:
    """Mend what was integrated before the news came (Slurm's times are whole seconds, cut off).

    The last seconds are integrated again, once as they were believed and once as they are now known, over the
    jobs that the ledger knows. That is exact unless other jobs of the tenant ended, or nodes or weights
    changed, in those very seconds. News older than `late_seconds` (a partition that became managed) changes
    only what the job itself is owed, at today's level: siblings and tenants have been told their shares.
    """
    known = np.isneginf(claims.since)
    news = claims.take(late)
    from_time = np.where(known[late], news.until, news.since)
    earliest = max(ledger.began, ledger.time - settings.late_seconds, float(from_time.min()))
    joined = cluster.last_job[news.tenant] + settings.tenant_memory_seconds <= ledger.time
    widened = bool(joined.any()) and not settings.everyone_counts  # it changes everybody's quota
    concerned = np.full(len(cluster.weight), widened)
    concerned[news.tenant] = True
    rows = np.flatnonzero(concerned[claims.tenant])
    is_known = np.flatnonzero(known[rows])
    truth = claims.take(rows)._replace(since=submit[rows])
    belief = truth.take(is_known)._replace(until=np.full(len(is_known), np.inf))
    # Tenants outside the concerned ones keep their quotas: they count as present through last_job.
    now = integrate(truth, cluster, earliest, ledger.time, settings)
    then = integrate(belief, cluster, earliest, ledger.time, settings)
    owed = np.zeros(claims.tenant.size)
    owed[rows] = now.claims
    owed[rows[is_known]] -= then.claims
    older = np.where(known[late], 0.0, np.maximum(earliest - news.since, 0.0))
    share = formulas.job_share(level[news.tenant], news.weight)
    owed[late] += formulas.job_claim(news.gpus, share) * older
    quota, demand = now.quota - then.quota, now.demand - then.demand
    return _OwedInWindow(owed, np.where(concerned, quota, 0.0), np.where(concerned, demand, 0.0))


def _last_job(ledger: Ledger, lives: JobLives, along: Bools, changing: Ints, until: float) -> Floats:
    """The last instant at which each tenant had an active job; lives `along` were active all along."""
    last_job = ledger.tenants.last_job.copy()
    if until > ledger.time:
        last_job[lives.tenant[along]] = until
    if not changing.size:
        return last_job
    tenant, end = lives.tenant[changing], lives.active_to[changing]
    real = (end > np.maximum(lives.active_from[changing], ledger.began)) & (end > last_job[tenant])
    if any_of(real):
        np.maximum.at(last_job, tenant[real], end[real])
    return last_job


def _tenants_after(
    tenants: TenantAccounts, tenant: Ints, had: Floats, owed: _OwedInWindow, last_job: Floats
) -> TenantAccounts:
    return tenants.with_columns(
        had=tenants.had + totals(tenant, had, last_job.size),
        owed_quota=tenants.owed_quota + owed.by_quota,
        owed_demand=tenants.owed_demand + owed.by_demand,
        last_job=last_job,
    )


def _accounts_after(window: Window, result: Charged) -> JobAccounts:
    """The accounts of the lives that go on, sorted by key."""
    lives, runs = window.lives, window.runs
    run_start, run_had = np.zeros(lives.key.size), np.zeros(lives.key.size)
    run_gpus = np.zeros(lives.key.size, dtype=np.int64)
    life, start, used, gpus = runs.life, runs.start, result.used, runs.then_gpus
    if window.over.size:
        rows = runs.open.nonzero()[0]
        life, start, used, gpus = life[rows], start[rows], used[rows], gpus[rows]
    run_start[life], run_had[life], run_gpus[life] = start, used, gpus
    columns: tuple[NDArray[Any], ...] = (
        lives.key, lives.submit, lives.incarnation, lives.restarts, lives.then_tenant, lives.then_gpus,
        lives.then_weight, result.had, result.owed, result.waited, result.ran, run_start, run_had,
        lives.then_active, lives.then_waits, lives.then_gpu_weight, run_gpus,
    )  # fmt: skip
    if window.ended.size:
        kept = (~lives.ended).nonzero()[0]
        columns = tuple(column[kept] for column in columns)
    after = JobAccounts.unchecked(dict(zip(_OF_JOBS, columns, strict=True)))
    if not window.in_order and any_of(after.key[1:] < after.key[:-1]):
        after = after.take(after.key.argsort(kind="stable"))
    return after


def _remembered_since(since: float, looked: Sequence[float], memory_seconds: float) -> float:
    """The instant since when closed runs are remembered after these looks; before them it was `since`."""
    for instant in looked:
        if instant - memory_seconds - since >= _FORGET_PART * memory_seconds:
            since = instant - memory_seconds
    return since


def _closed_after(
    closed: ClosedRuns, window: Window, used: Floats, looked: Sequence[float], memory_seconds: float
) -> ClosedRuns:
    """Runs that ended, and ends of jobs that did not run since they were submitted, so that each counts once."""
    if window.over.size or window.ended.size:
        closed = closed.joined(_closed_now(window, used, closed.since))
    since = _remembered_since(closed.since, looked, memory_seconds)
    if since == closed.since:
        return closed
    return remembered(closed, since)


def remembered(closed: ClosedRuns, since: float) -> ClosedRuns:
    """The closed runs that are kept when those from before an instant are forgotten."""
    return closed.take((closed.end >= since - _EDGE_SECONDS).nonzero()[0]).with_columns(since=since)


def forgotten(closed: ClosedRuns, since: float) -> ClosedRuns:
    """The closed runs that are not kept then; none where that instant has not moved."""
    gone = (closed.end < since - _EDGE_SECONDS) & (closed.since != since)
    return closed.take(gone.nonzero()[0])


def _closed_now(window: Window, used: Floats, since: float) -> ClosedRuns:
    lives, runs, over = window.lives, window.runs, window.over
    life, incarnation = runs.life[over], runs.incarnation[over]
    with_run = life[incarnation == lives.incarnation[life]]
    closed = ClosedRuns(
        key=lives.key[life],
        submit=incarnation,
        start=runs.start[over],
        end=runs.end[over],
        gpus=runs.gpus[over],
        tenant=lives.tenant[life],
        charged=used[over],
        gpu_weight=runs.gpu_weight[over],
        since=since,
    )
    without_run = lives.ended.copy()
    without_run[with_run] = False
    if not any_of(without_run):
        return closed
    ends = without_run.nonzero()[0]
    nothing = np.zeros(ends.size)
    return closed.joined(
        ClosedRuns(
            key=lives.key[ends],
            submit=lives.incarnation[ends],
            start=nothing,
            end=lives.active_to[ends],
            gpus=lives.gpus[ends],
            tenant=lives.tenant[ends],
            charged=nothing,
            gpu_weight=lives.gpu_weight[ends],
            since=since,
        )
    )
