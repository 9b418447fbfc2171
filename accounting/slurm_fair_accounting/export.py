"""The journal's events as JSON lines, written and read: docs/schema/events.json says what a line holds.

Lines of kind "account" carry the tenants' accounts over time, so that an export answers every report.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from slurm_fair.errors import InputError
from slurm_fair.model import CAPACITY, Event, Standing, label
from slurm_fair.model.ids import parse_label
from slurm_fair.model.moment import TenantMoment
from slurm_fair_accounting.source import JournalReader

ACCOUNT = "account"
_GZIP = b"\x1f\x8b"
_HEAD = ("time", "kind", "job", "tenant", "gpus")
_NUMBERS = tuple(field.name for field in fields(TenantMoment) if field.name not in ("time", "tenant"))


def export_lines(source: JournalReader, start: float, end: float) -> Iterator[str]:
    """Events and accounts in [start, end), oldest first, one JSON object a line."""
    events = ((event.time, event_line(event)) for event in _with_capacity(source, start, end))
    last = math.nextafter(end, -math.inf)
    accounts = ((moment.time, account_line(moment)) for moment in source.moments(start, last))
    for _, line in heapq.merge(accounts, events, key=lambda pair: pair[0]):
        yield line


def _with_capacity(source: JournalReader, start: float, end: float) -> Iterator[Event]:
    """Events, and first of all how many GPUs there were at the beginning."""
    before = list(source.events(end=start, kinds=(CAPACITY,)))[-1:]
    yield from (event._replace(time=start) for event in before)
    yield from source.events(start, end)


def event_line(event: Event) -> str:
    """One thing that happened, as a line of an export."""
    if event.kind == CAPACITY:
        return json.dumps({"time": event.time, "kind": CAPACITY, "gpus": event.gpus}, allow_nan=False) + "\n"
    head = dict(zip(_HEAD, (event.time, event.kind, label(event.key), event.tenant, event.gpus), strict=True))
    return json.dumps(_finite({**event.detail, **head}), allow_nan=False) + "\n"


def account_line(moment: TenantMoment) -> str:
    """A tenant's account at one instant, as a line of an export."""
    head = {"time": moment.time, "kind": ACCOUNT, "tenant": moment.tenant}
    return json.dumps(head | {name: getattr(moment, name) for name in _NUMBERS}, allow_nan=False) + "\n"


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; null is the rho of a job that was owed nothing."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }


class EventFile:
    """An export as a source of reports; it knows no more than its lines say."""

    def __init__(self, events: Iterable[Event], moments: Iterable[TenantMoment]) -> None:
        self._events = sorted(events, key=lambda event: event.time)
        self._moments = sorted(moments, key=lambda moment: moment.time)

    def latest(self) -> Standing | None:
        """There is no ledger in an export."""
        return None

    def began(self) -> float | None:
        """The time of its first line."""
        firsts = [line.time for lines in (self._events, self._moments) for line in lines[:1]]
        return min(firsts, default=None)

    def ended(self) -> float | None:
        """The time of its last line."""
        lasts = [line.time for lines in (self._events, self._moments) for line in lines[-1:]]
        return max(lasts, default=None)

    def events(
        self,
        start: float = -math.inf,
        end: float = math.inf,
        *,
        kinds: Collection[str] = (),
        tenant: str | None = None,
        keys: Collection[int] | None = None,
    ) -> Iterator[Event]:
        """Events in [start, end), oldest first; no kinds = all of them."""
        wanted = None if keys is None else frozenset(keys)
        for event in self._events:
            if not start <= event.time < end or (kinds and event.kind not in kinds):
                continue
            if tenant in (None, event.tenant) and (wanted is None or event.key in wanted):
                yield event

    def moments(self, start: float, end: float, tenant: str | None = None) -> Iterator[TenantMoment]:
        """Tenants' accounts in [start, end], oldest first."""
        return (
            moment
            for moment in self._moments
            if start <= moment.time <= end and tenant in (None, moment.tenant)
        )

    def moment_time(self, near: float) -> float | None:
        """The instant nearest to one at which the tenants' accounts are known."""
        return min((moment.time for moment in self._moments), key=lambda time: abs(time - near), default=None)

    def close(self) -> None:
        """All of it was read at once."""


def read_events(path: Path) -> EventFile:
    """An export read back; InputError names the line that is wrong."""
    events: list[Event] = []
    moments: list[TenantMoment] = []
    try:
        with path.open("rb") as head:
            if head.read(2) == _GZIP:
                raise InputError(f"{path}: is gzipped: unpack it first, with gunzip --keep")
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _read_line(line, f"{path}:{number}", events, moments)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return EventFile(events, moments)


def _read_line(line: str, where: str, events: list[Event], moments: list[TenantMoment]) -> None:
    try:
        content = json.loads(line)
        time = _number(content, "time")
        if content["kind"] == CAPACITY:
            events.append(Event(time, CAPACITY, 0, "", int(_number(content, "gpus"))))
            return
        tenant = str(content["tenant"])
        if content["kind"] == ACCOUNT:
            moments.append(TenantMoment(time, tenant, **{name: _number(content, name) for name in _NUMBERS}))
            return
        detail = {key: value for key, value in content.items() if key not in _HEAD}
        if content["kind"] == "finished":
            detail |= {name: _number(detail, name) for name in ("had", "owed", "waited", "ran")}
        key = parse_label(str(content["job"]))
        events.append(Event(time, str(content["kind"]), key, tenant, int(_number(content, "gpus")), detail))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: is no JSON: give a file of events, as `slurm-fair report export` or --events-out writes it"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{where}: is no event ({error!r}): see docs/schema/events.json") from error
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _number(content: dict[str, Any], name: str) -> float:
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} is no number")
    return float(value)
