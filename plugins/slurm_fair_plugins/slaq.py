"""SLAQ: GPUs where the loss falls most (Zhang et al., SoCC 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.policy.ordered import Words, contenders, ordered
from slurm_fair.policy.settings import PlacerName, check_settings
from slurm_fair.policy.view import View

EPOCHS = 100.0  # of a job that does not tell: a hundredth of its work is an epoch

WORDS = Words(
    granted="its loss falls most for each GPU",
    renewed="its loss still falls more for each GPU than that of those who wait",
    revoked="a job whose loss falls more for each GPU needs its GPUs",
    waits="the loss of others falls more for each GPU",
)


@dataclass(frozen=True, slots=True)
class Slaq:
    """The largest decrease of loss over the next lease, per GPU, first.

    SLAQ fits each job's loss with the curve of first-order methods, 1 / k after k iterations, and scales it so
    that every job begins at 1. Reading: losses are not reported here, epochs are, so the loss after e epochs
    is 1 / (e + 1); what a lease brings is told from the job's pace, (left / epochs left) seconds an epoch. Young
    jobs go first and old ones wait long: quality in the sum is all that counts.
    """

    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "slaq")

    def plan(self, view: View) -> Plan:
        """GPUs to where the loss falls most."""
        rows = contenders(view)
        score = np.full(len(view.waiting), np.nan)
        score[rows] = decrease_per_gpu(view, rows)
        order = rows[np.lexsort((view.first_submit[rows], -score[rows]))]
        return ordered(view, order, place=self.placement, score=score, words=WORDS)


def decrease_per_gpu(view: View, rows: Ints) -> Floats:
    """1/(e + 1) - 1/(e + 1 + epochs in the next lease), per GPU."""
    told = view.told
    left, done = told.left_seconds[rows], told.done_seconds[rows]
    part = np.where(np.isfinite(left), done / np.maximum(done + left, 1e-9), 0.0)
    says = np.isfinite(told.epochs[rows]) & np.isfinite(told.epoch[rows])
    epochs = np.where(says, told.epochs[rows], EPOCHS)
    epoch = np.where(says, told.epoch[rows], part * EPOCHS)
    seconds = np.where(np.isfinite(left), left / np.maximum(epochs - epoch, 1e-9), view.terms.term)
    more = np.minimum(view.terms.term / np.maximum(seconds, 1e-9), np.maximum(epochs - epoch, 0.0))
    decrease: Floats = 1.0 / (epoch + 1.0) - 1.0 / (epoch + 1.0 + more)
    return decrease / np.maximum(view.snapshot.jobs.gpus[rows], 1)
