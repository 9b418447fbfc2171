"""Claims held to what can be: progress that is believed."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput import believed_progress, faded


@pytest.mark.parametrize(
    ("said", "elapsed", "rate", "believed"),
    [
        (150.0, 10.0, 6.0, 150.0),  # possible
        (900.0, 10.0, 6.0, 160.0),  # no job of the class is so fast
        (50.0, 10.0, 6.0, 100.0),  # progress never goes back
        (np.nan, 10.0, 6.0, 100.0),  # nothing said
        (900.0, 10.0, np.nan, 900.0),  # the first job of its class
        (900.0, -5.0, 6.0, 100.0),  # a clock that went back
        (np.inf, 10.0, 6.0, 160.0),
    ],
)
def test_progress_is_monotone_and_no_faster_than_the_class(
    said: float, elapsed: float, rate: float, believed: float
) -> None:
    columns = (np.array([value]) for value in (100.0, said, elapsed, rate))
    assert believed_progress(*columns).tolist() == [believed]


def test_a_claim_that_is_not_renewed_fades() -> None:
    assert faded(np.full(3, 8.0), np.array([-1.0, 0.0, 120.0]), 60.0).tolist() == [8.0, 8.0, 2.0]
