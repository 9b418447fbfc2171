"""The queue that a plan left over: a look at the same one shows no news, and its plan would be the same."""

from __future__ import annotations

import zlib

import numpy as np

from slurm_fair.model import JobTable, Leases, Snapshot
from slurm_fair.model.columns import Bools, Ints

_THIS_RULE = 1 << 32  # a checksum is never smaller; those by the rule before this one were
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, and its bits are well mixed: the golden ratio's
_HALF = np.uint64(32)


def left_over(snapshot: Snapshot, leases: Leases, job_of_lease: Ints) -> int:
    """A checksum of the jobs that wait without a lease, of those that have one, and of what nodes can give.

    It is never 0. A job that starts as promised changes nothing. An arrival, an end, a lost node or another number
    of GPUs, CPUs or memory that a job asks for does, and so does a running job that may be stopped from now on.
    Any other wish of a job that waits is met when leases are decided on next, at a beat at the latest.
    """
    jobs, nodes, holders = snapshot.jobs, snapshot.nodes, job_of_lease[job_of_lease >= 0]
    waits = jobs.waiting & jobs.unblocked
    waits[holders] = False
    parts = (
        np.array([np.count_nonzero(waits), len(leases.key)]),
        _sum_of_wishes(jobs, waits),
        leases.key,
        jobs.revocable[holders],
        nodes.capacity,
        nodes.cpus_left,
        nodes.memory_left_mb,
    )
    found = 0
    for part in parts:
        found = zlib.crc32(part.tobytes(), found)
    return _THIS_RULE | found


def by_this_rule(checksum: int) -> bool:
    """False for a checksum of a queue by the rule of an earlier version; 0 = none is known."""
    return checksum == 0 or checksum >= _THIS_RULE


def _sum_of_wishes(jobs: JobTable, waits: Bools) -> np.uint64:
    """The sum of one number for each waiting job, into which its key and its wishes are mixed.

    That is several times as fast as a checksum of each column.
    """
    mixed = jobs.key.astype(np.uint64)
    for wish in (jobs.gpus, jobs.restarts, jobs.cpus, jobs.memory_mb):
        mixed *= _MIXER
        mixed += wish.view(np.uint64)
    mixed ^= mixed >> _HALF
    mixed *= _MIXER
    mixed ^= mixed >> _HALF
    return np.uint64(mixed.sum(where=waits))
