"""The queue that a plan left over: a look at the same one shows no news, and its plan would be the same."""

from __future__ import annotations

import zlib

import numpy as np

from slurm_fair.model import Leases, Snapshot
from slurm_fair.model.columns import Ints


def left_over(snapshot: Snapshot, leases: Leases, job_of_lease: Ints) -> int:
    """A checksum of the jobs that wait without a lease, of those that have one, and of what nodes can give.

    It is never 0. A job that starts as promised changes nothing; an arrival, an end or a lost node does.
    """
    jobs = snapshot.jobs
    waits = jobs.waiting & jobs.unblocked
    waits[job_of_lease[job_of_lease >= 0]] = False
    found = zlib.crc32(jobs.key[waits].tobytes())
    found = zlib.crc32(leases.key.tobytes(), found)
    return zlib.crc32(np.asarray(snapshot.nodes.capacity).tobytes(), found) or 1
