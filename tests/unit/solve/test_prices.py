"""Prices of any kind prove what no plan is worth more than."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.solve.places import PlacesProblem, literal
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.prices import best_uses, linear, priced, starts
from tests.support.any_places import Column, places, problems


@given(problems(), st.lists(st.floats(-2.0, 20.0), min_size=40, max_size=40))
def test_any_prices_bound_the_best_plan(problem: PlacesProblem, prices: list[float]) -> None:
    fleet = Fleet.of(problem)
    best = literal(problem).objective
    way = np.array(prices)[: len(fleet.ways)]
    assert priced(fleet, way).bound >= best * (1 - 1e-9)
    assert linear(fleet, 5).bound >= best * (1 - 1e-9)


TIGHT: dict[str, tuple[list[int], list[Column], dict[tuple[int, bool], float], float]] = {
    # free GPUs, columns, prices of (GPUs, spread), the bound that they prove, which is the best plan's worth
    "two want one server": ([8], [(0, 0, 8, False, 5.0), (1, 0, 8, False, 3.0)], {(8, False): 4.0}, 5.0),
    "two fit on one server": (
        [8],
        [(0, 0, 5, False, 5.0), (1, 0, 3, False, 2.0), (2, 0, 3, False, 1.5)],
        {(5, False): 4.0, (3, False): 1.5},
        7.0,
    ),
    "a gang over two": (
        [8, 8],
        [(0, 0, 12, True, 6.0), (1, 0, 13, True, 3.0)],
        {(12, True): 4.0, (13, True): 4.0},
        6.0,
    ),
    "a gang over four in the place of two over two": (
        [8, 8, 8, 8],
        [(0, 0, 30, True, 10.0), (1, 0, 12, True, 3.0), (2, 0, 12, True, 3.0)],
        {(30, True): 10.0, (12, True): 3.0},
        10.0,
    ),
    "a gang over two and what it leaves": (
        [8, 8],
        [(0, 0, 12, True, 6.0), (1, 0, 4, False, 2.0)],
        {(12, True): 5.0, (4, False): 1.0},
        8.0,
    ),
}


@pytest.mark.parametrize(("free", "columns", "prices", "bound"), TIGHT.values(), ids=TIGHT)
def test_the_right_prices_prove_the_best_plan_itself(
    free: list[int], columns: list[Column], prices: dict[tuple[int, bool], float], bound: float
) -> None:
    problem = places(free, columns)
    fleet = Fleet.of(problem)
    of = zip(fleet.ways.gpus.tolist(), fleet.ways.several.tolist(), strict=True)
    assert literal(problem).objective == pytest.approx(bound)
    assert priced(fleet, np.array([prices[way] for way in of])).bound == pytest.approx(bound)


def test_for_nothing_each_job_gets_its_best_and_a_price_below_nothing_is_nothing() -> None:
    fleet = Fleet.of(places([8], [(0, 0, 8, False, 5.0), (0, 0, 4, False, 6.0), (1, 0, 8, False, 3.0)]))
    for way in (np.zeros(2), np.array([-4.0, -1.0])):
        found = priced(fleet, way)
        assert (found.bound, found.way.tolist()) == (9.0, [0.0, 0.0])


def test_the_best_use_of_a_job_is_worth_most_above_its_price_and_the_first_of_equals() -> None:
    columns = [
        (0, 0, 4, False, 5.0), (0, 0, 8, False, 9.0), (2, 0, 8, False, 3.0), (2, 0, 4, False, 1.0),
        (3, 0, 4, False, 2.0),
    ]  # fmt: skip
    fleet = Fleet.of(places([8], columns, jobs=5))
    assert starts(fleet).tolist() == [0, 2, 4]
    chosen, surplus = best_uses(fleet, np.array([2.0, 4.0]))
    assert (fleet.ways.columns[chosen].tolist(), surplus.tolist()) == ([1, 2, 4], [5.0, -1.0, 0.0])
    chosen, _ = best_uses(fleet, np.array([0.0, 4.0]))
    assert fleet.ways.columns[chosen].tolist() == [0, 3, 4]
    empty = Fleet.of(places([8], []))
    assert [len(each) for each in (starts(empty), *best_uses(empty, np.zeros(0)))] == [0, 0, 0]


def test_prices_by_the_gpu_rise_where_too_much_is_asked_for() -> None:
    """Four want the one server: with more steps the bound comes down to the best of them."""
    fleet = Fleet.of(places([8], [(job, 0, 8, False, 4.0 + job) for job in range(4)]))
    assert linear(fleet, 0).bound == pytest.approx(5.5 + 0.5 + 1.5)  # at the usual worth of a GPU
    assert priced(fleet, np.zeros(1)).bound == 22.0
    assert linear(fleet, 60).bound == pytest.approx(7.0, rel=0.01)
