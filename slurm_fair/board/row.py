"""The words of a board's rows: a job's state and verdict, what blocks it, and where its lease stands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from slurm_fair.model import Blocked, JobState, LeasePhase, Verdict

Row = Mapping[str, Any]
LEASE_WORDS = {LeasePhase.GRANTED: "promised", LeasePhase.RUNNING: "running", LeasePhase.REVOKING: "revoking"}


def word(member: Enum) -> str:
    """A state, verdict or obstacle as a board writes it."""
    return member.name.lower()


def is_in(row: Row, state: JobState) -> bool:
    """True for a job in this state."""
    return bool(row["state"] == word(state))


def is_waiting(row: Row) -> bool:
    """True for a job in state WAITING."""
    return is_in(row, JobState.WAITING)


def has_verdict(row: Row, *verdicts: Verdict) -> bool:
    """True for a job of which the plan says one of these."""
    return row["verdict"] in map(word, verdicts)


def has_lease(row: Row, phase: LeasePhase) -> bool:
    """True for a job whose lease is in this phase."""
    return bool(row["lease"] == LEASE_WORDS[phase])


def is_starting(row: Row) -> bool:
    """True for a waiting job whose GPUs are promised."""
    return is_waiting(row) and has_lease(row, LeasePhase.GRANTED)


def may_be_planned(row: Row) -> bool:
    """True where nothing blocks the job, or only jobs that cannot be asked to give way."""
    return row["blocked"] in ("", word(Blocked.KEPT))
