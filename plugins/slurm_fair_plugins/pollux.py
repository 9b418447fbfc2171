"""Pollux: sizes of all jobs by their speed-ups, blind to GPU types (Qiao et al., OSDI 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slurm_fair.policy import Order, check_settings
from slurm_fair_plugins.sized import Sized


@dataclass(frozen=True, slots=True)
class Pollux(Sized):
    """The p-norm of the jobs' speed-ups is as large as can be (section 4.2); all GPUs count as alike.

    A job's speed in a size is its mean over the GPU types that it may have, and its speed-up is that over the
    speed in its smallest size. A change costs it the factor  (age - restarts x cost) / (age + cost)  of its
    speed-up. Readings: speed-ups are of throughput alone, as batch sizes are the jobs' own; a job without GPUs
    counts as half as fast as with its smallest size; the norm is maximised exactly in place of the genetic
    algorithm; places are found as by `sia`, wherever there is room.
    """

    score_is: ClassVar[Order] = Order("the speed-up that it was given", highest_first=True)
    blind_to_types: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self, "pollux")

    @property
    def without(self) -> float:
        return float(0.5**self.power)
