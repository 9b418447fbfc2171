"""Jobs that are to be profiled: where they were measured, and the steps that their present runs reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.knowing.classes import NO_CLASS
from slurm_fair.model import Beliefs, Profiles, Snapshot
from slurm_fair.model.columns import Floats, Ints, find, take_or
from slurm_fair.throughput import JobClass, Samples
from slurm_fair.throughput.names import places_in


def profiled(
    seen: Snapshot, asked: Profiles, kinds: Sequence[JobClass], samples: Samples, beliefs: Beliefs
) -> Profiles:
    """The profiles of the jobs that asked for it; `kinds` are the classes of all jobs."""
    mine = [kinds[row] for row in asked.row.tolist()]
    classes = tuple(dict.fromkeys(mine))
    job_class = places_in(mine, classes)[:-1]
    measured = np.zeros((len(classes), len(seen.gpu_types)), dtype=bool)
    of = places_in(samples.classes, classes)[samples.job_class]
    on = places_in(samples.gpu_types, seen.gpu_types)[samples.gpu_type]
    there = (of >= 0) & (on >= 0)
    measured[of[there], on[there]] = True
    measured[[one == NO_CLASS for one in classes]] = True  # nothing could be learned of such a job
    return Profiles(asked.row, job_class, _steps(seen, asked.row, beliefs), measured[job_class])


def _steps(seen: Snapshot, rows: Ints, beliefs: Beliefs) -> Floats:
    """Steps that the present run of each job has reported; 0 of one that reports none."""
    if seen.reported is None:
        return np.zeros(len(rows))
    said = take_or(seen.reported.step, find(seen.reported.row, rows), np.nan)
    at = find(beliefs.key, seen.jobs.key[rows])
    at[take_or(beliefs.start, at, np.nan) != seen.jobs.start[rows]] = -1
    return np.nan_to_num(said - take_or(beliefs.run_base, at, np.nan))
