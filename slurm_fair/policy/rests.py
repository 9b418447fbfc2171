"""The words by which a policy says when a simulation need not ask it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slurm_fair.model import Snapshot

_AGAIN = "again"  # in a plan's memory


def only_renews(policy: object, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
    """A policy's `rests` if, while nobody waits, it renews all leases that end and remembers nothing new."""
    return True


def rests(policy: object, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
    """True if a policy says so of itself, after a plan for this snapshot that left it this memory."""
    says = getattr(policy, "rests", None)
    return says is not None and bool(says(snapshot, memory))


def with_again(memory: Mapping[str, Any], instant: float) -> Mapping[str, Any]:
    """A memory that says from when on its policy would plan otherwise though nothing happens; inf = never."""
    if math.isfinite(instant):
        return {**memory, _AGAIN: instant}
    return {name: kept for name, kept in memory.items() if name != _AGAIN} if _AGAIN in memory else memory


def again(memory: Mapping[str, Any]) -> float:
    """The instant that `with_again` put into a memory."""
    return float(memory.get(_AGAIN, math.inf))
