"""The quick solver: it stops at the gap, asks no solver where it need not, and proves what it says."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.solve import How
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, PlacesProblem, classes, fast, violations
from tests.support.any_places import Column, places

EXACTLY = PlacesLimits(gap=0.0)


def alone(job: int, gpus: int, value: float) -> Column:
    return (job, 0, gpus, False, value)


# The best is 15: job 3 fills server 1, and jobs 0 and 1 fill server 0. Packed, jobs 0 and 1 lie on one each: 10.
PUZZLE = places([8, 5], [alone(0, 4, 6.0), alone(1, 4, 4.0), alone(2, 7, 5.0), alone(3, 5, 5.0)])


def answered(problem: PlacesProblem, limits: PlacesLimits) -> PlacesAnswer:
    """The answer, a plan that holds."""
    answer = fast(problem, limits)
    assert violations(problem, answer) == []
    return answer


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that fails whoever asks it."""

    def refuse(*given: object) -> None:
        raise AssertionError("a solver was asked")

    monkeypatch.setattr("highspy.Highs", refuse)


def test_with_a_gap_of_nothing_it_finds_the_best_that_packing_does_not() -> None:
    answer = answered(PUZZLE, EXACTLY)
    assert answer.column.tolist() == [0, 1, -1, 3]
    assert (answer.objective, answer.how) == (15.0, How.EXACT)
    assert answer.gap < 1e-6


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("limits", [PlacesLimits(gap=0.5), PlacesLimits(gap=0.0, seconds=0.0)])
def test_no_solver_is_asked_where_the_gap_is_wide_or_the_time_is_up(limits: PlacesLimits) -> None:
    answer = answered(PUZZLE, limits)
    assert answer.how is How.FEASIBLE
    assert answer.objective < 15.0 <= answer.bound
    assert 0.0 < answer.gap <= 0.5


@pytest.mark.usefixtures("no_solver")
def test_no_solver_is_asked_where_there_is_room_for_everybodys_best() -> None:
    columns = [alone(job, gpus, float(gpus)) for job in range(4) for gpus in (1, 2)]
    answer = answered(places([8, 8], columns), PlacesLimits())
    assert answer.column.tolist() == [1, 3, 5, 7]
    assert 8.0 <= answer.bound <= 8.0 / 0.99


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.2, 0.4])
def test_a_gap_that_is_wanted_is_proven(gap: float) -> None:
    answer = answered(PUZZLE, PlacesLimits(gap=gap))
    assert answer.objective >= (1.0 - max(gap, 1e-7)) * answer.bound
    assert answer.bound >= 15.0


@pytest.mark.parametrize("scale", [1e-9, 1e12])
def test_the_best_is_found_however_large_or_small_all_values_are(scale: float) -> None:
    columns = [alone(0, 4, 6.0), alone(1, 4, 4.0), alone(2, 7, 5.0), alone(3, 5, 5.0)]
    scaled = [(job, on, gpus, several, value * scale) for job, on, gpus, several, value in columns]
    answer = answered(places([8, 5], scaled), EXACTLY)
    assert answer.column.tolist() == [0, 1, -1, 3]
    assert answer.bound == pytest.approx(15.0 * scale)


@pytest.mark.parametrize("jobs", [79, 81, 300])
def test_of_jobs_alike_as_many_run_as_there_is_room_for(jobs: int) -> None:
    problem = places([8, 8, 8], [alone(job, 3, 1.0) for job in range(jobs)])
    answer = answered(problem, EXACTLY)
    assert answer.objective == 6.0


def test_the_same_question_has_the_same_answer() -> None:
    problem = crowded(100, seed=3)
    one, two = answered(problem, PlacesLimits(gap=1e-4)), answered(problem, PlacesLimits(gap=1e-4))
    for name in ("column", "job", "server", "gpus"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.objective, one.bound, one.how) == (two.objective, two.bound, two.how)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jobs", [30, 110])
def test_a_narrower_gap_gives_no_plan_that_is_worth_less_and_no_bound_below_the_best(
    jobs: int, seed: int
) -> None:
    problem = crowded(jobs, seed)
    best = classes(problem)
    assert best.how is How.EXACT
    answers = [answered(problem, PlacesLimits(gap=gap)) for gap in (0.5, 0.01, 0.0)]
    worth = [answer.objective for answer in answers]
    assert worth == sorted(worth)
    for answer in answers:
        assert answer.objective <= best.objective * (1 + 1e-9)
        assert answer.bound >= best.objective * (1 - 1e-9)
        assert (answer.how is How.EXACT) == (answer.gap < 1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_up_to_eighty_jobs_a_gap_of_nothing_gives_the_best_and_proves_it(seed: int) -> None:
    problem = crowded(12, seed)
    answer = answered(problem, EXACTLY)
    assert answer.objective == pytest.approx(classes(problem).objective, rel=1e-7)
    assert answer.how is How.EXACT


def crowded(jobs: int, seed: int) -> PlacesProblem:
    """Partly filled servers, and jobs with a size for one of them and one for several."""
    dice = np.random.default_rng(seed)
    columns = []
    for job in range(jobs):
        for gpus in (int(dice.integers(1, 8)), int(dice.integers(9, 15))):
            columns.append((job, 0, gpus, gpus > 8, float(gpus * dice.uniform(1, 2))))
    return places(dice.integers(3, 9, size=8).tolist(), columns)
