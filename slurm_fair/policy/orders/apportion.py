"""Fixed parts of the cluster: whole GPUs shared out by weight."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints


def whole_parts(gpus: int, weight: Floats) -> Ints:
    """Whole GPUs by weight that add up to all of them: the largest remainders are rounded up, then by order."""
    total = float(weight.sum())
    if total <= 0:
        return np.zeros(len(weight), dtype=np.int64)
    exact = gpus * weight / total
    part: Ints = np.floor(exact + 1e-9).astype(np.int64)
    part[np.argsort(part - exact, kind="stable")[: gpus - int(part.sum())]] += 1
    return part
