"""A policy is a frozen dataclass whose fields are its settings, with one pure method."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from slurm_fair.model import Plan
from slurm_fair.policy.view import View


@runtime_checkable
class Policy(Protocol):
    """Decides who runs where for the next lease."""

    def plan(self, view: View) -> Plan:
        """One verdict for every managed job; the same view gives the same plan."""
        ...


@runtime_checkable
class QuickPolicy(Protocol):
    """A policy that also has a plan which costs it next to nothing."""

    def quick_plan(self, view: View) -> Plan:
        """The plan that stands in where `plan` is late or fails; its memory is not kept."""
        ...


def solves(policy: object) -> bool:
    """True of a policy whose plan may take long, because it calls a solver: it says so itself."""
    return getattr(policy, "solves", False) is True
