"""The state between two ticks, and the record that a tick leaves in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from slurm_fair.model.account import Ledger
from slurm_fair.model.action import Outcome
from slurm_fair.model.event import Event
from slurm_fair.model.lease import Leases, LeaseTerms
from slurm_fair.model.plan import Plan
from slurm_fair.model.retries import Retries
from slurm_fair.model.snapshot import Snapshot

_NOTHING: Mapping[Any, Any] = {}
_NO_RETRIES: Retries[int] = Retries()


class Unfilled(NamedTuple):
    """A time without us of which accounting has told nothing yet: the ledger before it, the look that ended it."""

    before: Ledger
    look: Snapshot


class Standing(NamedTuple):
    """The whole state that one tick hands to the next."""

    ledger: Ledger
    leases: Leases
    tick: int = 0
    memory: Mapping[str, Any] = _NOTHING
    unsettled: Mapping[int, float] = _NOTHING  # key -> instant of an unknown outcome
    backoff: Retries[int] = _NO_RETRIES  # of jobs that Slurm did not start
    shunned: Mapping[int, tuple[str, ...]] = _NOTHING  # key -> nodes it did not start on
    unmoved: Retries[int] = _NO_RETRIES  # of jobs that Slurm would not stop
    unshut: Retries[int] = _NO_RETRIES  # of gates that Slurm refuses
    last_jobs: int = 0  # how many jobs lived at the last look
    amended: bool = False  # the ledger was settled with accounting since the last tick
    # Key of a job that is to give way -> of those that get its GPUs.
    asked_for: Mapping[int, tuple[int, ...]] = _NOTHING
    # A checksum of the queue that the last plan left over (`reconcile/left_over.py`); 0 = not known.
    left_over: int = 0
    unfilled: tuple[Unfilled, ...] = ()  # the earliest first

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
    events: tuple[Event, ...]
    seconds: Mapping[str, float]  # observe, advance, plan, act
    dry_run: bool = False
    guard: str = ""  # why actions were held back, if they were
    amended: Ledger | None = None  # the ledger that this tick began with, when it was settled before
    left_over: int | None = None  # as the standing had it that this tick began with; None = an older tick
