"""Real runs beside simulations: means, spreads, differences, and whether the goal is met."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

Numbers = Mapping[str, float]
NEAR = 0.02  # of makespan, JCT and GPU-hours
NEAR_ENOUGH = 0.05  # of pre-emptions and rho
SAME_RUN = 0.01  # of one run that is followed


class Goal(StrEnum):
    """The answer to a difference: it is within its goal, or not."""

    MET = "yes"
    SPREAD = "in the real spread"
    MISSED = "no"


@dataclass(frozen=True, slots=True)
class Compared:
    """One number, as real runs and as simulations had it."""

    name: str
    real: tuple[float, ...]
    simulated: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The difference of the two means, as a part of the real one."""
        return apart(fmean(self.simulated), fmean(self.real))

    @property
    def goal(self) -> Goal:
        """Within the goal, or at least between the least and the greatest of the real runs."""
        if abs(self.difference) <= near(self.name):
            return Goal.MET
        inside = min(self.real) <= fmean(self.simulated) <= max(self.real)
        return Goal.SPREAD if inside else Goal.MISSED


def apart(simulated: float, real: float) -> float:
    """The difference as a part of the real number."""
    if simulated == real:
        return 0.0
    return simulated / real - 1 if real else math.inf


def near(name: str) -> float:
    """The goal of a number, as a part of it."""
    return NEAR_ENOUGH if name == "pre-emptions" or name.startswith("rho") else NEAR


def compared(real: Sequence[Numbers], simulated: Sequence[Numbers]) -> list[Compared]:
    """One for each number."""
    return [
        Compared(name, tuple(run[name] for run in real), tuple(run[name] for run in simulated))
        for name in real[0]
    ]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; 0 where there is one value."""
    return stdev(values) if len(values) > 1 else 0.0
