"""Optimus: GPUs where the next one brings most (Peng et al., EuroSys 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.policy import (
    Floats,
    Ints,
    Order,
    PlacerName,
    View,
    Words,
    alike,
    check_settings,
    contenders,
    only_renews,
    ordered,
)

_ONE_GPU = 1e6  # the score of a job that would stand still without its last GPU
WORDS = Words(
    granted="its last GPU adds most to its speed",
    renewed="its last GPU still adds more to its speed than those of the jobs that wait would to theirs",
    revoked="a job to which another GPU adds more needs its GPUs",
    waits="another GPU adds more to the speed of others",
)


@dataclass(frozen=True, slots=True)
class Optimus:
    """Highest throughput scaling first.

    Optimus fits each job's time per step to its number of workers and adds them one by one, each to the job that
    gains most. In Themis' evaluation (NSDI 2020, section 6.1) its metric is throughput scaling, "the ratio of new
    job throughput to old job throughput with and without an additional GPU", the highest first. Readings: gangs
    are rigid here, so a gang stands where its last GPU does, at speed(g) / speed(g - 1), and a job's only GPU
    before all. A step on k GPUs takes a / k + b of its time on one: the part that parallelises and the rest, from
    the measured speed of the gang against that of one GPU; where that was not measured, b = 0, and the ratio is
    g / (g - 1): small gangs first. Equals go by the shortest remaining time, which shortens the mean most. A GPU
    type multiplies both speeds and plays no part.
    """

    score_is: ClassVar[Order] = Order(
        "how much faster its last GPU makes it (a million if it has one)",
        highest_first=True,
        then="the seconds that it still needs, then the time of its submission",
    )

    unknown_run_time: ClassVar[str] = "come last among gangs that scale alike"

    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "optimus")

    def plan(self, view: View) -> Plan:
        """GPUs to where they add most."""
        rows = contenders(view)
        score = np.full(len(view.waiting), np.nan)
        score[rows] = last_gpu_ratio(view.snapshot.jobs.gpus[rows], view.told.scaling[rows]).clip(
            max=_ONE_GPU
        )
        left = alike(view.told.left_seconds[rows])
        order = rows[np.lexsort((view.first_submit[rows], left, -score[rows]))]
        return ordered(view, order, place=self.placement, score=score, words=WORDS)


def last_gpu_ratio(gpus: Ints, scaling: Floats) -> Floats:
    """speed(g) / speed(g - 1); infinite for one GPU. `scaling` = speed(g) / speed(1), nan = not measured."""
    gang = np.maximum(gpus, 1).astype(np.float64)
    slow = np.where(scaling > 0, 1.0 / np.where(scaling > 0, scaling, 1.0), 1.0 / gang)  # time per step on g
    alone = np.where(gang > 1, 1.0 - 1.0 / gang, 1.0)
    part = np.where(gang > 1, (1.0 - slow) / alone, 1.0)
    before = part / np.maximum(gang - 1.0, 1.0) + (1.0 - part)
    return np.where(gang > 1, before / slow, np.inf)
