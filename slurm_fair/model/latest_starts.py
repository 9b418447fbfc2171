"""The latest start that Slurm allows a job: what must fit before its deadline then is in the snapshot."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats
from slurm_fair.model.snapshot import Snapshot


def latest_starts(snapshot: Snapshot) -> Floats:
    """The latest instant at which Slurm starts each job; later it ends the job. It is inf without a deadline."""
    if snapshot.told is None:
        return np.full(len(snapshot.jobs), np.inf)
    fits = snapshot.must_fit_seconds
    return snapshot.told.deadline - np.where(np.isfinite(fits), fits, 0.0)
