"""Jobs whose users want their speed measured on every GPU type, and what was measured of them so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Bools, Columns, Floats, Ints


@dataclass(frozen=True)
class Profiles(Columns):
    """One row per job that asked for it, by its row in the snapshot, ascending."""

    row: Ints  # of the snapshot's jobs
    job_class: Ints  # jobs with one number are taken to be as fast as one another
    steps: Floats  # that its present run has reported
    measured: Bools  # [row, GPU type of the snapshot] the speed of its class is known there

    @classmethod
    def asked(cls, row: Ints, gpu_types: int) -> Self:
        """Nothing is to be measured until somebody says who is like whom, and what is known."""
        measured = np.ones((len(row), gpu_types), dtype=bool)
        return cls(row, np.arange(len(row)), np.zeros(len(row)), measured)
