"""What a job's lease, its state and what blocks it come to, as one number: a policy's look begins with these."""

from __future__ import annotations

from itertools import product

import numpy as np

from slurm_fair.model import Blocked, JobState, LeasePhase
from slurm_fair.model.columns import Codes, Ints

NO_LEASE = -1
OVER = len(LeasePhase)  # a lease that is over, beside the phases and that of jobs without one

# Those of jobs without a lease come last: their phase of -1 counts from the end.
CASES = tuple(product((*range(OVER + 1), NO_LEASE), JobState, Blocked))
MAY_START = np.array(CASES.index((NO_LEASE, JobState.WAITING, Blocked.NOT_BLOCKED)))

_STATES, _BLOCKS = len(JobState), len(Blocked)
_ONE_STATE = np.array(_BLOCKS, dtype=np.min_scalar_type(-_STATES * _BLOCKS))  # as short as they all fit
_FIRST = np.arange(OVER + 2) * (_STATES * _BLOCKS)  # of each phase
_FIRST_LEASED, _FIRST_OVER = int(_FIRST[LeasePhase.RUNNING]), int(_FIRST[OVER])


def cases(lease_phase: Codes, state: Codes, blocked: Codes, over: Ints) -> Ints:
    """Place in `CASES` of each job; the leases of the rows `over` are over."""
    case: Ints = _FIRST[lease_phase] + (state * _ONE_STATE + blocked)
    if over.size:
        case[over] += _FIRST_OVER - _FIRST_LEASED
    return case
