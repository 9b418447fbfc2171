"""The report on usage: GPU-hours by day, tenant and user, from the runs themselves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs, outcomes_of
from slurm_fair.model import Event, EventKind
from slurm_fair_accounting.reports.history import Live, live_of, newest_known
from slurm_fair_accounting.source.period import Period, days
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report

COLUMNS = (
    Column("day", "Day", Kind.DAY),
    Column("tenant", "Tenant", Kind.TEXT),
    Column("user", "User", Kind.TEXT),
    Column("jobs", "Jobs", Kind.COUNT),
    Column("gpu_seconds", "Used(GPUh)", Kind.GPU_HOURS),
)
_KINDS = (EventKind.SUBMITTED, EventKind.STARTED, EventKind.STOPPED, EventKind.FINISHED)
_LATER = 1.0  # seconds beyond the newest thing known: the end of runs that have none yet


class Used(NamedTuple):
    """GPUs that one run held."""

    job: int
    tenant: str
    user: str
    gpus: int
    start: float
    end: float


def usage(source: JournalReader, period: Period, choice: Choice) -> Report:
    """GPU time and jobs by calendar day of the period; time until the newest thing known."""
    used: dict[tuple[float, str, str], float] = defaultdict(float)
    jobs: dict[tuple[float, str, str], set[int]] = defaultdict(set)
    calendar = days(period.start, period.end)
    mornings = [day.start for day in calendar]
    for run in _runs(source, period):
        if not choice.takes(run.tenant, run.user):
            continue
        who = run.tenant, run.user
        for day in calendar[max(bisect_right(mornings, run.start) - 1, 0) : bisect_left(mornings, run.end)]:
            seconds = min(run.end, day.end) - max(run.start, day.start)
            if seconds > 0:
                used[day.start, *who] += seconds * run.gpus
                jobs[day.start, *who].add(run.job)
    rows = [
        {
            "day": day,
            "tenant": tenant,
            "user": user,
            "jobs": len(jobs[day, tenant, user]),
            "gpu_seconds": gpus,
        }
        for (day, tenant, user), gpus in sorted(used.items())
    ]
    return Report("usage", "Usage by day", COLUMNS, tuple(rows), period, period)


def _runs(source: JournalReader, period: Period) -> Iterator[Used]:
    """Runs that overlap the period; one that is still going reaches to the newest thing known."""
    standing = source.latest()
    newest = newest_known(source, standing, period.start)
    live = live_of(standing, Period(period.start, float("inf")))
    going = None if standing is None else {key: job for key, job in live.items() if job.run_start > 0}
    outcomes, runs = outcomes_of(_events(source, period, going), newest + _LATER)
    met: set[int] = set()
    for used, goes_on in _each(outcomes, runs):
        if used.end >= newest:  # the ledger's run, be it that it ended since
            met.add(used.job)
        if not goes_on:
            yield used
        elif going is None or used.job in going:
            yield used._replace(end=newest)
    for key, job in (going or {}).items():
        if key not in met:  # no event tells of it
            yield Used(key, job.tenant, "", job.run_gpus, job.run_start, newest)


def _events(source: JournalReader, period: Period, going: Mapping[int, Live] | None) -> list[Event]:
    """All of the lives of jobs that may have run in the period, without those that ended before it.

    They are of all tenants: a number that Slurm used again may be another tenant's.
    A run that spans the whole period shows itself only by its end, so events after it are read too. A run
    that goes on is one of the ledger's; without a ledger it may be any.
    """
    later = list(source.events(period.start, kinds=_KINDS))
    keys: Collection[int] | None = None
    if going is not None:
        keys = going.keys() | {
            event.key for event in later if event.kind in (EventKind.STOPPED, EventKind.FINISHED)
        }
    return [*source.events(end=period.start, kinds=_KINDS, keys=keys), *later]


def _each(outcomes: Outcomes, runs: Runs) -> Iterator[tuple[Used, bool]]:
    """Each run, and True with it if it goes on; none that nobody saw end in an earlier life of its number."""
    is_open = ~outcomes.over[runs.job] & (runs.end == outcomes.until)
    kept = np.flatnonzero(~is_open | outcomes.may_live[runs.job])
    runs, goes_on = runs.take(kept), is_open[kept].tolist()
    names, users = outcomes.tenants, (*outcomes.users, "")  # the last: not known
    tenant, user = outcomes.tenant[runs.job].tolist(), outcomes.user[runs.job].tolist()
    columns = (outcomes.key[runs.job], runs.gpus, runs.start, runs.end)
    rows = zip(tenant, user, goes_on, *(column.tolist() for column in columns), strict=True)
    for of, by, going, key, gpus, start, end in rows:
        yield Used(key, names[of], users[by], gpus, start, end), going
