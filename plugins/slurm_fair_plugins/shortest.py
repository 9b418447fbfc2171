"""Shortest first: by remaining time, remaining service or declared run time (Tiresias, NSDI 2019, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slurm_fair.model import NEVER_ENDS_SECONDS, Plan
from slurm_fair.policy import (
    Floats,
    Ints,
    Order,
    PlacerName,
    View,
    Words,
    alike,
    any_of,
    attained,
    check_settings,
    contenders,
    only_renews,
    ordered,
)

WORDS = Words(
    granted="it is among the shortest",
    renewed="it is still among the shortest",
    revoked="a shorter job needs its GPUs",
    waits="others are shorter",
)
UNKNOWN = "come last, in the order of submission"
ATTAINED = "count as having left what they have run so far"


@dataclass(frozen=True, slots=True)
class ShortestRemaining:
    """Shortest remaining time first (SRTF): as leases end, the jobs nearest to their end go on.

    Reading: what remains is what a user declared (else the time limit) less what is done, or what the job itself
    reports; seconds with the whole gang on the reference GPU type. What a job of unknown length has run stands for
    what it has left.
    """

    score_is: ClassVar[Order] = Order("the seconds that it still needs")
    unknown_run_time: ClassVar[str] = ATTAINED

    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "srtf")

    def plan(self, view: View) -> Plan:
        """GPUs to those that have the least to do."""
        rows = contenders(view)
        left = _left(view)[rows] if len(rows) else np.zeros(0)
        return _shortest_first(view, rows, left, self.placement, preempt=True)


@dataclass(frozen=True, slots=True)
class ShortestRemainingService:
    """Shortest remaining service first (SRSF): remaining time multiplied by the number of GPUs.

    Reading: as `srtf` for the remaining time.
    """

    score_is: ClassVar[Order] = Order("the GPU-seconds that it still needs")

    unknown_run_time: ClassVar[str] = ATTAINED

    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "srsf")

    def plan(self, view: View) -> Plan:
        """GPUs to those that need the least GPU time to end."""
        rows = contenders(view)
        service = _left(view)[rows] * view.snapshot.jobs.gpus[rows] if len(rows) else np.zeros(0)
        return _shortest_first(view, rows, service, self.placement, preempt=True)


@dataclass(frozen=True, slots=True)
class ShortestJob:
    """Shortest job first (SJF): the least declared run time; nobody is stopped.

    Reading: without pre-emption, and a gang that does not fit is passed over by longer ones that do.
    """

    score_is: ClassVar[Order] = Order("the seconds that it takes")

    lease_seconds: ClassVar[float] = NEVER_ENDS_SECONDS

    unknown_run_time: ClassVar[str] = UNKNOWN

    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "sjf")

    def plan(self, view: View) -> Plan:
        """Free GPUs to the shortest jobs."""
        rows = np.flatnonzero(view.waiting)
        declared = view.told.declared_seconds[rows] if len(rows) else np.zeros(0)
        return _shortest_first(view, rows, declared, self.placement, preempt=False)


def _left(view: View) -> Floats:
    """Seconds that each job still needs, as users and jobs say; else what it has run."""
    left = view.told.left_seconds
    unknown = ~np.isfinite(left)
    return np.where(unknown, attained(view), left) if any_of(unknown) else left


def _shortest_first(view: View, rows: Ints, length: Floats, placement: str, *, preempt: bool) -> Plan:
    """A plan in the order of `length`; between equals the one submitted first comes first."""
    length = alike(length)
    order = rows[np.lexsort((view.first_submit[rows], length))]
    score = np.full(len(view.waiting), np.nan)
    score[rows] = length
    return ordered(view, order, preempt=preempt, place=placement, score=score, words=WORDS)
