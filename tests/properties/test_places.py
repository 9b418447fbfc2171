"""Three solvers of exact places: the same optimum, a proven bound, and places that any server can give."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurm_fair.solve import How
from slurm_fair.solve.places import (
    PlacesAnswer,
    PlacesLimits,
    PlacesProblem,
    classes,
    fast,
    literal,
    violations,
)
from tests.support.any_places import places, problems

TIGHT = PlacesLimits(gap=0.0)
SHORT = (PlacesLimits(nodes=1, iterations=5, prices=3), PlacesLimits(seconds=0.0, prices=0))


def agreed(problem: PlacesProblem) -> PlacesAnswer:
    """The exact answer, to which the other solvers come as near as they promise."""
    exact, counted, quick = literal(problem), classes(problem), fast(problem)
    for answer in (exact, counted, quick):
        assert violations(problem, answer) == []
    assert exact.how is counted.how is How.EXACT
    assert counted.objective == pytest.approx(exact.objective, rel=1e-7, abs=1e-9)
    assert quick.bound >= exact.objective * (1 - 1e-9)
    assert quick.objective >= (1 - quick.gap - 1e-9) * exact.objective
    return exact


@given(problems())
@example(places([8] * 11, [(j, j % 2, 9 + 3 * j, True, 5.0 + j) for j in range(6)], kind=[0] * 6 + [1] * 5))
@settings(max_examples=80, deadline=None)
def test_counting_servers_loses_nothing(problem: PlacesProblem) -> None:
    agreed(problem)


@pytest.mark.parametrize("seed", range(60))
def test_counting_servers_loses_nothing_where_many_jobs_want_the_same_servers(seed: int) -> None:
    """Two kinds of servers, partly filled; each of nine jobs has up to three ways, some over several servers."""
    dice = np.random.default_rng(seed)
    free = dice.integers(2, 9, size=6).tolist()
    ways = [
        (
            job,
            int(dice.integers(2)),
            int(dice.integers(1, 13)),
            bool(dice.integers(2)),
            float(dice.integers(1, 40)),
        )
        for job in range(9)
        for _ in range(3)
    ]
    problem = places(free, ways, kind=[0, 0, 0, 1, 1, 1], jobs=9)
    exact = agreed(problem)
    assert exact.objective > 0
    assert len(np.unique(exact.job)) >= 2


@pytest.mark.parametrize("seed", range(20))
def test_on_idle_servers_windows_that_may_start_anywhere_are_worth_no_more(seed: int) -> None:
    dice = np.random.default_rng(seed)
    ways = [
        (job, int(dice.integers(2)), gpus, gpus > 8, float(dice.integers(1, 40)))
        for job in range(9)
        for gpus in dice.integers(1, 17, size=3).tolist()
    ]
    problem = places([8] * 7, ways, kind=[0, 0, 0, 1, 1, 1, 1], jobs=9)
    anywhere = literal(problem, every_start=True)
    assert violations(problem, anywhere) == []
    assert anywhere.objective == pytest.approx(literal(problem).objective)
    assert any(np.bincount(anywhere.job) > 1), "somebody lies on two servers"


def test_windows_that_straddle_two_pairs_are_left_out() -> None:
    """Two jobs of ten GPUs could lie on the outer pairs of servers; our only window for them is in the middle."""
    problem = places([2, 8, 8, 2], [(0, 0, 10, True, 1.0), (1, 0, 10, True, 1.0)])
    assert [solve(problem).objective for solve in (literal, classes, fast)] == [1.0, 1.0, 1.0]
    assert literal(problem, every_start=True).objective == 2.0


@given(problems())
@settings(max_examples=100, deadline=None)
def test_whatever_the_limits_the_places_hold_and_the_bound_is_proven(problem: PlacesProblem) -> None:
    best = classes(problem).objective
    for limits in SHORT:
        for solve in (literal, classes, fast):
            answer = solve(problem, limits)
            assert violations(problem, answer) == []
            assert answer.objective <= best * (1 + 1e-9)
            assert answer.bound >= best * (1 - 1e-9)


COUNTS = (TIGHT, PlacesLimits(gap=0.0, nodes=2, iterations=12, prices=4), PlacesLimits().within(math.inf))


def in_bytes(answer: PlacesAnswer) -> tuple[bytes, ...]:
    """All of an answer, to the last bit."""
    columns = (answer.column, answer.job, answer.server, answer.gpus)
    numbers = np.array([answer.objective, answer.bound])
    return (*(column.tobytes() for column in (*columns, numbers)), answer.how.value.encode())


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_same_question_under_the_same_counts_has_the_same_answer_to_the_bit(
    problem: PlacesProblem,
) -> None:
    for limits in COUNTS:
        for solve in (literal, classes, fast):
            assert in_bytes(solve(problem, limits)) == in_bytes(solve(replace(problem), limits))


def test_the_clock_bounds_a_plan_that_has_a_deadline_and_no_other() -> None:
    counts = PlacesLimits(nodes=7, iterations=11, prices=13, gap=0.02)
    assert counts.within(math.inf) == counts
    assert counts.within(30.0) == replace(counts, seconds=15.0)
    assert counts.within(-1.0).left(0.0) == 0.0


@given(problems())
@settings(max_examples=60, deadline=None)
def test_the_checker_sees_what_is_wrong(problem: PlacesProblem) -> None:
    answer = fast(problem)
    if not len(answer.job):
        return
    assert violations(problem, replace(answer, gpus=answer.gpus + problem.size.max() + 1))
    assert violations(problem, replace(answer, objective=answer.objective + 1.0))
    assert violations(problem, replace(answer, bound=answer.objective - 1.0))
    assert violations(problem, replace(answer, column=np.full(problem.jobs, -1)))


@given(problems(), st.sampled_from([1e-9, 1e9]))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_worth_does_not_matter(problem: PlacesProblem, unit: float) -> None:
    scaled = replace(problem, value=problem.value * unit)
    for solve in (classes, fast):
        answer = solve(scaled, TIGHT)
        assert violations(scaled, answer) == []
        assert answer.objective == pytest.approx(unit * solve(problem, TIGHT).objective, rel=1e-7)
        assert answer.bound <= answer.objective * (1 + 1e-6)
