"""The queue that a plan left over: a look at the same one shows no news, and its plan would be the same."""

from __future__ import annotations

import zlib

import numpy as np

from slurm_fair.model import Leases, Snapshot
from slurm_fair.model.columns import Ints


def left_over(snapshot: Snapshot, leases: Leases, job_of_lease: Ints) -> int:
    """A checksum of the jobs that wait without a lease, of those that have one, and of what nodes can give.

    It is never 0. A job that starts as promised changes nothing. An arrival, an end, a lost node or another number
    of GPUs, CPUs or memory that a job asks for does, and so does a running job that may be stopped from now on.
    Any other wish of a job that waits is met when leases are decided on next, at a beat at the latest.
    """
    jobs, nodes, holders = snapshot.jobs, snapshot.nodes, job_of_lease[job_of_lease >= 0]
    waits = jobs.waiting & jobs.unblocked
    waits[holders] = False
    rows = waits.nonzero()[0]
    parts = (
        np.array([rows.size, len(leases.key)]),
        *(column[rows] for column in (jobs.key, jobs.gpus, jobs.restarts, jobs.cpus, jobs.memory_mb)),
        leases.key,
        jobs.revocable[holders],
        nodes.capacity,
        nodes.cpus_left,
        nodes.memory_left_mb,
    )
    found = 0
    for part in parts:
        found = zlib.crc32(part.tobytes(), found)
    return found or 1
