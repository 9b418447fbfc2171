"""The machines of a virtual cluster: who holds which GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.sim.world.gpu_map import Floor, Sites
from slurm_fair.trace import uniform


@pytest.fixture
def floor() -> Floor:
    """Four nodes of four GPUs; the last two have another type."""
    machines = replace(uniform(16, 4), gpu_type=np.array([0, 0, 1, 1]), gpu_types=("x", "y"))
    return Floor(machines, ("x", "y"))


def test_gpus_that_are_taken_come_back(floor: Floor) -> None:
    floor.take(2, [(0, 3), (1, 1)])
    before = floor.holders()
    floor.take(1, [(1, 2)])
    assert list(zip(*(column.tolist() for column in floor.holders()), strict=True)) == [
        (1, 1, 2),
        (2, 0, 3),
        (2, 1, 1),
    ]
    assert [column.tolist() for column in before] == [[2, 2], [0, 1], [3, 1]]
    assert (list(floor.free), floor.taken().tolist()) == ([1, 1, 4, 4], [3, 3, 0, 0])
    assert (floor.on(1), floor.on(3)) == ([1, 2], [])
    floor.leave(2)
    assert (list(floor.free), floor.on(0)) == ([4, 2, 4, 4], [])


@pytest.mark.parametrize(
    ("gang", "expected"),
    [
        ((1, 0, 1, -1), [(0, 1)]),  # on the fullest node that has room
        ((4, 0, 1, -1), [(2, 4)]),
        ((3, 0, 1, 1), [(2, 3)]),
        ((6, 0, 1, -1), [(2, 4), (3, 2)]),
        ((2, 0, 2, 1), [(2, 1), (3, 1)]),
        ((4, 2, 1, 1), [(2, 2), (3, 2)]),
        ((5, 0, 1, 0), [(0, 2), (1, 3)]),
        ((6, 0, 1, 0), None),
        ((99, 0, 1, -1), None),
    ],
)
def test_a_gang_lies_on_as_few_nodes_as_can_be(
    floor: Floor, gang: tuple[int, int, int, int], expected: Sites | None
) -> None:
    floor.take(1, [(0, 2), (1, 1)])
    assert floor.anywhere(*gang) == expected


def test_a_node_that_takes_no_work_is_left_out(floor: Floor) -> None:
    floor.set_state(0, False, "DRAIN")
    assert floor.sites([0], 1, 0) is None
    assert floor.sites([0, 1], 5, 0) is None
    assert floor.anywhere(1, 0, 1, 0) == [(1, 1)]
    assert (floor.nodes.why, floor.total_gpus) == (("DRAIN", "", "", ""), 12)
    floor.set_state(0, True, "")
    assert floor.sites([0, 1], 5, 0) == [(0, 4), (1, 1)]


def test_sites_are_none_where_the_gang_does_not_fit(floor: Floor) -> None:
    assert floor.sites([0, 1], 9, 0) is None
    assert floor.sites([0, 1], 4, 2) == [(0, 2), (1, 2)]
    floor.take(1, [(0, 3)])
    assert floor.sites([0, 1], 4, 2) is None
    assert floor.sites([0], 2, 0) is None


def test_others_take_no_more_than_is_free_and_give_back_no_more_than_they_had(floor: Floor) -> None:
    floor.take(1, [(0, 3)])
    floor.lend(0, 5)
    assert (floor.others[0], floor.free[0], floor.nodes.gpus_others[0]) == (1, 0, 1)
    assert floor.taken()[0] == 3
    floor.lend(0, -9)
    assert (floor.others[0], floor.free[0]) == (0, 1)


def test_the_fewest_nodes_of_a_type_for_a_gang(floor: Floor) -> None:
    assert [floor.fewest_nodes(0, gpus) for gpus in (1, 4, 5, 8)] == [1, 1, 2, 2]


def test_gpus_count_by_the_weight_of_their_type(floor: Floor) -> None:
    weights = np.array([1.0, 0.5])
    assert (floor.weighed(None), floor.weighed(weights)) == (16.0, 12.0)
    assert floor.weight_of([(1, 1), (2, 3)], weights) == (1 + 3 * 0.5) / 4
