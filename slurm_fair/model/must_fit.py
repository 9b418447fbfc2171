"""The time that must fit before the deadline of a job at its start: its least time, else its limit."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.model.snapshot import Snapshot


def least_seconds(key: Ints, deadline: Floats, limit: Floats, must_fit: Floats) -> dict[int, float]:
    """The least times (`--time-min`) below the limits of jobs with a deadline, by key."""
    rows = np.flatnonzero((deadline > 0) & (must_fit < limit))
    return dict(zip(key[rows].tolist(), must_fit[rows].tolist(), strict=True))


def must_fit_seconds(snapshot: Snapshot) -> Floats:
    """Seconds of each job that Slurm wants before its deadline when it starts it (slurm-facts: deadline-ends-job).

    They are inf for a job without any limit.
    """
    limit = snapshot.jobs.time_limit_seconds
    if not snapshot.least_times:
        return limit
    key = np.fromiter(snapshot.least_times, dtype=np.int64, count=len(snapshot.least_times))
    seconds = np.fromiter(snapshot.least_times.values(), dtype=np.float64, count=len(key))
    rows = find(snapshot.jobs.key, key)
    fits, here = limit.copy(), rows >= 0
    fits[rows[here]] = np.minimum(limit[rows[here]], seconds[here])
    return fits


def latest_starts(snapshot: Snapshot) -> Floats:
    """The latest instant at which Slurm starts each job; later it ends the job. It is inf without a deadline."""
    if snapshot.told is None:
        return np.full(len(snapshot.jobs), np.inf)
    fits = must_fit_seconds(snapshot)
    return snapshot.told.deadline - np.where(np.isfinite(fits), fits, 0.0)
