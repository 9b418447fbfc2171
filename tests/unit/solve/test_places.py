"""Exact places: the configurations that jobs have, limits, and questions with little in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

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
from tests.support.any_places import Column, places

Solver = Callable[[PlacesProblem], PlacesAnswer]
SOLVERS: tuple[Solver, ...] = (literal, classes, fast)
each_solver = pytest.mark.parametrize("solve", SOLVERS)


def laid(answer: PlacesAnswer) -> list[tuple[int, int, int]]:
    """Job, server and GPUs of every place."""
    return list(zip(answer.job.tolist(), answer.server.tolist(), answer.gpus.tolist(), strict=True))


def gang(gpus: int, value: float = 1.0, job: int = 0, on: int = 0) -> Column:
    """A column for a job on several servers."""
    return (job, on, gpus, True, value)


def alone(gpus: int, value: float = 1.0, job: int = 0, on: int = 0) -> Column:
    """A column for a job on one server."""
    return (job, on, gpus, False, value)


NOTHING = {
    "no jobs": places([8, 8], [], jobs=0),
    "jobs without columns": places([8, 8], [], jobs=3),
    "no servers": places([], [alone(1), gang(12)]),
    "nothing free": places([0, 0], [alone(1), gang(12)]),
    "too large for a server": places([8, 8], [alone(9)]),
    "too large for all servers": places([8, 8], [gang(17)]),
    "no server of the kind": places([8, 8], [alone(1, on=3), gang(9, on=1)]),
    "worth nothing": places([8, 8], [alone(1, 0.0), gang(9, 0.0)]),
    "spread, but one server would do": places([8, 0, 8], [gang(6)]),
    "neighbours in two racks": places([8, 8], [gang(12)], block=[0, 1]),
    "neighbours of two kinds": places([8, 8], [gang(12)], kind=[0, 1]),
    "a full server between": places([8, 0, 8], [gang(12)]),
}


@each_solver
@pytest.mark.parametrize("what", NOTHING)
def test_nothing_can_be_given(solve: Solver, what: str) -> None:
    answer = solve(NOTHING[what])
    assert violations(NOTHING[what], answer) == []
    assert (answer.objective, answer.bound, answer.gap) == (0.0, 0.0, 0.0)
    assert answer.how is How.EXACT
    assert answer.column.tolist() == [-1] * NOTHING[what].jobs


@each_solver
def test_a_job_may_fill_a_server(solve: Solver) -> None:
    assert laid(solve(places([8, 3], [alone(8)]))) == [(0, 0, 8)]


@each_solver
@pytest.mark.parametrize(
    ("free", "gpus", "expected"),
    [
        ([4, 3], 6, [(0, 0, 4), (0, 1, 2)]),  # partly filled neighbours
        ([0, 8, 8], 12, [(0, 1, 8), (0, 2, 4)]),
        ([3, 3, 3, 0, 8, 8], 9, [(0, 4, 8), (0, 5, 1)]),  # two servers, not three
        ([8, 8, 8], 24, [(0, 0, 8), (0, 1, 8), (0, 2, 8)]),
        ([1, 8, 8, 8], 24, [(0, 1, 8), (0, 2, 8), (0, 3, 8)]),  # not over four
        ([5, 8, 8], 16, [(0, 1, 8), (0, 2, 8)]),  # idle servers are paired with idle ones
        (
            [8, 8, 8, 5],
            13,
            [(0, 2, 8), (0, 3, 5)],
        ),  # and the odd one with its neighbour: nothing is left on it
    ],
)
def test_a_gang_lies_on_the_fewest_neighbours_each_filled(
    solve: Solver, free: list[int], gpus: int, expected: list[tuple[int, int, int]]
) -> None:
    problem = places(free, [gang(gpus)])
    answer = solve(problem)
    assert violations(problem, answer) == []
    assert laid(answer) == expected


@each_solver
def test_the_odd_idle_server_is_paired_with_its_partly_filled_neighbour(solve: Solver) -> None:
    answer = solve(places([8, 8, 8, 5], [gang(16), gang(13, job=1)]))
    assert laid(answer) == [(0, 0, 8), (0, 1, 8), (1, 2, 8), (1, 3, 5)]


@each_solver
def test_a_job_has_one_way_at_most_and_the_best_together_wins(solve: Solver) -> None:
    columns = [alone(8, 5.0), alone(4, 4.0), alone(4, 3.0, job=1), alone(8, 6.5, job=1)]
    answer = solve(places([8], columns))
    assert answer.column.tolist() == [1, 2]
    assert answer.objective == answer.bound == 7.0


@each_solver
def test_two_gangs_never_share_a_group_of_neighbours(solve: Solver) -> None:
    problem = places([8] * 6, [gang(24, job=job) for job in range(3)])
    answer = solve(problem)
    assert violations(problem, answer) == []
    assert answer.objective == 1.0  # the groups of four are servers 0-3, and 4-5


@each_solver
def test_pairs_lose_nothing_on_idle_servers(solve: Solver) -> None:
    problem = places([8] * 9, [gang(12, job=job) for job in range(5)], block=[0] * 4 + [1] * 5)
    answer = solve(problem)
    assert answer.objective == 4.0
    assert violations(problem, answer) == []


BAD = {
    "from 0 to all": lambda: places([9], [alone(1)]),
    "not negative": lambda: places([8], [alone(1, -1.0)]),
    "finite": lambda: places([8], [alone(1, float("nan"))]),
    "at least one GPU": lambda: places([8], [alone(0)]),
    "jobs from 0 to 0": lambda: places([8], [alone(1, job=1)], jobs=1),
    "counted from 0": lambda: places([8], [alone(1, on=-1)]),
    "differ in length": lambda: replace(places([8], [alone(1)]), kind=np.zeros(2, dtype=np.int64)),
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_is_refused_in_one_line(words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        BAD[words]()
    assert "\n" not in str(refused.value)


def test_without_time_for_a_solver_a_plan_stands_and_says_how_good_it_is() -> None:
    problem = _crowd()
    best = classes(problem)
    for solve in (classes, fast):
        answer = solve(problem, PlacesLimits(seconds=0.0))
        assert violations(problem, answer) == []
        assert 0.8 * best.objective < answer.objective <= best.objective + 1e-6
        assert answer.bound >= best.objective - 1e-6
        assert answer.how in (How.GREEDY, How.FEASIBLE)


@pytest.mark.parametrize("limits", [PlacesLimits(nodes=0), PlacesLimits(nodes=1), PlacesLimits(seconds=0.01)])
def test_the_papers_program_cut_short_does_not_say_that_it_is_optimal(limits: PlacesLimits) -> None:
    problem = _crowd()
    answer = literal(problem, limits)
    assert violations(problem, answer) == []
    assert answer.bound >= classes(problem).objective - 1e-6
    if answer.how is How.EXACT:
        assert answer.gap < 1e-6


def test_a_wider_gap_is_kept_and_a_closed_one_is_the_optimum() -> None:
    problem = _crowd()
    wide = fast(problem, PlacesLimits(gap=0.2))
    assert wide.gap <= 0.2
    assert fast(problem, PlacesLimits(gap=0.0)).objective == pytest.approx(classes(problem).objective)


@pytest.mark.parametrize("gap", [0.0, 0.002])
def test_among_many_jobs_the_choice_of_a_few_is_opened(gap: float) -> None:
    problem = _crowd(130)
    answer, best = fast(problem, PlacesLimits(gap=gap)), classes(problem)
    assert best.how is How.EXACT
    assert violations(problem, answer) == violations(problem, best) == []
    assert 0.99 * best.objective < answer.objective <= best.objective * (1 + 1e-9)
    assert answer.bound >= best.objective * (1 - 1e-9)


def _crowd(jobs: int = 60) -> PlacesProblem:
    """Jobs with three sizes each on twelve servers of two kinds."""
    dice = np.random.default_rng(7)
    columns = [
        (job, on, gpus, gpus > 8, float(gpus**0.8 * dice.uniform(1, 3) * (1 + on)))
        for job in range(jobs)
        for gpus in dice.choice(np.arange(1, 17), 3, replace=False).tolist()
        for on in range(2)
    ]
    return places([8] * 12, columns, kind=[0] * 6 + [1] * 6)
