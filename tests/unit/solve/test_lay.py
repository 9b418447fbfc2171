"""Counts of arcs and windows become places on servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slurm_fair.solve.places import PlacesProblem
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.lay import lay
from tests.support.any_places import places, sites_by_job


def laid(
    problem: PlacesProblem,
    arcs: Mapping[tuple[int, int], int],
    windows: Mapping[int, int] | None = None,
    jobs: Sequence[int] | None = None,
) -> dict[int, list[tuple[int, int]]]:
    """Servers and GPUs of each job; arcs by what a server has free before and after, windows by their servers."""
    fleet = Fleet.of(problem)
    pairs = zip(fleet.arc_from.tolist(), fleet.arc_to.tolist(), strict=True)
    counts = np.array([arcs.get(pair, 0) for pair in pairs], dtype=np.int64)
    wide = np.array([(windows or {}).get(each, 0) for each in fleet.windows.servers.tolist()], dtype=np.int64)
    chosen = np.arange(len(fleet.ways.job))
    if jobs is not None:
        chosen = np.array([use for use in chosen.tolist() if fleet.ways.job[use] in jobs], dtype=np.int64)
    return sites_by_job(problem, lay(problem, fleet, chosen, counts, wide))


def test_a_server_gives_along_its_arcs_from_more_to_less() -> None:
    problem = places([3, 8], [(0, 0, 5, False, 1.0), (1, 0, 3, False, 1.0), (2, 0, 3, False, 1.0)])
    assert laid(problem, {(8, 3): 1, (3, 0): 2}) == {0: [(1, 5)], 1: [(0, 3)], 2: [(1, 3)]}
    assert laid(problem, {(8, 3): 1, (3, 0): 1}) == {0: [(1, 5)], 1: [(0, 3)]}


def test_an_arc_that_is_taken_often_takes_as_many_servers() -> None:
    problem = places([8, 8, 8], [(job, 0, 8, False, 1.0) for job in range(3)])
    assert laid(problem, {(8, 0): 2}) == {0: [(0, 8)], 1: [(1, 8)]}


def test_two_who_ask_for_as_much_lie_on_one_server_one_after_the_other() -> None:
    problem = places([8], [(0, 0, 4, False, 1.0), (1, 0, 4, False, 1.0)])
    assert laid(problem, {(8, 4): 1, (4, 0): 1}) == {0: [(0, 4)], 1: [(0, 4)]}


def test_where_more_is_offered_than_was_chosen_nobody_gets_the_rest() -> None:
    problem = places([8, 8], [(0, 0, 8, False, 1.0), (1, 0, 8, False, 1.0)])
    assert laid(problem, {(8, 0): 2}, jobs=[1]) == {1: [(0, 8)]}
    assert laid(problem, {}, jobs=[]) == {}


def test_gangs_come_first_and_what_their_last_server_has_left_goes_on_along_its_arcs() -> None:
    problem = places([8, 8, 8], [(0, 0, 12, True, 1.0), (1, 0, 4, False, 1.0), (2, 0, 8, False, 1.0)])
    assert laid(problem, {(4, 0): 1, (8, 0): 1}, {2: 1}) == {0: [(0, 8), (1, 4)], 1: [(1, 4)], 2: [(2, 8)]}


def test_larger_gangs_lie_on_groups_that_no_smaller_one_has_touched() -> None:
    """Eight idle servers are two groups of four and four pairs; the gang of 30 is laid first."""
    problem = places([8] * 8, [(0, 0, 12, True, 1.0), (1, 0, 30, True, 1.0), (2, 0, 12, True, 1.0)])
    assert laid(problem, {}, {2: 2, 4: 1}) == {
        0: [(4, 8), (5, 4)], 1: [(0, 8), (1, 8), (2, 8), (3, 6)], 2: [(6, 8), (7, 4)],
    }  # fmt: skip


def test_servers_with_nothing_free_are_not_counted() -> None:
    problem = places([0, 8, 0, 8, 8], [(0, 0, 12, True, 1.0), (1, 0, 8, False, 1.0)])
    assert laid(problem, {(8, 0): 1}, {2: 1}) == {0: [(3, 8), (4, 4)], 1: [(1, 8)]}
