"""The report on tenants: what each had and was owed over a period, by the differences of its integrals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import ReportShare
from slurm_fair.model import Event, EventKind, Standing
from slurm_fair.model.end_words import NODE_FAIL
from slurm_fair_accounting.reports.history import live_of
from slurm_fair_accounting.reports.jobs import with_rho
from slurm_fair_accounting.reports.weighed import marked
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report

COLUMNS = (
    Column("tenant", "Tenant", Kind.TEXT),
    Column("weight", "Weight", Kind.RATIO),
    Column("share", "Share", Kind.RATIO),
    Column("jobs", "Jobs", Kind.COUNT),
    Column("running", "Running", Kind.COUNT),
    Column("waiting", "Waiting", Kind.COUNT),
    Column("had_gpu_seconds", "Had(GPUh)", Kind.GPU_HOURS),
    Column("owed_gpu_seconds", "Owed(GPUh)", Kind.GPU_HOURS),
    Column("rho", "rho", Kind.RATIO),
    Column("preemptions", "Preemptions", Kind.COUNT),
)
FROM_JOBS = "no accounts of tenants here: had and owed are those of the jobs that ended in the period"


@dataclass(frozen=True, slots=True)
class Account:
    """A tenant's integrals, in GPU-seconds."""

    weight: float | None = None
    had: float = 0.0
    owed: float = 0.0
    quota: float = 0.0

    def of_share(self, share: ReportShare) -> Account:
        """This account, owed by that share."""
        return self if share == "demand" else replace(self, owed=self.quota)

    def since(self, before: Account) -> Account:
        """This account less an earlier one."""
        return Account(self.weight, self.had - before.had, self.owed - before.owed, self.quota - before.quota)


Accounts = Mapping[str, Account]


def tenants(source: JournalReader, period: Period, choice: Choice) -> Report:
    """One row per tenant; the covered period is the one between the two instants whose accounts are known."""
    if choice.user is not None:
        raise InputError(
            "a user's share of what a tenant had and was owed is not kept: leave --user out, "
            "or ask for the report jobs, usage, leases or fairness"
        )
    standing = source.latest()
    live = live_of(standing, period)
    kinds = (EventKind.FINISHED, EventKind.REVOKED, EventKind.STAYS, EventKind.STOPPED)
    events = list(source.events(period.start, period.end, kinds=kinds, tenant=choice.tenant))
    ended = [event for event in events if event.kind == EventKind.FINISHED]
    covered, accounts, note = accounts_of(source, period, choice.share, ended)
    preempted = _preempted(events)
    jobs = Counter(event.tenant for event in ended) + Counter(job.tenant for job in live.values())
    quota = sum(account.quota for account in accounts.values())
    present = standing is not None and period.end >= standing.ledger.time
    running = Counter(job.tenant for job in live.values() if job.run_start > 0)
    waiting = Counter(job.tenant for job in live.values() if job.active and job.run_start == 0)
    names = sorted(name for name in accounts.keys() | jobs.keys() if choice.takes(name, None))
    rows: list[dict[str, Any]] = []
    for name in names:
        account = accounts.get(name, Account())
        rows.append(
            {
                "tenant": name,
                "weight": account.weight,
                "share": account.quota / quota if quota else None,
                "jobs": jobs[name],
                "running": running[name] if present else None,
                "waiting": waiting[name] if present else None,
                "had_gpu_seconds": account.had,
                "owed_gpu_seconds": account.owed,
                "preemptions": preempted[name],
            }
        )
    report = Report("tenants", "Tenants", COLUMNS, tuple(with_rho(rows)), period, covered, note)
    return marked(report, source)


def accounts_of(
    source: JournalReader, period: Period, share: ReportShare, ended: Iterable[Event] | None = None
) -> tuple[Period, Accounts, str]:
    """The covered period, tenants' accounts over it, and what to know of them; `ended` = ends in the period."""
    standing = source.latest()
    covered = _covered(source, standing, period)
    if covered is not None:
        accounts = _between(source, standing, covered)
        return covered, {name: account.of_share(share) for name, account in accounts.items()}, ""
    if ended is None:
        ended = source.events(period.start, period.end, kinds=(EventKind.FINISHED,))
    return period, _of_jobs(ended), FROM_JOBS


def _preempted(events: Iterable[Event]) -> Counter[str]:
    """Leases that were revoked, less those of jobs that ended, or whose node failed, before we took them back, and
    of those that Slurm would not stop."""
    count: Counter[str] = Counter()
    asked: dict[int, str] = {}
    for event in sorted(events, key=_as_it_came):
        if event.kind == EventKind.REVOKED:
            count[event.tenant] += 1
            asked[event.key] = event.tenant
        elif (tenant := asked.pop(event.key, None)) and (
            event.kind in (EventKind.FINISHED, EventKind.STAYS) or event.detail.get("state") == NODE_FAIL
        ):
            count[tenant] -= 1
    return count


def _as_it_came(event: Event) -> tuple[float, bool]:
    """Slurm cuts its instants to whole seconds, so that a stop may seem to lie before the revocation."""
    revoked = event.kind == EventKind.REVOKED
    return math.floor(event.time) if revoked else event.time, not revoked


def _covered(source: JournalReader, standing: Standing | None, period: Period) -> Period | None:
    """The known instants nearest to the ends of the period; the ledger knows its beginning and its last look.

    None where nothing of the period is known.
    """
    ledger = standing.ledger if standing else None
    start = _nearest(source, period.start, ledger.began if ledger else None)
    end = _nearest(source, period.end, ledger.time if ledger else None)
    if start is None or end is None or start >= end or start >= period.end or end <= period.start:
        return None
    return Period(start, end)


def _nearest(source: JournalReader, wanted: float, other: float | None) -> float | None:
    known = [time for time in (source.moment_time(wanted), other) if time is not None]
    return min(known, key=lambda time: abs(time - wanted), default=None)


def _between(source: JournalReader, standing: Standing | None, covered: Period) -> Accounts:
    before = _at(source, standing, covered.start)
    return {
        name: account.since(before.get(name, Account()))  # a tenant that was not there yet had nothing
        for name, account in _at(source, standing, covered.end).items()
    }


def _at(source: JournalReader, standing: Standing | None, time: float) -> Accounts:
    if standing is not None and time == standing.ledger.time:
        table = standing.ledger.tenants
        columns = (table.weight, table.had, table.owed_demand, table.owed_quota)
        rows = zip(table.names, *(column.tolist() for column in columns), strict=True)
        return {name: Account(*row) for name, *row in rows}
    return {
        moment.tenant: Account(moment.weight, moment.had, moment.owed_demand, moment.owed_quota)
        for moment in source.moments(time, time)
    }


def _of_jobs(ended: Iterable[Event]) -> Accounts:
    had: Counter[str] = Counter()
    owed: Counter[str] = Counter()
    for event in ended:
        had[event.tenant] += event.detail["had"]
        owed[event.tenant] += event.detail["owed"]
    return {name: Account(None, had[name], owed[name]) for name in had}
