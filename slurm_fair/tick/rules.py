"""The rules of a tick: the policy, the lengths of leases, and how the ledger takes in a look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.model import (
    Event,
    LeaseTerms,
    Ledger,
    Plan,
    Snapshot,
)
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import planned
from slurm_fair.policy.profiling import Profiling
from slurm_fair.ports import Planner
from slurm_fair.reconcile import (
    Limits,
)

# How a ledger takes in a look; events of jobs that the journal does not want may be left out.
Advance = Callable[[Ledger, Snapshot, LedgerSettings], tuple[Ledger, tuple[Event, ...]]]
# What a policy is shown of a look that a ledger took in: all events, whatever the journal wants.
Show = Callable[[tuple[Event, ...]], Sequence[Event]]


def _all_events(events: tuple[Event, ...]) -> Sequence[Event]:
    return events


@dataclass(frozen=True, slots=True)
class InThisProcess:
    """The planner that calls a method of the policy and waits for it, however long it takes."""

    make: Callable[[View], object]
    keeps_time: ClassVar[bool] = False

    def plan(self, view: View, limit_seconds: float) -> Plan:
        """The policy's own; the limit is in the view, as its deadline."""
        return planned(self.make, view)


@dataclass(frozen=True, slots=True)
class Rules:
    """The policy and settings of a tick."""

    policy_name: str
    policy: Policy
    settings: Mapping[str, Any]
    terms: LeaseTerms
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    plan_limit_seconds: float = 30.0
    advance: Advance = advance
    show: Show = _all_events
    planner: Planner[View] | None = None  # None: the policy is called in this process
    profiling: Profiling | None = None  # None: nobody's speed is measured in turns of its own
