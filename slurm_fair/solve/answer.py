"""The answer of a solver: the numbers, how good they are, and how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Floats, Ints

Table: TypeAlias = NDArray[np.float64]  # [job, GPU type]

LIMIT_SECONDS = 5.0  # wall clock of one problem, unless its caller has less


class How(Enum):
    """The way in which an answer was found."""

    EXACT = "exact"  # nothing is better, up to the solver's tolerance
    FEASIBLE = "feasible"  # what the solver had when its time was up; see the gap
    GREEDY = "greedy"  # the solver was late or failed: a rule that is always in time


@dataclass(frozen=True, slots=True)
class Shares:
    """The part of its time that each job is to spend on each GPU type."""

    fraction: Table
    objective: float
    how: How
    gap: float = 0.0  # |bound - objective| / |bound|; nan = no bound known
    seconds: float = 0.0  # wall clock of the solver


@dataclass(frozen=True, slots=True)
class Matching:
    """The column that each row got, -1 = none."""

    column: Ints
    objective: float
    how: How
    gap: float = 0.0


def usable(rate: Table, gang: Floats, capacity: Floats) -> Table:
    """Rates, but 0 where a gang is bigger than all GPUs of a type together: it can never run there."""
    fits = gang[:, None] <= capacity[None, :]
    return np.where(fits & (rate > 0), rate, 0.0)


def gap_between(bound: float, objective: float) -> float:
    """Relative gap as everywhere: |bound - objective| / |bound|."""
    if not np.isfinite(bound):
        return float("nan")
    return abs(bound - objective) / max(abs(bound), 1e-12)
