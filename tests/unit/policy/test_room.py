"""A room finds the fullest node that fits, whatever was taken from its nodes and given back before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.policy import Gang, Pools, Room
from slurm_fair.policy.packing.room import POOR_NODES
from tests.support.builders import NodeSpec, node, snapshot

Nodes = Mapping[str, int | NodeSpec]


def room(
    nodes: Nodes, free: list[int], cpus: list[int] | None = None, memory_mb: list[int] | None = None
) -> Room:
    """So much is free of each node; CPUs and memory abound unless they are given."""
    plenty = [64] * len(free)
    gpus, some_cpus, some_memory = (
        np.array(each, np.int64) for each in (free, cpus or plenty, memory_mb or plenty)
    )
    return Room(Pools.of(snapshot(nodes=nodes)), gpus, some_cpus, some_memory)


def alike(count: int, gpus: int = 8) -> Nodes:
    return {f"n{at}": gpus for at in range(count)}


def gang(
    gpus: int,
    nodes: int = 1,
    cpus: int = 1,
    memory_mb: int = 1,
    whole: bool = False,
    barred: tuple[int, ...] = (),
) -> Gang:
    """An even gang on so many nodes; CPUs and memory are those of each."""
    return Gang(gpus, 0, nodes, -(-gpus // nodes), whole, cpus, memory_mb, barred=barred)


def test_the_fullest_node_that_fits_is_found_and_the_first_of_equals() -> None:
    made = room(alike(5), [8, 2, 3, 2, 1])
    assert [made.fullest(gang(gpus)) for gpus in (1, 2, 3, 4, 8)] == [[4], [1], [2], [0], [0]]
    assert room(alike(2), [0, 3]).fullest(gang(4)) is None
    assert room({}, []).fullest(gang(1)) is None


def test_a_node_is_found_where_it_stands_now() -> None:
    made = room(alike(2), [8, 5])
    assert made.fullest(gang(5)) == [1]
    made.add(1, -1, 0, 0)
    assert made.fullest(gang(5)) == [0]
    made.add(0, -8, 0, 0)
    assert (made.fullest(gang(5)), made.fullest(gang(4))) == (None, [1])
    made.add(0, 6, 0, 0)
    assert (made.fullest(gang(5)), made.fullest(gang(1))) == ([0], [1])
    assert (made.gpus.tolist(), made.gpus_of(0)) == ([6, 4], 6)


def test_a_node_that_was_in_debt_is_found_once_it_has_something() -> None:
    made = room(alike(2), [-3, 0])
    assert made.fullest(gang(1)) is None
    made.add(0, 3, 0, 0)
    assert made.fullest(gang(1)) is None
    made.add(0, 1, 0, 0)
    assert made.fullest(gang(1)) == [0]


def test_a_single_node_has_the_cpus_and_the_memory_too() -> None:
    made = room(alike(3), [2, 2, 8], [1, 4, 4], [9, 3, 9])
    assert made.fullest(gang(2)) == [0]
    assert made.fullest(gang(2, cpus=2, memory_mb=3)) == [1]
    assert made.fullest(gang(2, cpus=2, memory_mb=4)) == [2]
    assert made.fullest(gang(2, cpus=5)) is None
    made.add(2, 0, -3, 0)
    assert made.fullest(gang(2, cpus=2, memory_mb=4)) is None


@pytest.mark.parametrize(("poor", "found"), [(POOR_NODES - 1, [POOR_NODES - 1]), (POOR_NODES, [])])
def test_after_so_many_nodes_with_too_few_cpus_it_takes_a_search(poor: int, found: list[int]) -> None:
    made = room(alike(poor + 1), [2] * (poor + 1), [0] * poor + [1])
    assert made.fullest(gang(1)) == found
    assert made.fullest(gang(1)) == [poor]  # the next gang begins with other nodes


def test_nodes_that_are_poor_are_not_forgotten() -> None:
    many = 2 * POOR_NODES
    made = room(alike(many), [2] * many, [0] * many)
    assert [made.fullest(gang(1)) for _ in range(3)] == [[], [], []]
    assert sorted(made.fullest(gang(2 * many, nodes=many)) or []) == list(range(many))


def test_several_nodes_are_the_fullest_and_each_is_named_once() -> None:
    made = room(alike(4), [8, 4, 3, 4])
    assert made.fullest(gang(6, nodes=2)) == [2, 1]
    assert made.fullest(gang(7, nodes=2)) == [1, 3]
    assert made.fullest(gang(9, nodes=3)) == [2, 1, 3]
    assert made.fullest(gang(17, nodes=4)) is None
    for _ in range(3):  # what comes back stands there more than once
        made.add(1, -4, 0, 0)
        made.add(1, 4, 0, 0)
    assert sorted(made.fullest(gang(12, nodes=3)) or []) == [0, 1, 3]
    assert sorted(made.fullest(gang(12, nodes=3)) or []) == [0, 1, 3]
    made.add(3, -1, 0, 0)
    assert made.fullest(gang(12, nodes=3)) is None


def test_whole_nodes_are_free_altogether_and_the_biggest_come_first() -> None:
    nodes = {"n0": 4, "n1": 8, "n2": 8, "n3": 16, "n4": 8}
    made = room(nodes, [4, 8, 7, 8, 8])
    assert made.whole(gang(9, whole=True)) == [1, 4]
    assert made.whole(gang(17, whole=True)) == [1, 4, 0]
    assert made.whole(gang(20, whole=True)) == [1, 4, 0]
    assert made.whole(gang(21, whole=True)) is None
    made.add(3, 8, 0, 0)
    assert made.whole(gang(17, whole=True)) == [3, 1]


def test_a_node_has_exactly_what_is_asked_for_or_not() -> None:
    made = room(alike(1), [4], [2], [3])
    assert made.carries(0, 4, 2, 3)
    assert not any(made.carries(0, *more) for more in ((5, 2, 3), (4, 3, 3), (4, 2, 4)))
    made.add(0, -1, 5, -2)
    assert made.amounts(0) == (3, 7, 1)


def test_looking_at_all_nodes_leaves_out_the_barred_the_poor_and_those_that_take_no_work() -> None:
    nodes: Nodes = {"n0": 8, "n1": 8, "n2": node(8, usable=False), "n3": 8, "n4": 0, "n5": 4}
    made = room(nodes, [8, 3, 8, 8, 0, 4], [4, 4, 4, 1, 4, 4], [2, 9, 9, 9, 9, 9])
    assert made.fitting(gang(4)).nonzero()[0].tolist() == [0, 3, 5]
    assert made.fitting(gang(3, cpus=2)).nonzero()[0].tolist() == [0, 1, 5]
    assert made.fitting(gang(3, memory_mb=9)).nonzero()[0].tolist() == [1, 3, 5]
    assert made.fitting(gang(3, barred=(0, 5))).nonzero()[0].tolist() == [1, 3]
    assert made.fitting(gang(0, whole=True)).nonzero()[0].tolist() == [0, 3, 5]
    assert made.fullest(gang(8)) == [0]


def test_what_is_taken_from_a_room_stays_in_the_tables_of_its_maker() -> None:
    free = np.array([4, 4])
    made = Room(Pools.of(snapshot(nodes=alike(2))), free, free, free)
    made.add(0, -3, -2, -1)
    assert free.tolist() == [4, 4]
    assert (made.gpus.tolist(), made.cpus.tolist(), made.memory_mb.tolist()) == ([1, 4], [2, 4], [3, 4])


def test_nodes_that_fewer_pools_share_are_found_before_others_with_as_much() -> None:
    nodes = {
        "n0": node(8, partitions=("p", "q")),
        "n1": node(8, partitions=("p",)),
        "n2": node(8, partitions=("q",)),
    }
    made = room(nodes, [4, 4, 4])
    assert made.fullest(gang(4)) == [1]
    assert made.fullest(gang(4)._replace(pool=1)) == [2]
    assert sorted(made.fullest(gang(8, nodes=2)) or []) == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 8)), max_size=30))
def test_whatever_happened_before_the_free_gpus_of_the_node_found_are_the_fewest_that_do(
    acts: list[tuple[int, int, int]],
) -> None:
    made = room(alike(4), [8, 5, 3, 0])
    for at, more, gpus in acts:
        if gpus:
            free = [each for each in made.gpus.tolist() if each >= gpus]
            found = made.fullest(gang(gpus))
            assert (min(free) if free else None) == (made.gpus_of(found[0]) if found else None)
        if -1 <= made.gpus_of(at) + more <= 8:
            made.add(at, more, 0, 0)
