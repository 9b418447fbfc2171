"""Optimus: GPUs where the next one brings most (Peng et al., EuroSys 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.model.columns import Floats
from slurm_fair.policy.ordered import Words, contenders, ordered
from slurm_fair.policy.settings import PlacerName, check_settings
from slurm_fair.policy.view import View

WORDS = Words(
    granted="each of its GPUs brings most",
    renewed="each of its GPUs still brings more than those who wait would have of it",
    revoked="a job that makes more of each GPU needs its GPUs",
    waits="others make more of each GPU",
)


@dataclass(frozen=True, slots=True)
class Optimus:
    """Highest gain per GPU first.

    Optimus adds workers to jobs one by one, each to the job whose completion time it shortens most; Themis'
    evaluation (NSDI 2020, section 6) orders by throughput scaling: throughput with another GPU over that without.
    Reading: gangs are rigid here, so the step is from nothing to the whole gang, and its gain per GPU is
    speed / gang on the job's best GPU type. With linear scaling that is Themis' order too, g / (g - 1): small
    gangs first. Equal gains go to the shortest remaining time, which shortens the mean most.
    """

    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "optimus")

    def plan(self, view: View) -> Plan:
        """GPUs to the highest gains."""
        rows = contenders(view)
        gain = gain_per_gpu(view)
        left = view.told.left_seconds[rows]
        order = rows[np.lexsort((view.first_submit[rows], left, -gain[rows]))]
        return ordered(view, order, place=self.placement, score=gain, words=WORDS)


def gain_per_gpu(view: View) -> Floats:
    """Speed on the best GPU type that there is and that the job takes, per GPU of its gang."""
    jobs, nodes = view.snapshot.jobs, view.snapshot.nodes
    types = len(view.snapshot.gpu_types)
    there = np.bincount(nodes.gpu_type, nodes.capacity, minlength=types) > 0
    may = (jobs.gpu_type < 0)[:, None] | (jobs.gpu_type[:, None] == np.arange(types))
    speed = np.where(may & there, view.told.rate, 0.0).max(axis=1, initial=0.0)
    gain: Floats = speed / np.maximum(jobs.gpus, 1)
    return gain
