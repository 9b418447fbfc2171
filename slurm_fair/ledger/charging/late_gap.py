"""Charge the time without a daemon when accounting tells of it late: looks have gone on meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.ledger.charging.advance import DEFAULTS, advance
from slurm_fair.ledger.charging.charge import forgotten, remembered
from slurm_fair.ledger.charging.downtime import Filled, Gap, fill_gap
from slurm_fair.ledger.charging.left_alone import with_those_left_alone
from slurm_fair.ledger.charging.settle import settle
from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobAccounts, Ledger, RunTable, TenantAccounts, Unfilled
from slurm_fair.model.columns import Floats, find, take_or


def fill_late(ledger: Ledger, unfilled: Unfilled, gap: Gap, settings: LedgerSettings = DEFAULTS) -> Filled:
    """The ledger with a gap that looks have followed since, and the events of jobs that no look has shown.

    What is owed grows by what the gap, had it been filled in time, would have added at the look that ended it.
    GPU time is settled as it always is, but back to the beginning of the gap. A tenant that no look had shown
    counts in quotas for the gap, and then from now on.
    """
    before, look = unfilled
    shown = with_those_left_alone(look).jobs
    until = min(max(gap.until, before.time), look.time)
    filled = fill_gap(before, gap.runs, until, settings, shown)
    better, _ = advance(filled.ledger, look, settings)
    then, _ = advance(before, look, settings)
    ledger = _of_tenants(ledger, better.tenants.names)
    before, then, better = (_of_tenants(each, ledger.tenants.names) for each in (before, then, better))
    settled = _settled(ledger, before, then, gap.runs)
    after = replace(
        settled,
        tenants=_tenants_mended(settled.tenants, then.tenants, better.tenants),
        jobs=_jobs_mended(settled.jobs, then.jobs, better.jobs),
    )
    known = {*before.jobs.key.tolist(), *shown.key.tolist()}
    return Filled(after, tuple(event for event in filled.events if event.key not in known))


def _of_tenants(ledger: Ledger, names: tuple[str, ...]) -> Ledger:
    return with_tenants(ledger, names, np.ones(len(names)))[0]


def _settled(ledger: Ledger, before: Ledger, then: Ledger, runs: RunTable) -> Ledger:
    """Runs charged as accounting tells them since the beginning of the gap, whatever is forgotten since."""
    closed = ledger.closed
    more = closed.joined(forgotten(before.closed, then.closed.since))
    more = more.joined(forgotten(then.closed, closed.since))
    was_open = (runs.start > 0) & (
        take_or(then.jobs.run_start, find(then.jobs.key, runs.key), 0.0) == runs.start
    )
    charged = ((runs.end > then.time) | was_open) & (runs.end > 0) & (runs.end <= closed.since)
    runs = runs.take(~charged)  # looks charged them, and the ledger has forgotten that
    wide = replace(ledger, closed=more.with_columns(since=before.closed.since))
    settled, _ = settle(wide, runs.of_tenants(ledger.tenants.names), ledger.time)
    return replace(settled, closed=remembered(settled.closed, closed.since))


def _tenants_mended(tenants: TenantAccounts, then: TenantAccounts, better: TenantAccounts) -> TenantAccounts:
    return tenants.with_columns(
        owed_quota=tenants.owed_quota + better.owed_quota - then.owed_quota,
        owed_demand=tenants.owed_demand + better.owed_demand - then.owed_demand,
        last_job=np.maximum(tenants.last_job, better.last_job),
    )


def _jobs_mended(jobs: JobAccounts, then: JobAccounts, better: JobAccounts) -> JobAccounts:
    """Jobs that live since the gap; one that was known since a requeue only has its earlier runs too."""
    row, at = find(then.key, jobs.key), find(better.key, jobs.key)
    same = (row >= 0) & (at >= 0) & (take_or(then.submit, row, -1.0) == jobs.submit)
    submit = np.where(same, take_or(better.submit, at, 0.0), jobs.submit)
    earlier = submit != jobs.submit

    def more(better_column: Floats, then_column: Floats) -> Floats:
        return take_or(better_column, at, 0.0) - take_or(then_column, row, 0.0)

    return jobs.with_columns(
        submit=submit,
        owed=jobs.owed + np.where(same, more(better.owed, then.owed), 0.0),
        had=jobs.had + np.where(earlier, more(better.had, then.had), 0.0),
        ran=jobs.ran + np.where(earlier, more(better.ran, then.ran), 0.0),
        waited=jobs.waited + np.where(earlier, more(better.waited, then.waited), 0.0),
    )
