"""The question of exact places, its limits, and a plan spelled out and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.solve import How
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, PlacesProblem, violations
from slurm_fair.solve.places.problem import Picks
from tests.support.any_places import Column, places

INF = float("inf")


def alone(gpus: int, job: int = 0, value: float = 1.0, on: int = 0) -> Column:
    return (job, on, gpus, False, value)


def gang(gpus: int, job: int = 0, value: float = 1.0, on: int = 0) -> Column:
    return (job, on, gpus, True, value)


def picked(problem: PlacesProblem, *picks: tuple[int, int, int]) -> Picks:
    """The column, the first server and the number of servers of each job."""
    column, first, servers = (np.array(each) for each in zip(*picks, strict=True))
    assert len(column) == problem.jobs
    return Picks(column, first, servers)


def spelled(problem: PlacesProblem, *picks: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Job, server and GPUs of every place of a plan that holds."""
    answer = picked(problem, *picks).answer(problem, INF, How.FEASIBLE)
    assert violations(problem, answer) == []
    return list(zip(answer.job.tolist(), answer.server.tolist(), answer.gpus.tolist(), strict=True))


# --- the question

REFUSED: dict[str, tuple[Callable[[], PlacesProblem], str]] = {
    "fewer GPUs than none": (lambda: places([-1], []), "from 0 to all"),
    "a worth without end": (lambda: places([8], [alone(1, value=INF)]), "finite and not negative"),
    "a negative number of GPUs": (lambda: places([8], [alone(-1)]), "at least one GPU"),
    "a job before the first": (lambda: places([8], [alone(1, job=-1)], jobs=1), "jobs from 0 to 0"),
    "a column where there is no job": (lambda: places([8], [alone(1)], jobs=0), "jobs from 0 to -1"),
    "a server of a negative kind": (lambda: places([8], [], kind=[-1]), "counted from 0"),
    "a column too few": (
        lambda: replace(places([8], [alone(1)]), value=np.zeros(0)),
        r"by column differ in length: \[1, 1, 1, 1, 0\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_question_that_nobody_could_answer_is_refused(case: str) -> None:
    make, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        make()


def test_kinds_are_counted_though_only_a_column_or_only_a_server_names_them() -> None:
    assert places([8], [alone(1, on=3)]).kinds == 4
    assert places([8, 8], [alone(1)], kind=[0, 2]).kinds == 3
    assert places([], [], jobs=0).kinds == 0


# --- limits


def test_half_of_a_plans_time_is_the_solvers() -> None:
    limits = PlacesLimits(nodes=7, gap=0.3)
    assert limits.within(9.0) == replace(limits, seconds=4.5)
    assert limits.within(0.0).seconds == limits.within(-3.0).seconds == 0.0


def test_a_plan_without_a_deadline_is_bounded_by_counts_alone() -> None:
    limits = PlacesLimits(seconds=1.0).within(INF)
    assert limits.seconds is None
    assert limits.left(1e9) == INF


def test_the_solver_has_left_of_its_time_what_it_has_not_spent() -> None:
    assert PlacesLimits(seconds=3.0).left(1.0) == 2.0
    assert PlacesLimits(seconds=3.0).left(4.0) <= 0.0


# --- a plan spelled out


def test_a_gang_fills_its_servers_in_order_and_the_last_one_with_the_rest() -> None:
    problem = places([8, 5, 8, 8], [gang(15), alone(3, job=1)])
    assert spelled(problem, (0, 0, 3), (1, 3, 1)) == [(0, 0, 8), (0, 1, 5), (0, 2, 2), (1, 3, 3)]


def test_who_got_nothing_has_no_place_and_adds_no_worth() -> None:
    problem = places([8], [alone(2, value=5.0), alone(2, job=1, value=7.0)])
    answer = picked(problem, (-1, -1, 0), (1, 0, 1)).answer(problem, 12.0, How.FEASIBLE)
    assert (answer.column.tolist(), answer.job.tolist(), answer.objective) == ([-1, 1], [1], 7.0)


def test_nobody_has_a_place_at_first() -> None:
    problem = places([8], [alone(2)], jobs=3)
    answer = Picks.none(3).answer(problem, 0.0, How.EXACT)
    assert answer.column.tolist() == [-1, -1, -1]
    assert (len(answer.job), len(answer.gpus), answer.objective, answer.gap) == (0, 0, 0.0, 0.0)


def test_a_bound_is_never_below_what_the_plan_is_worth() -> None:
    problem = places([8], [alone(2, value=5.0)])
    picks = picked(problem, (0, 0, 1))
    assert picks.answer(problem, 4.9999, How.EXACT).bound == 5.0
    assert picks.answer(problem, 8.0, How.EXACT).bound == 8.0


def test_the_gap_is_what_the_bound_is_above_the_plan_over_the_bound() -> None:
    problem = places([8], [alone(2, value=6.0)])
    picks = picked(problem, (0, 0, 1))
    assert picks.answer(problem, 8.0, How.FEASIBLE).gap == pytest.approx(0.25)
    assert picks.answer(problem, 6.0, How.FEASIBLE).gap == 0.0


# --- a plan checked

CHECKED = places(
    [8, 8, 4, 8],
    [alone(4, value=2.0), gang(12, job=1, value=3.0), alone(4, job=1, value=1.0), alone(4, job=1, on=1)],
    kind=[0, 0, 0, 1],
    block=[0, 0, 1, 1],
)
SOUND = PlacesAnswer(
    np.array([0, 2]), np.array([0, 1]), np.array([0, 2]), np.array([4, 4]), 3.0, 4.0, How.FEASIBLE
)


def ints(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, dtype=np.int64)


WRONG: dict[str, tuple[PlacesAnswer, list[str]]] = {
    "more than a server has": (
        replace(SOUND, gpus=ints(9, 4)),
        ["over their free GPUs: servers [0]", "job 0: 9 GPUs, not 4"],
    ),
    "two jobs on the same GPUs": (
        replace(SOUND, job=ints(0, 1), server=ints(2, 2)),
        ["over their free GPUs: servers [2]"],
    ),
    "a job without its places": (
        replace(SOUND, job=ints(0), server=ints(0), gpus=ints(4)),
        ["the jobs with places are not those with columns"],
    ),
    "places of a job without a column": (
        replace(SOUND, column=ints(0, -1)),
        ["the jobs with places are not those with columns"],
    ),
    "a place of no GPU": (
        replace(SOUND, job=ints(0, 0, 1), server=ints(0, 1, 2), gpus=ints(4, 0, 4)),
        ["a place without GPUs", "job 0: on 2 servers"],
    ),
    "the column of another": (
        replace(SOUND, column=ints(2, 2), objective=2.0),
        ["job 0: a column of another job"],
    ),
    "too few GPUs": (replace(SOUND, gpus=ints(4, 3)), ["job 1: 3 GPUs, not 4"]),
    "another kind": (replace(SOUND, server=ints(3, 2)), ["job 0: servers of another kind"]),
    "a kind that the column does not name": (
        replace(SOUND, column=ints(0, 3)),
        ["job 1: servers of another kind"],
    ),
    "one server in place of several": (
        replace(SOUND, column=ints(0, 1), gpus=ints(4, 4), objective=5.0, bound=5.0),
        ["job 1: 4 GPUs, not 12", "job 1: on 1 servers"],
    ),
    "several servers in place of one": (
        replace(SOUND, job=ints(0, 0, 1), server=ints(0, 1, 2), gpus=ints(2, 2, 4)),
        ["job 0: on 2 servers"],
    ),
    "servers of two racks": (
        replace(SOUND, column=ints(-1, 1), job=ints(1, 1), server=ints(1, 2), gpus=ints(8, 4), objective=3.0),
        ["job 1: servers that are not adjacent"],
    ),
    "a server left out between": (
        replace(SOUND, column=ints(-1, 1), job=ints(1, 1), server=ints(0, 2), gpus=ints(8, 4), objective=3.0),
        ["job 1: servers that are not adjacent"],
    ),
    "another worth than it says": (replace(SOUND, objective=3.5), ["worth 3.0, not 3.5"]),
    "a bound below its worth": (replace(SOUND, bound=2.0), ["bound 2.0 below the objective 3.0"]),
    "no bound at all": (replace(SOUND, bound=float("nan")), ["bound nan below the objective 3.0"]),
}


def test_a_plan_that_holds_has_nothing_wrong_with_it() -> None:
    assert violations(CHECKED, SOUND) == []


@pytest.mark.parametrize("case", WRONG)
def test_all_that_is_wrong_with_a_plan_is_said(case: str) -> None:
    answer, said = WRONG[case]
    assert violations(CHECKED, answer) == said
