"""Fractions of time: closed forms and linear problems against the literal models of the papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model.columns import Floats
from slurm_fair.solve import (
    How,
    Shares,
    Table,
    centred,
    finish_time,
    least_makespan,
    max_min,
    max_sum,
    shares,
    topped_up,
)
from tests.support import literal

few = settings(max_examples=60, deadline=None)
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Fleet:
    """The jobs and the GPUs that they share."""

    rate: Table
    gang: Floats
    capacity: Floats
    weight: Floats
    age: Floats
    left: Floats
    alone: Floats


@st.composite
def fleets(draw: Draw, types: int = 3) -> Fleet:
    """Small ones, with types that some jobs cannot use and gangs that are too big."""
    jobs, kinds = draw(st.integers(1, 6)), draw(st.integers(1, types))

    def column(*values: float) -> Floats:
        return np.array([draw(st.sampled_from(values)) for _ in range(jobs)])

    rate = np.array(
        [[draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0])) for _ in range(kinds)] for _ in range(jobs)]
    )
    capacity = np.array([draw(st.sampled_from([0.0, 1.0, 3.0, 8.0])) for _ in range(kinds)])
    age, left = column(0.0, 40.0, 500.0), column(1.0, 30.0, 200.0, 1000.0)
    alone = left * column(1.0, 2.0, 7.5)
    return Fleet(rate, column(1, 1, 2, 4, 16), capacity, column(0.5, 1.0, 1.0, 3.0), age, left, alone)


def keeps_the_limits(answer: Shares, fleet: Fleet) -> None:
    """Nobody has more than all of its time, no type more than its GPUs, nobody runs where it cannot."""
    x = answer.fraction
    assert x.shape == fleet.rate.shape
    assert (x >= 0).all()
    assert (x.sum(axis=1) <= 1 + 1e-6).all()
    assert ((fleet.gang[:, None] * x).sum(axis=0) <= fleet.capacity + 1e-6).all()
    assert (x[(fleet.rate == 0) | (fleet.gang[:, None] > fleet.capacity)] == 0).all()


def can_run(fleet: Fleet) -> Any:
    return ((fleet.rate > 0) & (fleet.gang[:, None] <= fleet.capacity)).any(axis=1)


@given(fleets())
@few
def test_max_min_is_the_papers(fleet: Fleet) -> None:
    answer = max_min(fleet.rate, fleet.gang, fleet.capacity, fleet.weight)
    keeps_the_limits(answer, fleet)
    if can_run(fleet).any():
        expected = literal.max_min(fleet.rate, fleet.gang, fleet.capacity, fleet.weight)
        assert answer.objective == pytest.approx(expected.objective, rel=1e-5)


@given(fleets())
@few
def test_the_sum_of_throughputs_is_the_papers(fleet: Fleet) -> None:
    answer = max_sum(fleet.rate, fleet.gang, fleet.capacity)
    keeps_the_limits(answer, fleet)
    expected = literal.max_sum(fleet.rate, fleet.gang, fleet.capacity)
    assert answer.objective == pytest.approx(expected.objective, rel=1e-6, abs=1e-9)
    assert (answer.fraction * fleet.rate).sum() == pytest.approx(answer.objective, rel=1e-6, abs=1e-9)


@given(fleets())
@few
def test_the_makespan_is_the_open_shops(fleet: Fleet) -> None:
    answer = least_makespan(fleet.rate, fleet.gang, fleet.capacity, fleet.left)
    keeps_the_limits(answer, fleet)
    can = can_run(fleet)
    if can.any():
        expected = literal.makespan(fleet.rate, fleet.gang, fleet.capacity, fleet.left)
        assert answer.objective == pytest.approx(expected.objective, rel=1e-5)
        speed = (answer.fraction * fleet.rate).sum(axis=1)[can]
        assert (fleet.left[can] / speed).max() <= answer.objective * (1 + 1e-5)


@given(fleets(types=2))
@settings(max_examples=25, deadline=None)
def test_the_peak_of_finish_time_fairness_is_the_papers(fleet: Fleet) -> None:
    columns = (fleet.rate, fleet.gang, fleet.capacity, fleet.age, fleet.left, fleet.alone)
    answer = finish_time(*columns)
    keeps_the_limits(answer, fleet)
    can = can_run(fleet)
    if can.any():
        assert answer.objective == pytest.approx(literal.finish_time(*columns).objective, rel=1e-4)
        speed = (answer.fraction * fleet.rate).sum(axis=1)[can]
        rho = (fleet.age[can] + fleet.left[can] / speed) / fleet.alone[can]
        assert rho.max() <= answer.objective * (1 + 1e-5)


@given(fleets(types=1))
@few
def test_one_type_and_the_same_type_twice_give_the_same(fleet: Fleet) -> None:
    gang = np.minimum(fleet.gang, 4.0)
    capacity = np.array([8.0])
    once = max_min(np.ones((len(gang), 1)), gang, capacity, fleet.weight)
    twice = max_min(np.ones((len(gang), 2)), gang, capacity.repeat(2) / 2, fleet.weight)
    assert once.objective == pytest.approx(twice.objective, rel=1e-5)
    assert once.fraction.sum(axis=1) == pytest.approx(twice.fraction.sum(axis=1), abs=1e-4)


@given(fleets())
@few
def test_nobody_has_less_than_under_equal_shares(fleet: Fleet) -> None:
    """Gavel's sharing incentive, for gangs of one GPU and equal weights."""
    gang = np.ones(len(fleet.gang))
    answer = max_min(fleet.rate, gang, fleet.capacity)
    capacity = fleet.capacity
    equal = np.minimum(capacity.sum() / len(gang), 1.0) * shares.equal_rate(fleet.rate, capacity)
    got = (answer.fraction * fleet.rate).sum(axis=1)
    assert (got >= equal * (1 - 1e-5)).all()


