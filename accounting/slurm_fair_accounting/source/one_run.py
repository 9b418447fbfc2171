"""Check that all lines of an export come from one run: what no controller and no simulation writes is a fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from slurm_fair.model import Event, EventKind, label
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting.source.export import ACCOUNT

# In this order things happen to one job at one instant; a file in another order than that of time has lost it.
_ORDER = (
    EventKind.CAPACITY,
    EventKind.SUBMITTED,
    EventKind.REVOKED,
    EventKind.ASKED,
    EventKind.STAYS,
    EventKind.REQUEUED,
    EventKind.STOPPED,
    EventKind.FINISHED,
    EventKind.RETURNED,
    EventKind.GRANTED,
    EventKind.OPENED,
    EventKind.ADOPTED,
    EventKind.STARTED,
    EventKind.RENEWED,
    EventKind.TAKEN_BACK,
)
_PLACE: dict[str, int] = {kind: place for place, kind in enumerate(_ORDER)}
# What a controller does is done once at an instant of its own; Slurm's instants are whole seconds, and a job that
# left the scope and came back is told of again.
_ONCE = (EventKind.GRANTED, EventKind.RENEWED, EventKind.REVOKED, EventKind.STAYS, EventKind.FINISHED)
# Who tells it at an end is a simulation or a recorded past: there is no other end.
_ALONE = "exclusive_seconds"
_LEAST_LOSS = 3600.0  # GPU-seconds of a quota, which only grows
# Accounts of all tenants are written at least once in an hour in which anything happens.
_LONGEST_SILENCE = 7200.0


class CheckedLine(NamedTuple):
    """The event or account of one line, and its number."""

    number: int
    what: Event | TenantMoment


def put_in_order(lines: list[CheckedLine]) -> None:
    """Sort a file that is out of order by time, and a job's events of one instant as they must have happened."""
    if any(after.what.time < before.what.time for before, after in pairwise(lines)):
        lines.sort(key=lambda line: (line.what.time, *_place(line.what)))


def _place(what: Event | TenantMoment) -> tuple[int, int]:
    return (what.key, _PLACE.get(what.kind, len(_PLACE))) if isinstance(what, Event) else (0, 0)


def fault_of(lines: Sequence[CheckedLine]) -> str:
    """Line number and words of what shows that lines, in order of time, are of several runs; empty if nothing."""
    for find in (_twice, _ended_before, _begun_anew, _without_account):
        if fault := find(lines):
            return fault
    return ""


def _twice(lines: Sequence[CheckedLine]) -> str:
    """Names an account, or an event that happens once, which a file gives twice for one instant."""
    seen: dict[tuple[str, str | int], int] = {}
    now = -math.inf
    for number, what in lines:
        if what.time != now:
            now = what.time
            seen.clear()
        if isinstance(what, TenantMoment):
            first, words = (
                seen.setdefault((ACCOUNT, what.tenant), number),
                f"the account of tenant {what.tenant}",
            )
        elif what.kind in _ONCE:
            first, words = (
                seen.setdefault((what.kind, what.key), number),
                f"job {label(what.key)} {what.kind}",
            )
        else:
            continue
        if first != number:
            return f"{max(first, number)}: {words}, which line {min(first, number)} tells of the same instant"
    return ""


def _ended_before(lines: Sequence[CheckedLine]) -> str:
    """A job of a trace or a recorded past that ends within the life of another one of its id."""
    ends: dict[int, CheckedLine] = {}
    for line in lines:
        what = line.what
        if isinstance(what, Event) and what.kind == EventKind.FINISHED and _ALONE in what.detail:
            before = ends.get(what.key)
            if before and what.detail.get("submit", what.time) < before.what.time:
                first, second = sorted((before.number, line.number))
                return f"{second}: job {label(what.key)} ends, and in line {first} too"
            ends[what.key] = line
    return ""


def _begun_anew(lines: Sequence[CheckedLine]) -> str:
    """A tenant's account that has lost most of what it held."""
    last: dict[str, CheckedLine] = {}
    for line in lines:
        what = line.what
        if not isinstance(what, TenantMoment):
            continue
        before = last.get(what.tenant)
        if before and isinstance(before.what, TenantMoment) and _lost(before.what, what):
            return f"{line.number}: the account of tenant {what.tenant} is less than in line {before.number}"
        last[what.tenant] = line
    return ""


def _lost(before: TenantMoment, after: TenantMoment) -> bool:
    begun_anew = after.owed_quota == 0 < before.owed_quota
    return begun_anew or before.owed_quota - after.owed_quota > _LEAST_LOSS


def _without_account(lines: Sequence[CheckedLine]) -> str:
    """A tenant whose account is missing where everybody's is told: nobody who was met is ever forgotten."""
    accounts = [line for line in lines if isinstance(line.what, TenantMoment)]
    if not accounts:
        return ""
    newest = accounts[-1]
    last = {line.what.tenant: line for line in accounts}
    for tenant, line in last.items():
        if newest.what.time - line.what.time > _LONGEST_SILENCE and _has_something(line.what):
            return f"{newest.number}: no account of tenant {tenant}, which has one in line {line.number}"
    for number, what in lines:
        if not isinstance(what, Event) or what.kind not in _ONCE or what.tenant in last:
            continue
        if abs(newest.what.time - what.time) > _LONGEST_SILENCE:
            return f"{number}: tenant {what.tenant} has no account, and others have"
    return ""


def _has_something(what: Event | TenantMoment) -> bool:
    """True for a tenant that has something; in a simulation one without jobs has nothing, and is not told of."""
    return isinstance(what, TenantMoment) and (what.owed_quota > 0 or what.had > 0)
