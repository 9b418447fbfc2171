"""Numbers by which jobs are put in order, freed of their rounding errors.

What a job has had and was owed are sums over many looks. Sums over other looks round otherwise in the last digits;
without this, such a digit would decide between equals, and not the rule that the policy names for them.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats

_KEPT_BITS = 28  # of the 52 behind the point of a float64: it tells numbers apart that differ by 4 billionths
_DROPPED_BITS = 52 - _KEPT_BITS
_HALF = np.int64(1 << (_DROPPED_BITS - 1))
_MASK = np.int64(-1 << _DROPPED_BITS)


def alike(numbers: Floats) -> Floats:
    """Each number rounded to 2 billionths of itself, so that numbers which differ by rounding alone are equal."""
    return ((numbers.view(np.int64) + _HALF) & _MASK).view(np.float64)
