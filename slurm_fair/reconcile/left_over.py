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
    keys = jobs.key[waits]
    # A sum for each wish, in which each job counts by a number of its own: another wish of one is another sum.
    own = np.where(waits, 2 * jobs.key + 1, 0)
    wishes = [own @ wish for wish in (jobs.gpus, jobs.restarts, jobs.cpus, jobs.memory_mb)]
    parts = (
        np.array([keys.size, len(leases.key), *wishes]),
        keys,
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
