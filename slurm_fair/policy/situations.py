"""One number for a job's lease phase, state and block together.

A view finds in a table, by this number, which verdicts the job may have.
"""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Blocked, JobState, LeasePhase
from slurm_fair.model.columns import Codes, Ints

Shorts: TypeAlias = NDArray[np.int16]
NO_LEASE = -1
PHASE_OVER = len(LeasePhase)  # a lease that is over, beside the phases and that of jobs without one

# Those of jobs without a lease come last: as their phase is -1, so do their numbers count from the end.
SITUATIONS = tuple(product((*range(PHASE_OVER + 1), NO_LEASE), JobState, Blocked))
_STATES, _BLOCKS = len(JobState), len(Blocked)
_SHORT = np.min_scalar_type(-len(SITUATIONS))  # as short as they all fit
_ONE_STATE = np.array(_BLOCKS, dtype=np.min_scalar_type(-_STATES * _BLOCKS))
_ONE_PHASE = np.array(_STATES * _BLOCKS, dtype=_SHORT)
_MAY_START = SITUATIONS.index((NO_LEASE, JobState.WAITING, Blocked.NOT_BLOCKED))
MAY_START = np.array(_MAY_START - len(SITUATIONS), dtype=_SHORT)


def situations(lease_phase: Codes, state: Codes, blocked: Codes, over: Ints) -> Shorts:
    """Place in `SITUATIONS` of each job; the leases of the rows `over` are over."""
    # Before NumPy 2 a product with a single number is no wider than the column: the column is made wide first.
    case: Shorts = lease_phase.astype(_SHORT) * _ONE_PHASE + (state * _ONE_STATE + blocked)
    if over.size:
        case[over] += _ONE_PHASE * (PHASE_OVER - LeasePhase.RUNNING)
    return case
