"""The journal's events as JSON lines: docs/schema/events.json says what a line holds.

Lines of kind "account" carry the tenants' accounts over time, so that an export answers every report.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from slurm_fair.model import Event, EventKind, Ledger, label
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting.source.source import JournalReader

ACCOUNT = "account"
HEAD = ("time", "kind", "job", "tenant", "gpus")
NUMBERS = tuple(field.name for field in fields(TenantMoment) if field.name not in ("time", "tenant"))


def export_lines(source: JournalReader, start: float, end: float) -> Iterator[str]:
    """Events and accounts in [start, end), oldest first, one JSON object a line."""
    events = ((event.time, event_line(event)) for event in _with_capacity(source, start, end))
    last = math.nextafter(end, -math.inf)
    accounts = ((moment.time, account_line(moment)) for moment in _with_ledger(source, start, last))
    for _, line in heapq.merge(accounts, events, key=lambda pair: pair[0]):
        yield line


def _with_ledger(source: JournalReader, start: float, last: float) -> Iterator[TenantMoment]:
    """The accounts that were kept, and what the ledger knows beside: its beginning, and the last look."""
    ledger = standing.ledger if (standing := source.latest()) else None
    kept = source.moments(start, last)
    if (
        ledger is not None
        and start <= ledger.began <= last
        and source.moment_time(ledger.began) != ledger.began
    ):
        first = source.moment_time(ledger.began)
        yield from (
            replace(moment, time=ledger.began, had=0.0, owed_quota=0.0, owed_demand=0.0)
            for moment in (source.moments(first, first) if first is not None else ())
        )
    yield from kept
    if ledger is not None and start <= ledger.time <= last and source.moment_time(ledger.time) != ledger.time:
        yield from _now(ledger)


def _now(ledger: Ledger) -> Iterator[TenantMoment]:
    """Tenants' accounts at the last look."""
    tenants, jobs = ledger.tenants, ledger.jobs
    held = np.bincount(jobs.tenant, jobs.run_gpus, len(tenants.names))
    wanted = np.bincount(jobs.tenant, np.where(jobs.active, jobs.gpus, 0), len(tenants.names))
    columns = (tenants.weight, tenants.had, tenants.owed_quota, tenants.owed_demand, held, wanted)
    for name, *account in zip(tenants.names, *(column.tolist() for column in columns), strict=True):
        yield TenantMoment(ledger.time, name, *account)


def _with_capacity(source: JournalReader, start: float, end: float) -> Iterator[Event]:
    """Events, and first of all how many GPUs there were at the beginning."""
    before = list(source.events(end=start, kinds=(EventKind.CAPACITY,)))[-1:]
    yield from (event._replace(time=start) for event in before)
    yield from source.events(start, end)


def event_line(event: Event) -> str:
    """One thing that happened, as a line of an export."""
    if event.kind == EventKind.CAPACITY:
        size = {"time": event.time, "kind": EventKind.CAPACITY, "gpus": event.gpus, **event.detail}
        return json.dumps(size, allow_nan=False) + "\n"
    head = dict(zip(HEAD, (event.time, event.kind, label(event.key), event.tenant, event.gpus), strict=True))
    return json.dumps(_finite({**event.detail, **head}), allow_nan=False) + "\n"


def account_line(moment: TenantMoment) -> str:
    """A tenant's account at one instant, as a line of an export."""
    head = {"time": moment.time, "kind": ACCOUNT, "tenant": moment.tenant}
    return json.dumps(head | {name: getattr(moment, name) for name in NUMBERS}, allow_nan=False) + "\n"


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; null is the rho of a job that was owed nothing."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }
