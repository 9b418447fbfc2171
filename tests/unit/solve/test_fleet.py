"""Servers that look alike are counted, with the ways on one of them and the groups for more."""

from __future__ import annotations

import numpy as np

from slurm_fair.solve.places.fleet import Fleet, spans
from tests.support.any_places import places


def arcs(fleet: Fleet) -> list[tuple[int, int]]:
    """The GPUs that a server has free before and after, of each arc."""
    return list(zip(fleet.arc_from.tolist(), fleet.arc_to.tolist(), strict=True))


def test_servers_of_a_kind_with_as_much_free_are_counted() -> None:
    fleet = Fleet.of(places([8, 3, 0, 8, 3, 3], [(0, 0, 1, False, 1.0)], kind=[0, 0, 0, 1, 1, 1]))
    assert fleet.used.tolist() == [0, 1, 3, 4, 5]
    assert fleet.most == 8
    assert fleet.servers.reshape(2, 9).tolist() == [[0, 0, 0, 1, 0, 0, 0, 0, 1], [0, 0, 0, 2, 0, 0, 0, 0, 1]]


def test_a_way_on_one_server_may_begin_at_whatever_one_of_its_kind_comes_to() -> None:
    fleet = Fleet.of(places([5, 3], [(0, 0, 4, False, 1.0), (1, 0, 3, False, 1.0)]))
    assert sorted(arcs(fleet)) == [(3, 0), (4, 0), (4, 1), (5, 1), (5, 2)]
    other = Fleet.of(places([5, 8], [(0, 0, 4, False, 1.0)], kind=[0, 1]))
    assert sorted(arcs(other)) == [(4, 0), (5, 1)]  # a server of kind 0 never has more than 5


def test_columns_that_no_server_can_give_are_left_out() -> None:
    columns = [
        (0, 0, 8, False, 1.0),
        (1, 0, 9, False, 1.0),
        (2, 0, 17, True, 1.0),
        (3, 0, 12, True, 1.0),
        (4, 0, 2, False, 0.0),
    ]
    fleet = Fleet.of(places([8, 8], columns))
    assert fleet.ways.job.tolist() == [0, 3]
    assert fleet.ways.columns.tolist() == [0, 3]


def test_pairs_that_look_alike_are_one_group_of_so_many_with_one_window() -> None:
    fleet = Fleet.of(places([8, 8, 8, 8], [(0, 0, 12, True, 1.0)]))
    windows = fleet.windows
    assert (windows.servers.tolist(), windows.level.tolist()) == ([2], [1])
    assert fleet.groups[windows.group].tolist() == [2]
    assert windows.rest.tolist() == [4]
    assert [each.tolist() for each in windows.node] == [[0, 0], [8, 8]]


def test_a_window_of_a_larger_group_makes_the_smaller_groups_in_it_useless() -> None:
    fleet = Fleet.of(places([8, 8, 8, 8], [(0, 0, 12, True, 1.0), (1, 0, 30, True, 1.0)]))
    windows = fleet.windows
    (small,), (large,) = (np.flatnonzero(windows.servers == count).tolist() for count in (2, 4))
    held = list(zip(*(each.tolist() for each in windows.hold), strict=True))
    assert sorted(held) == sorted([
        (small, windows.group[small]), (large, windows.group[large]),
        (large, windows.group[small]), (large, windows.group[small]),
    ])  # fmt: skip
    assert fleet.groups[windows.group[[small, large]]].tolist() == [2, 1]
    assert windows.rest[large] == 2


def test_the_rows_of_spans_stand_one_after_the_other_with_their_span() -> None:
    span, row = spans(np.array([5, 0, 7]), np.array([2, 0, 3]))
    assert (span.tolist(), row.tolist()) == ([0, 0, 2, 2, 2], [5, 6, 7, 8, 9])
    none = np.zeros(0, dtype=np.int64)
    assert [each.tolist() for each in spans(none, none)] == [[], []]


def test_where_there_are_no_servers_or_no_jobs_everything_is_empty() -> None:
    for problem in (
        places([], [(0, 0, 1, False, 1.0), (0, 0, 9, True, 1.0)]),
        places([8], []),
        places([0], []),
    ):
        fleet = Fleet.of(problem)
        assert (len(fleet.ways.way), len(fleet.arc_way), len(fleet.windows.way), len(fleet.groups)) == (
            0,
            0,
            0,
            0,
        )
