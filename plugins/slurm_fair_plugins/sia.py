"""Sia: sizes and GPU types of all jobs by an integer program (Subramanya et al., SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from slurm_fair.policy import Order, Within, check_settings
from slurm_fair_plugins.sized import Sized


@dataclass(frozen=True, slots=True)
class Sia(Sized):
    """The sum of  gain^p, and lambda for each job without GPUs,  is as small as can be (section 3.4).

    The gain of a configuration, a size on a GPU type, is the job's speed over its least speed; GPUs are counted by
    kind of server. A change costs a job the factor  (age - restarts x cost) / (age + cost)  of its gain. Then
    the chosen jobs are laid on servers, the largest first; one that finds no place waits. Readings: gains are
    throughput alone, as batch sizes are the jobs' own; sizes are those that a job can have; p is negative.
    What is left over goes to whoever fits it with its usual size.
    """

    score_is: ClassVar[Order] = Order("the gain that it was given", highest_first=True)

    power: Annotated[float, Within(-10, -0.01, "the paper's p: the lower, the more even")] = -0.5
    penalty: Annotated[float, Within(1, 100, "the paper's lambda, of a job without GPUs")] = 1.1

    def __post_init__(self) -> None:
        check_settings(self, "sia")

    @property
    def without(self) -> float:
        return self.penalty
