"""Job keys: one integer names a job or an array task for as long as Slurm's id means the same job.

A key alone is not an identity, because Slurm reuses ids (slurm-facts: ids-come-again).
(cluster, key, submit, restarts) is one.
"""

from __future__ import annotations

import re
from typing import overload

import numpy as np

from slurm_fair.errors import InputError
from slurm_fair.model.columns import Bools, Floats, Ints

MOST_TASKS = 4_000_001  # Slurm's own limit for MaxArraySize
TASK_BITS = 23  # a task number plus one fits these
NO_TASK = -1
_LABEL = re.compile(r"(\d{1,10})(?:_(\d{1,7}))?")


def pack_keys(base: Ints, task: Ints) -> Ints:
    """Keys of jobs (task -1) and array tasks, in the order of their ids."""
    return (np.asarray(base, dtype=np.int64) << TASK_BITS) | (np.asarray(task, dtype=np.int64) + 1)


def pack(base: int, task: int = NO_TASK) -> int:
    """Key of one job or array task."""
    return (base << TASK_BITS) | (task + 1)


def label(key: int) -> str:
    """The id as its user knows it: `17` or `6_5`."""
    base, task = int(key) >> TASK_BITS, (int(key) & ((1 << TASK_BITS) - 1)) - 1
    return str(base) if task < 0 else f"{base}_{task}"


def labels(keys: Ints) -> list[str]:
    """Labels of many keys."""
    return [label(key) for key in keys.tolist()]


@overload
def is_same_job(known_submit: float, submit: float, restarts: int) -> bool: ...


@overload
def is_same_job(known_submit: Floats, submit: Floats, restarts: Ints) -> Bools: ...


def is_same_job(known_submit: float | Floats, submit: float | Floats, restarts: int | Ints) -> bool | Bools:
    """True if a job that is listed now is the one that was known under its id.

    The next bearer of an id begins without a restart, and later. A restart count or a submission that went back
    is no other job: a slurmctld that was killed comes back with its last saved state
    (slurm-facts: state-goes-back).
    """
    return (restarts > 0) | (submit <= known_submit)


def parse_label(text: str) -> int:
    """Key of an id as a user types it. Nothing is job 0: what happened to no job has that key."""
    match = _LABEL.fullmatch(text.strip())
    if match is None or int(match[1]) == 0 or int(match[2] or 0) >= MOST_TASKS:
        raise InputError(f"'{text}' is no job id: give a number (1234) or an array task (1234_5)")
    return pack(int(match[1]), int(match[2]) if match[2] else NO_TASK)
