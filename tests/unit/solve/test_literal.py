"""The paper's integer program: the windows that all solvers have, and every start as in the paper."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.solve import How
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, PlacesProblem, literal, violations
from tests.support.any_places import Column, places


def alone(job: int, gpus: int, value: float = 1.0) -> Column:
    return (job, 0, gpus, False, value)


def gang(job: int, gpus: int, value: float = 1.0) -> Column:
    return (job, 0, gpus, True, value)


def anywhere(problem: PlacesProblem) -> PlacesAnswer:
    """The best plan that holds, where a spread job may begin on any server."""
    answer = literal(problem, every_start=True)
    assert violations(problem, answer) == []
    assert answer.how is How.EXACT
    return answer


def servers_of(answer: PlacesAnswer, job: int) -> list[tuple[int, int]]:
    """Servers and GPUs of one job."""
    mine = answer.job == job
    return list(zip(answer.server[mine].tolist(), answer.gpus[mine].tolist(), strict=True))


def test_gangs_of_three_servers_lie_side_by_side_where_they_may_begin_anywhere() -> None:
    problem = places([8] * 6, [gang(job, 24) for job in range(3)])
    assert literal(problem).objective == 1.0, "in four of the servers, and two are too few"
    assert anywhere(problem).objective == 2.0


def test_a_gang_begins_on_the_second_server_where_another_has_the_first() -> None:
    """The pair is servers 0 and 1; server 0 is the only one with room for job 0."""
    problem = places([8, 7, 7], [alone(0, 8, 9.0), gang(1, 14, 5.0)], size=[8, 8, 8])
    assert literal(problem).objective == 9.0
    assert servers_of(anywhere(problem), 1) == [(1, 7), (2, 7)]


@pytest.mark.parametrize(
    ("free", "gpus", "expected"),
    [
        ([8, 4, 8, 8], 16, [(2, 8), (3, 8)]),  # from servers 0 and 1 on it takes three
        ([2, 8, 3], 5, [(0, 2), (1, 3)]),  # server 1 would hold it alone, and that is not spread
        ([3, 3, 3], 9, [(0, 3), (1, 3), (2, 3)]),
    ],
)
def test_where_it_begins_anywhere_a_gang_still_has_the_fewest_servers(
    free: list[int], gpus: int, expected: list[tuple[int, int]]
) -> None:
    assert servers_of(anywhere(places(free, [gang(0, gpus)])), 0) == expected


def test_a_gang_does_not_begin_where_it_would_take_more_servers_to_leave_others_theirs() -> None:
    """From server 1 on it takes two, from server 0 on three."""
    problem = places([4, 4, 8], [gang(0, 12, 5.0), alone(1, 8, 4.0)])
    assert anywhere(problem).column.tolist() == [0, -1]


NOWHERE = {
    "in two racks": places([8, 8], [gang(0, 12)], block=[0, 1]),
    "of two kinds": places([8, 8], [gang(0, 12)], kind=[0, 1]),
    "a full server between": places([8, 0, 8], [gang(0, 12)]),
    "one GPU too few": places([8, 8], [gang(0, 17)]),
    "one server is enough": places([8, 8], [gang(0, 8)]),
    "no server": places([], [gang(0, 12)]),
}


@pytest.mark.parametrize("case", NOWHERE)
def test_a_gang_begins_nowhere(case: str) -> None:
    answer = anywhere(NOWHERE[case])
    assert (answer.column.tolist(), answer.objective, answer.bound) == ([-1], 0.0, 0.0)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_the_best_is_found_however_large_or_small_all_values_are(scale: float) -> None:
    """Filling the server with the two small jobs is worth 1 % more than the large one."""
    problem = places([8], [alone(0, 8, 10.0 * scale), alone(1, 4, 5.0 * scale), alone(2, 4, 5.1 * scale)])
    answer = literal(problem)
    assert answer.column.tolist() == [-1, 1, 2]
    assert answer.bound == pytest.approx(10.1 * scale)
    assert answer.how is How.EXACT


def test_of_jobs_that_are_worth_the_same_as_many_run_as_there_is_room_for() -> None:
    problem = places([4, 3], [alone(job, 2) for job in range(40)])
    answer = literal(problem)
    assert violations(problem, answer) == []
    assert answer.objective == 3.0


def test_cut_short_it_promises_no_more_than_everybodys_best() -> None:
    """Each job's best column counts once, though there is room for one of them only."""
    columns = [alone(0, 8, 3.0), alone(0, 6, 7.0), alone(1, 8, 5.0), alone(2, 9, 99.0)]
    problem = places([8], columns)
    answer = literal(problem, PlacesLimits(seconds=0.0))
    assert violations(problem, answer) == []
    assert 7.0 <= answer.bound <= 12.0
    assert (answer.how is How.EXACT) == (answer.objective == 7.0)


def test_jobs_are_answered_by_their_numbers_though_columns_stand_in_any_order() -> None:
    columns = [alone(2, 3, 4.0), alone(0, 5, 9.0), alone(1, 1, 0.0)]
    answer = literal(places([8], columns, jobs=4))
    assert answer.column.tolist() == [1, -1, 0, -1]
    assert np.array_equal(answer.job, [0, 2])
