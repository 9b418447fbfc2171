"""The doors between the pure core and the world; adapters stand behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol, TypeVar

from slurm_fair.model import Action, Blind, Outcome, Plan, RunTable, Snapshot, Standing, TickRecord

Seen = TypeVar("Seen", contravariant=True)  # what a policy is shown: this layer knows no views


class Cluster(Protocol):
    """A cluster that can be seen and acted on: Slurm, or a virtual one."""

    @property
    def acts(self) -> bool:
        """True if acts are tried at all; those of a dry run are not."""
        ...

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        """The cluster now; `asked` = when each job that still owes an acknowledgement was asked for it."""
        ...

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Do what still applies; one outcome per action, in the same order.

        More outcomes may follow in a simulation: of requeues of jobs that answer as soon as they are asked. The
        answer of a real job is seen by a look.
        """
        ...


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep_until(self, instant: float) -> None:
        """Return at that instant, or earlier when there is a reason to look again."""
        ...


class IntentLog(Protocol):
    """The log in which an act is written down before it is done, and its outcome after."""

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        """Durable before it returns; the ids go back into `conclude`."""
        ...

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None:
        """Write down the outcomes of these intents."""
        ...


class Want(Enum):
    """Contents of a tick that are worked out only for a journal that wants them."""

    JOB_EVENTS = auto()  # what became of jobs, as the ledger finds it out
    LEASE_EVENTS = auto()  # grants, renewals, returns and acts; what outcomes are made of is told in any case
    EXPLANATION = auto()  # why a plan decides, and in what order: worked out before anything is done


EVERYTHING = frozenset(Want)


class Journal(Protocol):
    """The memory of the controller."""

    @property
    def wants(self) -> Collection[Want]:
        """The contents that its ticks must have; others need not be worked out."""
        ...

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Keep one tick, and the standing after it, in one transaction."""
        ...

    def latest(self) -> Standing | None:
        """The standing after the last tick kept; None in a new journal."""
        ...

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        """Ticks by number, oldest first."""
        ...


class History(Protocol):
    """Past runs of jobs: sacct, a journal or a trace."""

    def runs(self, start: float, end: float, partitions: Iterable[str]) -> RunTable | Blind:
        """Runs that overlap the period."""
        ...


class Planner(Protocol[Seen]):
    """A plan before a deadline."""

    @property
    def keeps_time(self) -> bool:
        """True if it returns by the deadline whatever the policy does."""
        ...

    def plan(self, view: Seen, limit_seconds: float) -> Plan:
        """The policy's plan, or another that stands in for it and says so in its note.

        NoPlan where there is none. What it raises besides is the policy's own error.
        """
        ...
