"""Slurm fills nodes with a gang by one rule, which policies, the controller and simulations go by."""

from __future__ import annotations

import pytest

from slurm_fair.model.placement import slurm_fill


@pytest.mark.parametrize(
    ("free", "gpus", "filled"),
    [
        ([8], 3, [3]),
        ([8, 8], 6, [5, 1]),
        ([8, 8], 12, [8, 4]),
        ([2, 8, 8], 8, [2, 5, 1]),
        ([4, 4, 4], 3, [1, 1, 1]),
    ],
)
def test_each_node_gives_all_that_it_has_but_one_gpu_for_each_that_follows(
    free: list[int], gpus: int, filled: list[int]
) -> None:
    nodes = [10 + at for at in range(len(free))]
    assert slurm_fill(nodes, free, gpus) == list(zip(nodes, filled, strict=True))


def test_nodes_that_have_too_few_give_what_they_have() -> None:
    assert slurm_fill([0, 1], [2, 3], 8) == [(0, 2), (1, 3)]


def test_there_is_one_number_of_free_gpus_for_each_node() -> None:
    with pytest.raises(ValueError, match="shorter"):
        slurm_fill([0, 1], [2], 2)
