"""The length of a gate that is set now: two terms, and less where a deadline is near.

Slurm ends a job for good that could only start later than its whole time limit fits before its deadline
(slurm-facts: deadline-ends-job). Where no controller acts any more, the gate of such a job opens
in time by itself.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model import LeaseTerms, Snapshot
from slurm_fair.model.columns import Floats
from slurm_fair.model.must_fit import latest_starts

_LEAST_LOOKS = 4  # a gate is renewed when half of it is left: two looks later at the latest


def gate_lengths(snapshot: Snapshot, terms: LeaseTerms, now: float) -> Floats:
    """Seconds that a new gate of each job holds: with a deadline half of the time in which it must start at most.

    The controller renews a gate before it opens, so none is shorter than some looks take. A job that can make its
    deadline no more has the usual gate.
    """
    usual: Floats = np.full(len(snapshot.jobs), 2 * terms.term)
    if snapshot.told is None:
        return usual
    left = latest_starts(snapshot) - now
    half = np.maximum(left / 2, _LEAST_LOOKS * terms.interval)
    return np.where(left > 0, np.minimum(usual, half), usual)