def test_gpu_time_is_equal_and_what_a_small_gang_cannot_use_goes_to_the_others() -> None:
    gang = np.array([1.0, 2.0, 8.0])
    answer = max_min(np.ones((3, 1)), gang, np.array([8.0]))
    assert (answer.fraction[:, 0] * gang).tolist() == [1.0, 2.0, 5.0]
    assert answer.how is How.EXACT


def test_jobs_alike_share_alike_in_the_sum_of_throughputs() -> None:
    value = np.array([[4.0], [2.0], [2.0], [1.0]])
    answer = max_sum(value, np.ones(4), np.array([2.0]))
    assert answer.fraction[:, 0].tolist() == [1.0, 0.5, 0.5, 0.0]


NOBODY = (np.zeros((0, 1)), np.zeros(0))
DEGENERATE = {
    "no jobs": (*NOBODY, np.array([4.0])),
    "no jobs, two types": (np.zeros((0, 2)), np.zeros(0), np.array([4.0, 4.0])),
    "no GPUs": (np.ones((2, 1)), np.ones(2), np.array([0.0])),
    "no GPUs of two types": (np.ones((2, 2)), np.ones(2), np.zeros(2)),
    "no rates": (np.zeros((2, 2)), np.ones(2), np.array([4.0, 4.0])),
    "all gangs too big": (np.ones((2, 1)), np.array([5.0, 9.0]), np.array([4.0])),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_where_nobody_can_run_nobody_gets_anything(case: str) -> None:
    rate, gang, capacity = DEGENERATE[case]
    ones = np.ones(len(gang))
    for answer in (
        max_min(rate, gang, capacity),
        max_sum(rate, gang, capacity),
        least_makespan(rate, gang, capacity, ones),
        finish_time(rate, gang, capacity, ones, ones, ones),
    ):
        assert answer.fraction.shape == rate.shape
        assert not answer.fraction.any()


@pytest.mark.parametrize("types", [1, 2])
def test_a_gang_bigger_than_the_cluster_takes_nothing_from_the_others(types: int) -> None:
    rate, gang, capacity = np.ones((3, types)), np.array([1.0, 1.0, 99.0]), np.full(types, 1.0)
    for answer in (max_min(rate, gang, capacity), least_makespan(rate, gang, capacity, np.ones(3))):
        assert answer.fraction[2].sum() == 0
        assert answer.fraction[:2].sum() == pytest.approx(types, rel=1e-5)


LATE = {
    "max-min": lambda rate, gang, gpus, ones: max_min(rate, gang, gpus, limit_seconds=0.0),
    "sum": lambda rate, gang, gpus, ones: max_sum(rate, gang, gpus, limit_seconds=0.0),
    "makespan": lambda rate, gang, gpus, ones: least_makespan(rate, gang, gpus, ones, limit_seconds=0.0),
    "finish time": lambda rate, gang, gpus, ones: finish_time(
        rate, gang, gpus, ones, ones, ones, limit_seconds=0.0
    ),
}


@pytest.mark.parametrize("problem", LATE)
def test_a_solver_without_time_is_stood_in_for(problem: str) -> None:
    rng = np.random.default_rng(3)
    rate, gang = rng.uniform(0.2, 1.0, (40, 3)), rng.choice([1.0, 2.0, 4.0], 40)
    capacity, ones = np.array([16.0, 8.0, 4.0]), np.ones(40)
    answer = LATE[problem](rate, gang, capacity, ones)
    assert answer.how is How.GREEDY
    assert np.isnan(answer.gap)
    keeps_the_limits(answer, Fleet(rate, gang, capacity, ones, ones, ones, ones))
    assert (gang[:, None] * answer.fraction).sum() > 0.4 * capacity.sum()


def test_a_limit_of_wall_clock_is_kept() -> None:
    rng = np.random.default_rng(4)
    rate, gang = rng.uniform(0.2, 1.0, (3000, 4)), rng.choice([1.0, 2.0, 4.0], 3000)
    answer = max_min(rate, gang, np.full(4, 256.0), limit_seconds=0.05)
    assert answer.seconds < 2.0
    assert answer.how is not How.EXACT or answer.seconds <= 0.5


@given(fleets(types=1))
@few
def test_what_is_left_over_goes_out_in_equal_parts(fleet: Fleet) -> None:
    gang, gpus = np.minimum(fleet.gang, 8.0), 8.0
    least = np.minimum(0.3 * gpus / (gang * len(gang)), 1.0)
    filled = topped_up(least, gang, gpus)
    more = gang * (filled - least)
    assert (gang * filled).sum() == pytest.approx(min(gpus, gang.sum()))
    unfilled = filled < 1 - 1e-9
    assert np.ptp(more[unfilled]) < 1e-9 if unfilled.any() else True
    assert (more[~unfilled] <= more[unfilled].max(initial=np.inf if not unfilled.any() else 0) + 1e-9).all()


@given(fleets(types=1))
@few
def test_the_centre_is_inside_and_no_nearby_point_is_further_from_all_bounds(fleet: Fleet) -> None:
    gang = np.minimum(fleet.gang, 8.0)
    gpus = 8.0
    least = np.clip(0.7 * gpus * fleet.left / (gang * fleet.left).sum(), 0.0, 0.9)
    middle = centred(least, gang, gpus)

    def room(x: Floats) -> float:
        slacks = np.concatenate([x - least, x, 1 - x, [gpus - (gang * x).sum()]])
        return float(np.log(slacks).sum()) if (slacks > 0).all() else -np.inf

    best = room(middle)
    assert np.isfinite(best)
    rng = np.random.default_rng(0)
    assert all(room(middle + 1e-3 * rng.normal(size=len(gang))) <= best + 1e-9 for _ in range(20))


def test_the_centre_without_room_is_what_is_needed() -> None:
    least, gang = np.array([0.5, 1.0]), np.array([2.0, 3.0])
    assert centred(least, gang, 4.0).tolist() == least.tolist()
