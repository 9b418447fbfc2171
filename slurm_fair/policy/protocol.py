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
