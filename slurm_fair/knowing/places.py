"""The GPU types on which jobs run."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Snapshot
from slurm_fair.model.columns import Floats, Ints


def types_of(snapshot: Snapshot, row: Ints) -> Ints:
    """The GPU type of each of these jobs, -1 = it holds no GPUs, or those of several types."""
    held, types = snapshot.held, len(snapshot.gpu_types)
    least, largest = np.full(len(snapshot.jobs), types), np.full(len(snapshot.jobs), -1)
    kinds = snapshot.nodes.gpu_type[held.node]
    np.minimum.at(least, held.row, kinds)
    np.maximum.at(largest, held.row, kinds)
    one: Ints = np.where(least == largest, largest, -1)[row]
    return one


def speeds_here(snapshot: Snapshot, rate: Floats) -> Floats:
    """The speed of each job where it lies: its slowest GPU sets the pace. nan for those that hold none."""
    held = snapshot.held
    speed = np.full(len(snapshot.jobs), np.inf)
    np.minimum.at(speed, held.row, rate[held.row, snapshot.nodes.gpu_type[held.node]])
    return np.where(np.isfinite(speed), speed, np.nan)
