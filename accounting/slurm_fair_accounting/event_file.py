"""An export read back: each line checked, and all of them together, that they are of one run."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from slurm_fair.errors import InputError
from slurm_fair.model import CAPACITY, Event, Standing, label
from slurm_fair.model.ids import parse_label
from slurm_fair.model.moment import TenantMoment
from slurm_fair_accounting.export import ACCOUNT, HEAD, NUMBERS

# In this order things happen to one job at one instant; a file in another order than that of time has lost it.
_TURNS = (
    CAPACITY, "submitted", "revoked", "asked", "stays", "requeued", "stopped", "finished", "returned",
    "granted", "opened", "adopted", "started", "renewed", "takenback",
)  # fmt: skip
_TURN = {kind: turn for turn, kind in enumerate(_TURNS)}
# What a controller does is done once at an instant of its own; Slurm's instants are whole seconds, and a job that
# left the scope and came back is told of again.
_ONCE = ("granted", "renewed", "revoked", "stays", "finished")
_ALONE = (
    "exclusive_seconds"  # an end that tells it is of a simulation or of a recorded past: there is no other
)
_LEAST_LOSS = 3600.0  # GPU-seconds of a quota, which only grows
_CURE = "give the events of one run, each line once"


class Told(NamedTuple):
    """What one line says, and where it stands."""

    number: int
    what: Event | TenantMoment


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
    """An export read back; InputError names the line that is wrong, or that is of another run."""
    from slurm_fair.trace.files import reading  # only who reads a file waits for the code of traces

    lines: list[Told] = []
    with reading(path) as text:
        for number, line in enumerate(text, start=1):
            if line.strip():
                lines.append(Told(number, _told(line, f"{path}:{number}")))
    if not lines:
        raise InputError(
            f"{path}: no event in it: give what `slurm-fair report export` or --events-out wrote"
        )
    _sort(lines)
    for fault in (_twice(lines), _ended_before(lines), _begun_anew(lines)):
        if fault:
            raise InputError(f"{path}:{fault}: are several runs in one file? {_CURE}")
    events = [told.what for told in lines if isinstance(told.what, Event)]
    return EventFile(events, [told.what for told in lines if isinstance(told.what, TenantMoment)])


# -- one line -----------------------------------------------------------------------------------------------------


def _told(line: str, where: str) -> Event | TenantMoment:
    try:
        return _read(json.loads(line))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: is no JSON: give a file of events, as `slurm-fair report export` or --events-out writes it"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{where}: is no event ({error!r}): see docs/schema/events.json") from error
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _read(content: dict[str, Any]) -> Event | TenantMoment:
    time = _number(content, "time")
    if content["kind"] == CAPACITY:
        return Event(time, CAPACITY, 0, "", int(_number(content, "gpus")))
    tenant = str(content["tenant"])
    if content["kind"] == ACCOUNT:
        return TenantMoment(time, tenant, **{name: _number(content, name) for name in NUMBERS})
    detail = {key: value for key, value in content.items() if key not in HEAD}
    if content["kind"] == "finished":
        detail |= {name: _number(detail, name) for name in ("had", "owed", "waited", "ran")}
    key = parse_label(str(content["job"]))
    return Event(time, str(content["kind"]), key, tenant, int(_number(content, "gpus")), detail)


def _number(content: dict[str, Any], name: str) -> float:
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} is no number")
    return float(value)


# -- all lines together -------------------------------------------------------------------------------------------


def _sort(lines: list[Told]) -> None:
    """By time; of a file in another order, what happened to a job at one instant as it must have happened."""
    if any(after.what.time < before.what.time for before, after in pairwise(lines)):
        lines.sort(key=lambda told: (told.what.time, *_turn(told.what)))


def _turn(what: Event | TenantMoment) -> tuple[int, int]:
    return (what.key, _TURN.get(what.kind, len(_TURN))) if isinstance(what, Event) else (0, 0)


def _twice(lines: Sequence[Told]) -> str:
    """What is told for the second time of one instant."""
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


def _ended_before(lines: Sequence[Told]) -> str:
    """A job of a trace or a recorded past that ends within the life of another one of its id."""
    ends: dict[int, Told] = {}
    for told in lines:
        what = told.what
        if isinstance(what, Event) and what.kind == "finished" and _ALONE in what.detail:
            before = ends.get(what.key)
            if before and what.detail.get("submit", what.time) < before.what.time:
                first, second = sorted((before.number, told.number))
                return f"{second}: job {label(what.key)} ends, and in line {first} too"
            ends[what.key] = told
    return ""


def _begun_anew(lines: Sequence[Told]) -> str:
    """A tenant's account that has lost most of what it held."""
    last: dict[str, Told] = {}
    for told in lines:
        what = told.what
        if not isinstance(what, TenantMoment):
            continue
        before = last.get(what.tenant)
        if before and isinstance(before.what, TenantMoment) and _lost(before.what, what):
            return f"{told.number}: the account of tenant {what.tenant} is less than in line {before.number}"
        last[what.tenant] = told
    return ""


def _lost(before: TenantMoment, after: TenantMoment) -> bool:
    return before.owed_quota - after.owed_quota > _LEAST_LOSS
