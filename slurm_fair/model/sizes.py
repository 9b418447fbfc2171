"""The numbers of GPUs with which elastic jobs can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Bools, Columns, Ints, check_lengths


@dataclass(frozen=True)
class Sizes(Columns):
    """One row per elastic job and size, sorted by both. A job that is not among them has the size of its gang."""

    row: Ints  # row of the snapshot's jobs
    gpus: Ints
    usual: Bools  # the size that its user asked for first; declared run times are meant with it

    def __post_init__(self) -> None:
        check_lengths(self)

    @classmethod
    def none(cls) -> Self:
        nobody = np.zeros(0, dtype=np.int64)
        return cls(nobody, nobody, np.zeros(0, dtype=bool))

    @classmethod
    def of(cls, gpus: Ints, elastic: Self | None) -> Self:
        """The sizes of all jobs: of gangs with so many GPUs, of which some are elastic."""
        rows = np.arange(len(gpus))
        if elastic is None or not len(elastic):
            return cls(rows, gpus, np.ones(len(gpus), dtype=bool))
        rigid = np.setdiff1d(rows, elastic.row)
        row = np.concatenate([rigid, elastic.row])
        order = np.argsort(row, kind="stable")
        every = np.concatenate([gpus[rigid], elastic.gpus])[order]
        usual = np.concatenate([np.ones(len(rigid), dtype=bool), elastic.usual])[order]
        return cls(row[order], every, usual)

    def allow(self, rows: Ints, gpus: Ints) -> Bools:
        """True for each of these jobs that is elastic and can run with so many GPUs."""
        if not len(self):
            return np.zeros(len(rows), dtype=bool)
        most = 1 + int(max(self.gpus.max(), gpus.max(initial=0)))
        allowed: Bools = np.isin(rows * most + gpus, self.row * most + self.gpus)
        return allowed

    def usual_gpus(self, gpus: Ints) -> Ints:
        """The usual size of each job; `gpus` = the gang of each, which is that of a rigid job."""
        usual = gpus.copy()
        usual[self.row[self.usual]] = self.gpus[self.usual]
        return usual
