"""What stands between two ticks, and what a tick leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Self, overload

from slurm_fair.model.account import Ledger
from slurm_fair.model.action import Outcome
from slurm_fair.model.lease import Leases, LeaseTerms
from slurm_fair.model.once import once
from slurm_fair.model.plan import Plan
from slurm_fair.model.snapshot import Snapshot

_NO_DETAIL: Mapping[str, Any] = {}
CAPACITY = "capacity"  # an event of the cluster, not of a job: M is now its number of GPUs


class Event(NamedTuple):
    """Something that happened to a job; the reports and the export are made of these."""

    time: float
    kind: str  # submitted started stopped finished granted opened renewed revoked asked requeued returned ...
    key: int
    tenant: str
    gpus: int
    detail: Mapping[str, Any] = _NO_DETAIL


class Later(NamedTuple):
    """Events of some kinds that are written out when somebody reads them."""

    kinds: tuple[str, ...]
    write: Callable[[], Sequence[Event]]

    def tells(self, kinds: Sequence[str]) -> bool:
        """Whether events of one of these kinds may be among them."""
        return not set(kinds).isdisjoint(self.kinds)


class Events(Sequence[Event]):
    """Events of one tick, some of them written out only when they are read: a lease's end may renew thousands."""

    def __init__(self, *parts: Sequence[Event] | Later) -> None:
        self._parts = [part for part in parts if part]

    def __add__(self, more: Events) -> Events:
        both = object.__new__(Events)  # no parts to look at
        both._parts = self._parts + more._parts
        return both

    @once
    def _all(self) -> tuple[Event, ...]:
        return tuple(chain.from_iterable(map(_written, self._parts)))

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return self._all == tuple(other) if isinstance(other, (Events, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return f"Events{self._all!r}"

    def changed(self, change: Callable[[Event], Event]) -> Events:
        """Those that are written out already, each changed; the others as they are."""
        return Events(
            *(part if isinstance(part, Later) else [change(event) for event in part] for part in self._parts)
        )

    def of(self, *kinds: str) -> list[Event]:
        """Those of some kinds; what is known to be of others is not written out for it."""
        parts = [part for part in self._parts if not isinstance(part, Later) or part.tells(kinds)]
        return [event for part in parts for event in _written(part) if event.kind in kinds]

    @property
    def at_hand(self) -> Sequence[Event]:
        """Those that are written out already: what happened to jobs, not what became of their leases."""
        return tuple(chain.from_iterable(part for part in self._parts if not isinstance(part, Later)))


def _written(part: Sequence[Event] | Later) -> Sequence[Event]:
    return part.write() if isinstance(part, Later) else part


@dataclass(frozen=True, slots=True)
class Standing:
    """The whole state that one tick hands to the next."""

    ledger: Ledger
    leases: Leases
    tick: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)
    unsettled: Mapping[int, float] = field(default_factory=dict)  # key -> instant of an unknown outcome
    backoff: Mapping[int, tuple[float, int]] = field(default_factory=dict)  # key -> (until, times)
    shunned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # key -> nodes it did not start on
    last_jobs: int = 0  # how many jobs lived at the last look
    amended: bool = False  # the ledger was settled with accounting since the last tick

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
