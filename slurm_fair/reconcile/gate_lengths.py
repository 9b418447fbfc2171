"""The length of a gate that is set now: two terms, and less where a deadline is near.

Slurm ends a job for good that could only start later than its whole time limit, or its least time, fits before its
deadline (slurm-facts: deadline-ends-job). Where no controller acts any more, the gate of such a job opens
in time by itself.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model import LeaseTerms, Snapshot
from slurm_fair.model.columns import Floats
from slurm_fair.model.latest_starts import latest_starts

_LEAST_LOOKS = 4  # a gate is renewed when half of it is left: two looks later at the latest
_LAST_LOOKS = 2  # one that is to end before the last start is renewed a look later, and no shorter than this


def gate_lengths(snapshot: Snapshot, terms: LeaseTerms, now: float) -> Floats:
    """Seconds that a new gate of each job holds: with a deadline half of the time in which it must start at most.

    The controller renews a gate before it opens, so none is shorter than some looks take. It ends a look before
    the last start all the same, as long as two looks see it before that. A job that can make its deadline no more
    has the usual gate.
    """
    usual: Floats = np.full(len(snapshot.jobs), 2 * terms.term)
    if snapshot.told is None:
        return usual
    left, look = latest_starts(snapshot) - now, terms.interval
    in_time = left - look
    least = np.where(
        in_time >= _LAST_LOOKS * look, np.minimum(in_time, _LEAST_LOOKS * look), _LEAST_LOOKS * look
    )
    half = np.maximum(left / 2, least)
    return np.where(left > 0, np.minimum(usual, half), usual)


def renewed_with(seconds: Floats, terms: LeaseTerms) -> Floats:
    """Seconds that a gate has left when it is renewed: half of a new one, and no less than the next look takes."""
    half = seconds / 2
    return np.where(seconds < 2 * terms.term, np.maximum(half, _LAST_LOOKS * terms.interval), half)
