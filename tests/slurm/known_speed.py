"""The speed of a job on a real Slurm, as a look knows it."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Snapshot
from slurm_fair.model.columns import find
from tests.slurm.harness import Job


def known_speed(seen: Snapshot, job: Job, gpu_type: int, gpus: int, apart: bool) -> float:
    """Samples a second that a look takes the job to make in that shape; nan if nothing is known."""
    row = find(seen.jobs.key, np.array([job.key]))
    if seen.speeds is None or row.item() < 0:
        return float("nan")
    shape = np.array([gpu_type]), np.array([gpus]), np.array([not apart])
    return float(seen.speeds.rates(row, *shape).item())
