"""The gap of an answer, and the rates that a gang can have at all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slurm_fair.solve.answer import gap_between, usable

NAN, INF = float("nan"), float("inf")
GAPS = [
    # bound, objective -> gap
    (10.0, 9.0, 0.1),
    (10.0, 10.0, 0.0),
    (10.0, 0.0, 1.0),
    (10.0, 11.0, 0.1),
    (8.0, 10.0, 0.25),  # of a least time the bound lies below
    (-10.0, -11.0, 0.1),
    (0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("bound", "objective", "gap"), GAPS)
def test_the_gap_is_the_distance_to_the_bound_over_the_bound(
    bound: float, objective: float, gap: float
) -> None:
    assert gap_between(bound, objective) == pytest.approx(gap)


def test_a_bound_of_nothing_gives_a_large_gap_and_no_error() -> None:
    assert 1e9 < gap_between(0.0, 1.0) < INF


@pytest.mark.parametrize("bound", [NAN, INF, -INF])
def test_without_a_bound_no_gap_is_known(bound: float) -> None:
    assert math.isnan(gap_between(bound, 1.0))


def test_a_gang_as_large_as_all_gpus_of_a_type_can_run_there_and_a_larger_one_cannot() -> None:
    rate, gang = np.full((3, 2), 2.0), np.array([4.0, 5.0, 9.0])
    assert usable(rate, gang, np.array([4.0, 8.0])).tolist() == [[2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]


def test_a_rate_that_is_none_is_nought() -> None:
    rate = np.array([[0.0, -1.0, NAN, 0.5]])
    assert usable(rate, np.ones(1), np.ones(4)).tolist() == [[0.0, 0.0, 0.0, 0.5]]


def test_a_type_without_gpus_is_of_use_to_nobody() -> None:
    assert usable(np.ones((2, 2)), np.ones(2), np.array([0.0, 1.0])).tolist() == [[0.0, 1.0]] * 2


def test_the_rates_that_were_given_stay_as_they_are() -> None:
    rate = np.array([[1.0, -1.0]])
    usable(rate, np.array([2.0]), np.array([1.0, 2.0]))
    assert rate.tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_where_there_are_no_jobs_or_no_types_there_are_no_rates(shape: tuple[int, int]) -> None:
    assert usable(np.ones(shape), np.ones(shape[0]), np.ones(shape[1])).shape == shape
