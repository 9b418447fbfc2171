"""Numbers by which jobs are put in order, freed of their rounding errors.

What a job has had and was owed are sums over many looks. Sums over other looks round otherwise in the last digits;
without this, such a digit would decide between equals, and not the rule that the policy names for them.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints

_KEPT_BITS = 28  # of the 52 behind the point of a float64: it tells numbers apart that differ by 4 billionths
_DROPPED_BITS = 52 - _KEPT_BITS
_SHORT = 1024  # numbers that any sort puts in order soon enough
_HALF = np.int64(1 << (_DROPPED_BITS - 1))
_BUT_SIGN = np.iinfo(np.int64).max
_MASK = np.int64(-1 << _DROPPED_BITS)


def alike(numbers: Floats) -> Floats:
    """Each number rounded to 2 billionths of itself, so that numbers which differ by rounding alone are equal."""
    return ((numbers.view(np.int64) + _HALF) & _MASK).view(np.float64)


def alike_in_order(numbers: Floats) -> Ints:
    """Places of the numbers, the smallest first; where numbers are alike, the one that came first."""
    rounded = alike(numbers) + 0.0  # so that -0.0 is 0.0
    if not _SHORT < len(rounded) <= 1 << _DROPPED_BITS or np.isnan(rounded).any():
        return rounded.argsort(kind="stable")
    bits = rounded.view(np.int64)
    bits ^= (bits >> 63) & _BUT_SIGN  # of two numbers below zero the smaller has the greater bits
    # Each number's place stands in the bits that were dropped: so no two are equal, and the quickest sort will do.
    return ((bits & _MASK) | np.arange(len(bits))).argsort()
