"""The state between two ticks, and the record that a tick leaves in the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self, TypeAlias, overload

from slurm_fair.model.account import Ledger
from slurm_fair.model.action import Outcome
from slurm_fair.model.event import Event, EventKind
from slurm_fair.model.lease import Leases, LeaseTerms
from slurm_fair.model.once import once
from slurm_fair.model.plan import Plan
from slurm_fair.model.snapshot import Snapshot

_NOTHING: Mapping[Any, Any] = {}


class Later(NamedTuple):
    """Events of some kinds that are written out when somebody reads them."""

    kinds: tuple[EventKind, ...]
    write: Callable[[], Sequence[Event]]

    def tells(self, kinds: Sequence[str]) -> bool:
        """Whether events of one of these kinds may be among them."""
        return not set(kinds).isdisjoint(self.kinds)


class Untold:
    """Events that are told when somebody first asks: what became of jobs, which the ledger finds out then."""

    __slots__ = ("_events", "_tell")

    def __init__(self, tell: Callable[[], Sequence[Event]]) -> None:
        self._tell: Callable[[], Sequence[Event]] | None = tell
        self._events: Sequence[Event] = ()

    @property
    def events(self) -> Sequence[Event]:
        if self._tell is not None:
            self.told(self._tell())
        return self._events

    def told(self, events: Sequence[Event]) -> None:
        """What they are; how they would have been found out is forgotten, and all that is kept for it."""
        if self._tell is not None:
            self._events, self._tell = events, None


_Part: TypeAlias = Sequence[Event] | Later | Untold
# Kinds of what is untold.
_OF_JOBS = frozenset({EventKind.SUBMITTED, EventKind.STARTED, EventKind.STOPPED, EventKind.FINISHED})


class Events(Sequence[Event]):
    """Events of one tick, some of them written out only when they are read: a lease's end may renew thousands."""

    def __init__(self, *parts: _Part) -> None:
        self._parts = [part for part in parts if part]

    @classmethod
    def _of(cls, parts: list[_Part]) -> Self:
        events = object.__new__(cls)  # no parts to look at
        events._parts = parts
        return events

    def __add__(self, more: Events) -> Events:
        return self._of(self._parts + more._parts)

    @once
    def _all(self) -> tuple[Event, ...]:
        return tuple(chain.from_iterable(map(_written, self._parts)))

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return self._all == tuple(other) if isinstance(other, (Events, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return f"Events{self._all!r}"

    def changed(self, change: Callable[[Sequence[Event]], Sequence[Event]]) -> Events:
        """Those of `at_hand` changed, part by part; the others as they are."""
        return self._of([_changed(part, change) for part in self._parts])

    def of(self, *kinds: str) -> list[Event]:
        """Those of some kinds; what is known to be of others is not written out for it."""
        parts = [part for part in self._parts if _tells(part, kinds)]
        return [event for part in parts for event in _written(part) if event.kind in kinds]

    @property
    def told(self) -> list[Sequence[Event]]:
        """Those of `at_hand`, part by part, as whoever told of them left them."""
        return [_written(part) for part in self._parts if not isinstance(part, Later)]

    @property
    def at_hand(self) -> Events:
        """What happened to jobs, and what is written out already: not what became of their leases."""
        return self._of([part for part in self._parts if not isinstance(part, Later)])


def _written(part: _Part) -> Sequence[Event]:
    if isinstance(part, Untold):
        return part.events
    return part.write() if isinstance(part, Later) else part


def _tells(part: _Part, kinds: Sequence[str]) -> bool:
    if isinstance(part, Untold):
        return not _OF_JOBS.isdisjoint(kinds)
    return part.tells(kinds) if isinstance(part, Later) else True


def _changed(part: _Part, change: Callable[[Sequence[Event]], Sequence[Event]]) -> _Part:
    if isinstance(part, Untold):
        return Untold(lambda: change(part.events))
    return part if isinstance(part, Later) else change(part)


class Standing(NamedTuple):
    """The whole state that one tick hands to the next."""

    ledger: Ledger
    leases: Leases
    tick: int = 0
    memory: Mapping[str, Any] = _NOTHING
    unsettled: Mapping[int, float] = _NOTHING  # key -> instant of an unknown outcome
    backoff: Mapping[int, tuple[float, int]] = _NOTHING  # key -> (until, times)
    shunned: Mapping[int, tuple[str, ...]] = _NOTHING  # key -> nodes it did not start on
    unmoved: Mapping[int, tuple[float, int]] = _NOTHING  # as `backoff`, of jobs not to be stopped
    unshut: Mapping[int, tuple[float, int]] = _NOTHING  # as `backoff`, of gates that Slurm refuses
    last_jobs: int = 0  # how many jobs lived at the last look
    amended: bool = False  # the ledger was settled with accounting since the last tick
    asked_for: Mapping[int, tuple[int, ...]] = (
        _NOTHING  # key of a job that is to give way -> of those that get its GPUs
    )

    @classmethod
    def new(cls, time: float) -> Self:
        """Nothing has happened yet."""
        return cls(Ledger.new(time), Leases.none())


class TickRecord(NamedTuple):
    """One tick as the journal keeps it: enough to plan it again and to explain it."""

    number: int
    time: float
    policy: str
    settings: Mapping[str, Any]
    terms: LeaseTerms
    seed: int
    snapshot: Snapshot
    plan: Plan
    outcomes: tuple[Outcome, ...]
    events: Sequence[Event]
    seconds: Mapping[str, float]  # observe, advance, plan, act
    dry_run: bool = False
    guard: str = ""  # why actions were held back, if they were
    amended: Ledger | None = None  # the ledger that this tick began with, when it was settled before
