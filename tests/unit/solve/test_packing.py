"""Packing lays what is chosen as far as there is room, and then whoever still fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.solve.places import PlacesProblem
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.packing import packed, packed_with
from tests.support.any_places import Column, places, problems, sites_by_job


def for_nothing(free: Sequence[int], *columns: Column) -> dict[int, list[tuple[int, int]]]:
    """Everybody's best where nothing has a price."""
    problem = places(free, columns)
    fleet = Fleet.of(problem)
    return sites_by_job(problem, packed(problem, fleet, np.zeros(len(fleet.ways))))


def alone(job: int, gpus: int, value: float = 1.0) -> Column:
    return (job, 0, gpus, False, value)


def gang(job: int, gpus: int, value: float = 1.0) -> Column:
    return (job, 0, gpus, True, value)


def test_each_lies_on_the_server_that_it_leaves_the_least_on() -> None:
    assert for_nothing([8, 3, 5], alone(0, 3)) == {0: [(1, 3)]}
    assert for_nothing([8, 4, 5], alone(0, 3)) == {0: [(1, 3)]}
    assert for_nothing([8, 2, 8], alone(0, 3)) == {0: [(0, 3)]}


def test_the_largest_are_laid_first() -> None:
    """4 and 4 on one, 5 and 3 on the other: the other way round one would not fit."""
    assert for_nothing([8, 8], alone(0, 3), alone(1, 4), alone(2, 5), alone(3, 4)) == {
        0: [(0, 3)], 1: [(1, 4)], 2: [(0, 5)], 3: [(1, 4)],
    }  # fmt: skip


def test_gangs_are_laid_before_single_servers_are_broken() -> None:
    assert for_nothing([8, 8, 8], alone(0, 8, 9.0), gang(1, 12)) == {0: [(2, 8)], 1: [(0, 8), (1, 4)]}


def test_of_a_kind_that_is_over_full_those_that_pay_least_for_a_gpu_are_left_out() -> None:
    assert for_nothing([8], alone(0, 8, 8.0), alone(1, 4, 5.0), alone(2, 4, 4.5)) == {
        1: [(0, 4)],
        2: [(0, 4)],
    }
    assert for_nothing([8], alone(0, 8, 9.0), alone(1, 4, 4.0), alone(2, 4, 4.0)) == {0: [(0, 8)]}


def test_whoever_still_fits_gets_what_is_left_in_the_order_of_what_it_pays() -> None:
    """Job 0 takes 6 of 8 GPUs. What job 2 would rather have is nowhere, and of one server 2 GPUs are left."""
    jobs = (alone(0, 6, 60.0), alone(1, 2, 1.0), alone(2, 4, 8.0), alone(2, 2, 2.0))
    assert for_nothing([8], *jobs) == {0: [(0, 6)], 2: [(0, 2)]}


def test_those_that_were_not_chosen_wait_until_all_chosen_have_their_places() -> None:
    problem = places([8], [alone(0, 8, 9.0), alone(1, 8, 1.0)])
    fleet = Fleet.of(problem)
    assert sites_by_job(problem, packed_with(problem, fleet, np.zeros(1), np.array([1]))) == {1: [(0, 8)]}
    assert sites_by_job(problem, packed_with(problem, fleet, np.zeros(1), np.zeros(0, dtype=np.int64))) == {
        0: [(0, 8)]
    }


def test_of_one_job_only_one_use_is_sites_by_job() -> None:
    problem = places([8], [alone(0, 4, 8.0), alone(0, 2, 2.0), alone(1, 4, 1.0)])
    fleet = Fleet.of(problem)
    nobody = np.zeros(0, dtype=np.int64)
    assert sites_by_job(problem, packed_with(problem, fleet, np.zeros(2), nobody)) == {
        0: [(0, 4)],
        1: [(0, 4)],
    }


def test_those_below_their_price_wait_until_the_others_have_their_places() -> None:
    """If job 0 were laid first, all three would fit."""
    problem = places([4, 3], [alone(0, 3, 2.0), alone(1, 2), alone(2, 2)])
    fleet = Fleet.of(problem)
    prices = np.where(fleet.ways.gpus == 3, 9.0, 0.0)
    assert sites_by_job(problem, packed(problem, fleet, prices)) == {1: [(1, 2)], 2: [(0, 2)]}


def test_a_job_that_pays_less_than_its_price_is_still_laid_where_there_is_room() -> None:
    problem = places([8], [alone(0, 8, 2.0)])
    fleet = Fleet.of(problem)
    assert sites_by_job(problem, packed(problem, fleet, np.array([5.0]))) == {0: [(0, 8)]}


@given(problems(), st.lists(st.floats(0.0, 20.0), min_size=40, max_size=40))
def test_a_packed_plan_holds_and_leaves_no_job_that_would_still_fit_on_one_server(
    problem: PlacesProblem, prices: list[float]
) -> None:
    fleet = Fleet.of(problem)
    picks = packed(problem, fleet, np.array(prices)[: len(fleet.ways)])
    places_of = sites_by_job(problem, picks)
    left = problem.free.copy()
    for sites in places_of.values():
        for server, gpus in sites:
            left[server] -= gpus
    for column in np.flatnonzero((problem.value > 0) & ~problem.several):
        if problem.job[column] not in places_of:
            most = left[problem.kind == problem.on[column]].max(initial=0)
            assert most < problem.gpus[column]
