"""The distinct ways in which jobs may run: so many GPUs of a kind, on one server or spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.places.problem import PlacesProblem

_LARGEST = 1000.0  # of the values that a solver is given: its tolerances are absolute


@dataclass(frozen=True, slots=True)
class Ways:
    """The requests of columns, each once, and the columns that are worth something."""

    kind: Ints  # [way]
    gpus: Ints  # [way]
    several: Bools  # [way]
    columns: Ints  # [use] columns of the problem, by job
    job: Ints  # [use]
    way: Ints  # [use]
    value: Floats  # [use]

    @classmethod
    def of(cls, problem: PlacesProblem) -> Ways:
        """The ways of a problem."""
        worth = np.flatnonzero(problem.value > 0)
        columns = worth[np.argsort(problem.job[worth], kind="stable")]
        key = 2 * problem.gpus[columns] + problem.several[columns]
        most = 2 + int(key.max(initial=0))
        found, way = np.unique(problem.on[columns] * most + key, return_inverse=True)
        kind, rest = found // most, found % most
        job, value = problem.job[columns], problem.value[columns]
        return cls(kind, rest // 2, rest % 2 == 1, columns, job, way.astype(np.int64), value)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def unit(self) -> float:
        """The worth that is 1 in a program, and so in its prices and its bound."""
        return float(self.value.max(initial=0.0)) / _LARGEST or 1.0

    def without(self, possible: Bools) -> Ways:
        """The same ways, without the columns of those that cannot be had."""
        kept = possible[self.way]
        return Ways(
            self.kind,
            self.gpus,
            self.several,
            self.columns[kept],
            self.job[kept],
            self.way[kept],
            self.value[kept],
        )
