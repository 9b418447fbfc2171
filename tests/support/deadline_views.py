"""Snapshots in which jobs have deadlines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Snapshot, Told
from slurm_fair.model.ids import labels

HOUR = 3600.0
TIGHT = (HOUR, HOUR - 600.0)  # it must start within ten minutes


def with_deadlines(seen: Snapshot, **given: tuple[float, float]) -> Snapshot:
    """Seconds from now to the deadline, and seconds of work left, by job (`j1=`); inf = nobody said."""
    told, names = seen.told or Told.nothing(len(seen.jobs), len(seen.gpu_types)), labels(seen.jobs.key)
    deadline, left = told.deadline.copy(), told.left_seconds.copy()
    for name, (ahead, work) in given.items():
        row = names.index(name.removeprefix("j"))
        deadline[row], left[row] = seen.time + ahead, work if np.isfinite(work) else np.nan
    return replace(seen, told=told.with_columns(deadline=deadline, left_seconds=left))
