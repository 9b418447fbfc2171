"""Gates that somebody moved by hand: one of a tenant stays open for a lease, and what starts by it is charged.

Others, and those of jobs that could not be taken back, are set again at the next look. The submit hook lets nobody
move a gate.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Blocked, JobTable, Leases, LeaseTerms
from slurm_fair.model.columns import Bools, Ints, among, any_of, find

_SLACK_SECONDS = 2.0  # Slurm keeps whole seconds, and starts a job a moment after its gate
_NOT_MOVED = (Blocked.OWN_BEGIN, Blocked.USER_HOLD, Blocked.ADMIN_HOLD, Blocked.SLURM_HOLD)


def stays_open(jobs: JobTable, leases: Leases, terms: LeaseTerms, now: float) -> Bools:
    """Waiting jobs whose gate stays open because somebody moved it: one of each tenant, which leaves in its turn.

    Of a tenant that has a job running by such a move, under its first lease, there is none.
    """
    stays: Bools = jobs.waiting & ~jobs.gated & ~jobs.pinned
    stays &= (jobs.gate_set > 0) & (now - jobs.gate_set < terms.term)
    stays &= jobs.revocable | (jobs.time_limit_seconds <= terms.term)
    if not any_of(stays):
        return stays
    stays &= ~np.isin(jobs.blocked, np.array(_NOT_MOVED, dtype=np.int8))
    stays &= ~among(jobs.key, leases.key[leases.promised & (leases.opened > 0)])
    stays &= ~among(jobs.tenant, jobs.tenant[_running_by_a_move(jobs, leases, terms, now)])
    rows = stays.nonzero()[0]
    oldest = rows[np.lexsort((jobs.gate_set[rows], jobs.tenant[rows]))]
    first = oldest[np.unique(jobs.tenant[oldest], return_index=True)[1]]
    stays[:] = False
    stays[first] = True
    return stays


def _running_by_a_move(jobs: JobTable, leases: Leases, terms: LeaseTerms, now: float) -> Ints:
    first = leases.adopted & leases.running & (leases.renewals == 0)
    first &= terms.renewed_at(leases.end) > now
    rows = find(jobs.key, leases.key[first])
    rows = rows[rows >= 0]
    return rows[moved(jobs, terms)[rows]]


def moved(jobs: JobTable, terms: LeaseTerms) -> Bools:
    """Jobs that started long before the gate that we set last would have opened by itself."""
    early: Bools = jobs.start < jobs.gate_set + 2 * terms.term - _SLACK_SECONDS
    return early & (jobs.gate_set > 0)
