"""SLAQ: GPUs where the loss falls most (Zhang et al., SoCC 2017)."""

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

    SLAQ predicts each job's loss by a curve through what it reported (that of first-order methods falls as 1 / k
    after k iterations), scales it so that every job begins at 1, and gives GPUs greedily to the largest decrease.
    So does Themis' evaluation (NSDI 2020, section 6.1): "all apps report the decrease in loss value [...] and we
    allocate these resources in a greedy highest loss first manner". Reading: no loss is reported or recorded here,
    epochs are, so the curve is that of the theory and not fitted: the loss after e epochs is 1 / (e + 1). What a
    lease brings is told from the job's pace: seconds left per epoch left, or seconds done per epoch done where
    nobody knows what is left. A job that tells no epochs has 100 of them, or one a lease where its run time is not
    known. Gangs differ, so the decrease is counted per GPU. Young jobs go first and old ones wait long: quality
    in the sum is all that counts.
    """

    score_is: ClassVar[Order] = Order("the loss that a GPU takes away", highest_first=True)

    unknown_run_time: ClassVar[str] = "go at the pace that they had so far, or at one epoch a lease"

    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "slaq")

    def plan(self, view: View) -> Plan:
        """GPUs to where the loss falls most."""
        rows = contenders(view)
        score = np.full(len(view.waiting), np.nan)
        score[rows] = alike(decrease_per_gpu(view, rows))
        order = rows[np.lexsort((view.first_submit[rows], -score[rows]))]
        return ordered(view, order, place=self.placement, score=score, words=WORDS)


def decrease_per_gpu(view: View, rows: Ints) -> Floats:
    """1/(e + 1) - 1/(e + 1 + epochs in the next lease), per GPU."""
    told, term = view.told, view.terms.term
    left, done = told.left_seconds[rows], told.done_seconds[rows]
    known = np.isfinite(left)
    left = np.where(known, left, 0.0)
    says = np.isfinite(told.epochs[rows]) & np.isfinite(told.epoch[rows])
    by_part = np.where(known, EPOCHS * done / np.maximum(done + left, 1e-9), done / term)
    epoch = np.where(says, told.epoch[rows], by_part)
    to_do = np.where(says, told.epochs[rows], np.where(known, EPOCHS, np.inf)) - epoch
    so_far = np.where(epoch > 0, done / np.maximum(epoch, 1e-9), term)
    seconds = np.where(known, left / np.maximum(to_do, 1e-9), so_far)  # an epoch
    more = np.minimum(term / np.maximum(seconds, 1e-9), np.maximum(to_do, 0.0))
    decrease: Floats = 1.0 / (epoch + 1.0) - 1.0 / (epoch + 1.0 + more)
    return decrease / np.maximum(view.snapshot.jobs.gpus[rows], 1)
