"""A ledger that folds the looks which it lacks when its tables are read, many plain looks in one pass.

The daemon folds every look at once (ledger/charging/advance.py). At most looks of a simulation nobody reads the
ledger, and one pass over many looks costs little more than a pass over one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, overload

from slurm_fair.ledger.charging.advance import folded, resized
from slurm_fair.ledger.charging.window_events import Happened
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import ClosedRuns, Event, JobAccounts, Ledger, Snapshot, TenantAccounts
from slurm_fair.sim.loop.pending_looks import PendingLook, strips

# So much is kept until it is folded, read or not: looks, and rows of their jobs in all.
_MOST_LOOKS, _MOST_ROWS = 64, 65_536
Hear = Callable[[Happened, Sequence[int]], None]


class LedgerBatches:
    """Folds looks into ledgers, many at a time; each pass gives `hear` a look and what it shows."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._shown: list[PendingLook] = []  # those that nobody has heard of yet
        self._rows = 0  # of their jobs
        self._newest: Pending | None = None

    def advance(
        self, ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings
    ) -> tuple[Ledger, tuple[Event, ...]]:
        """The ledger and one look more, and how many GPUs there are; what became of jobs is heard later."""
        if snapshot.time < ledger.time:
            return ledger, ()
        if len(self._shown) >= _MOST_LOOKS or self._rows >= _MOST_ROWS:
            self.tell_all()
        look, self._newest = Pending.after(ledger, snapshot, settings)
        self._shown.append(look)
        self._rows += len(snapshot.jobs)
        return Batched(ledger, snapshot, self._newest), resized(ledger, snapshot)

    def show(self, events: tuple[Event, ...]) -> Sequence[Event]:
        """Events of the last look for its policy; those of jobs are folded when the policy reads them."""
        return LookEvents(events, partial(self._last_events, self._shown[-1])) if self._shown else events

    def _last_events(self, look: PendingLook) -> Sequence[Event]:
        return self._happened(look).events[look.number]

    def tell_all(self) -> None:
        """A listener is told of every look so far."""
        looks: dict[Happened, list[int]] = {}
        for look in self._shown:
            looks.setdefault(self._happened(look), []).append(look.number)
        self._shown, self._rows = [], 0
        for happened, numbers in looks.items():
            self._hear(happened, numbers)

    def events(self) -> Sequence[Event]:
        """Events of the last look, one by one; nobody else is given them then."""
        look = self._shown.pop()
        return self._happened(look).events[look.number]

    def _happened(self, look: PendingLook) -> Happened:
        if look.happened is None and self._newest is not None:
            self._newest.folded()
        assert look.happened is not None, "a ledger was advanced that is not the newest"
        return look.happened


class LookEvents(Sequence[Event]):
    """Events of one look; those of jobs are worked out when somebody reads them."""

    def __init__(self, at_hand: tuple[Event, ...], of_jobs: Callable[[], Sequence[Event]]) -> None:
        self._at_hand, self._of_jobs = at_hand, of_jobs
        self._all: tuple[Event, ...] | None = None

    def _read(self) -> tuple[Event, ...]:
        if self._all is None:
            self._all = (*self._at_hand, *self._of_jobs())
        return self._all

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        return self._read()[at]


class Pending:
    """The source of a ledger's tables: an earlier ledger, and the looks that it lacks."""

    def __init__(
        self, base: Ledger, before: Snapshot | None, looks: tuple[PendingLook, ...], settings: LedgerSettings
    ) -> None:
        self._base, self._before, self._looks = base, before, looks
        self._last, self._highest, self._settings = looks[-1].snapshot, looks[-1].highest, settings

    @classmethod
    def after(
        cls, ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings
    ) -> tuple[PendingLook, Pending]:
        """A new look, and a ledger that has yet to charge the time until it."""
        if not isinstance(ledger, Batched):
            look = PendingLook(snapshot, -1)
            return look, cls(ledger, None, (look,), settings)
        pending = ledger.pending
        look = PendingLook(snapshot, pending._highest)
        if pending._goes_on(settings):
            return look, cls(pending._base, pending._before, (*pending._looks, look), settings)
        return look, cls(pending.folded(), pending._last, (look,), settings)

    def folded(self) -> Ledger:
        """The plain ledger with all of these looks in it."""
        looks = iter(self._looks)
        for strip in strips(self._base.time, self._before, self._looks):
            self._base, happened = folded(self._base, strip, self._settings)
            for number, look in zip(range(happened.looks), looks, strict=False):
                look.happened, look.number = happened, number
        self._before, self._looks = self._last, ()
        return self._base

    def _goes_on(self, settings: LedgerSettings) -> bool:
        """True if one look more can be kept until somebody reads all of them."""
        looks = len(self._looks)
        if not looks or self._before is None or settings != self._settings:
            return False
        return (looks + 1) * len(self._last.jobs) <= _MOST_ROWS


class Batched(Ledger):
    """A ledger whose tables are folded when somebody reads them."""

    __slots__ = ("pending",)
    pending: Pending

    def __init__(self, before: Ledger, snapshot: Snapshot, pending: Pending) -> None:
        for name, value in (
            ("time", snapshot.time),
            ("began", before.began),
            ("total_gpus", float(snapshot.total_gpus)),
            ("weighted_gpus", -1.0 if snapshot.gpu_weights is None else snapshot.weighted_gpus),
            ("pending", pending),
        ):
            object.__setattr__(self, name, value)

    @property
    def tenants(self) -> TenantAccounts:
        """One row per tenant."""
        return self.pending.folded().tenants

    @property
    def jobs(self) -> JobAccounts:
        """One row per job."""
        return self.pending.folded().jobs

    @property
    def closed(self) -> ClosedRuns:
        """Runs that are over."""
        return self.pending.folded().closed

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a plain ledger."""
        return Ledger, tuple(getattr(self, field.name) for field in fields(Ledger))


def plain_ledger(ledger: Ledger) -> Ledger:
    """The same ledger with its tables at hand."""
    return ledger.pending.folded() if isinstance(ledger, Batched) else ledger
