"""The distinct ways in which jobs may run."""

from __future__ import annotations

import numpy as np

from slurm_fair.solve.places.ways import Ways
from tests.support.any_places import places

# Two jobs ask for the same; one column is worth nothing.
PROBLEM = places(
    [8, 8],
    [
        (1, 0, 4, False, 2.0),
        (0, 0, 4, False, 500.0),
        (0, 1, 4, False, 1.0),
        (1, 0, 4, True, 3.0),
        (0, 0, 9, True, 0.0),
    ],
)


def test_requests_that_are_alike_are_one_way_and_uses_stand_by_job() -> None:
    ways = Ways.of(PROBLEM)
    assert list(zip(ways.kind, ways.gpus, ways.several, strict=True)) == [
        (0, 4, False),
        (0, 4, True),
        (1, 4, False),
    ]
    assert (ways.columns.tolist(), ways.job.tolist()) == ([1, 2, 0, 3], [0, 0, 1, 1])
    assert (ways.way.tolist(), ways.value.tolist()) == ([0, 2, 0, 1], [500.0, 1.0, 2.0, 3.0])
    assert len(ways) == 3


def test_the_largest_worth_is_a_thousand_of_a_solvers_units() -> None:
    assert Ways.of(PROBLEM).unit == 0.5
    assert Ways.of(places([8], [])).unit == 1.0


def test_uses_that_cannot_be_had_are_left_out() -> None:
    ways = Ways.of(PROBLEM).without(np.array([False, True, True]))
    assert (ways.columns.tolist(), ways.job.tolist(), len(ways)) == ([2, 3], [0, 1], 3)
