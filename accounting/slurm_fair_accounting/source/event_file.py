"""An export read back: each line checked, and all of them together, that they are of one run."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from slurm_fair.errors import InputError
from slurm_fair.model import Event, Standing
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting.source.event_reading import read_line
from slurm_fair_accounting.source.one_run import CheckedLine, fault_of, put_in_order

_time_of = attrgetter("time")
_CURE = "give the events of one run, each line once"


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

    def moments(self, start: float, end: float) -> Iterator[TenantMoment]:
        """Tenants' accounts in [start, end], oldest first."""
        return (moment for moment in self._moments if start <= moment.time <= end)

    def moment_time(self, near: float) -> float | None:
        """The instant nearest to one at which the tenants' accounts are known."""
        # No subtraction of instants out of reach: so far away floats lie apart by more than accounts do.
        at = bisect_left(self._moments, near, key=_time_of)
        around = (moment.time for moment in self._moments[max(at - 1, 0) : at + 1])
        return min(around, key=lambda time: abs(time - near), default=None)

    def close(self) -> None:
        """All of it was read at once."""


def read_events(path: Path) -> EventFile:
    """An export read back; InputError names the line that is wrong, or that is of another run."""
    from slurm_fair.trace.files import reading  # only who reads a file waits for the code of traces

    lines: list[CheckedLine] = []
    with reading(path) as text:
        for number, line in enumerate(text, start=1):
            if line.strip():
                lines.append(CheckedLine(number, read_line(line, f"{path}:{number}")))
    if not lines:
        raise InputError(
            f"{path}: no event in it: give what `slurm-fair report export` or --events-out wrote"
        )
    put_in_order(lines)
    if fault := fault_of(lines):
        raise InputError(f"{path}:{fault}: are several runs in one file? {_CURE}")
    events = [line.what for line in lines if isinstance(line.what, Event)]
    return EventFile(events, [line.what for line in lines if isinstance(line.what, TenantMoment)])
