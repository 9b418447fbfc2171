"""Three solvers of exact places: the same optimum, a proven bound, and places that any server can give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurm_fair.solve import How
from slurm_fair.solve.places import PlacesLimits, PlacesProblem, classes, fast, literal, violations
from tests.support.any_places import places, problems

TIGHT = PlacesLimits(gap=0.0)
SHORT = (PlacesLimits(nodes=1, iterations=5, prices=3), PlacesLimits(seconds=0.0, prices=0))


@given(problems())
@example(places([8] * 11, [(j, j % 2, 9 + 3 * j, True, 5.0 + j) for j in range(6)], kind=[0] * 6 + [1] * 5))
@settings(max_examples=80, deadline=None)
def test_counting_servers_loses_nothing(problem: PlacesProblem) -> None:
    exact, counted, quick = literal(problem), classes(problem), fast(problem)
    for answer in (exact, counted, quick):
        assert violations(problem, answer) == []
    assert exact.how is counted.how is How.EXACT
    assert counted.objective == pytest.approx(exact.objective, rel=1e-7, abs=1e-9)
    assert quick.bound >= exact.objective * (1 - 1e-9)
    assert quick.objective >= (1 - quick.gap - 1e-9) * exact.objective


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


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_same_question_has_the_same_answer(problem: PlacesProblem) -> None:
    for solve in (classes, fast):
        first, again = solve(problem, TIGHT), solve(replace(problem), TIGHT)
        assert first.objective == again.objective
        assert first.bound == again.bound
        for name in ("column", "job", "server", "gpus"):
            assert np.array_equal(getattr(first, name), getattr(again, name))


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
