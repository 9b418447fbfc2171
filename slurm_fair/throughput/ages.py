"""Ages: how much a sample still counts."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, ranks_within
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.throughput.known import Keeping


def weights(group: Ints, time: Floats, now: float, keeping: Keeping) -> Floats:
    """1 for a new sample, half of it after a half-life in days, and after one in newer samples of its group."""
    aged: Floats = np.exp2(-np.maximum(now - time, 0.0) / (keeping.half_life_days * DAY_SECONDS))
    if np.isinf(keeping.half_life_samples) or not len(time):
        return aged
    newer = ranks_within(group, np.lexsort((-time, group)))
    by_count: Floats = aged * np.exp2(-newer / keeping.half_life_samples)
    return by_count
