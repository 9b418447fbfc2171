"""The GPUs, CPUs and memory of nodes that managed jobs can have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import PartitionTable
from tests.support.builders import node, snapshot

NODES = snapshot(
    nodes={
        "whole": node(8, gpu_type="b", cpus=64, memory_mb=1000),
        "shared": node(
            8, gpus_others=3, gpu_type="b", cpus=64, cpus_others=10, memory_mb=1000, memory_others_mb=1
        ),
        "down": node(8, gpu_type="c", usable=False),
        "lent": node(2, gpus_others=4, gpu_type="a"),
        "small": node(1, gpu_type="d"),
    }
).nodes


def test_jobs_can_have_what_others_leave_of_nodes_that_can_start_work() -> None:
    assert NODES.capacity.tolist() == [8, 5, 0, 0, 1]
    assert not NODES.capacity.flags.writeable
    assert NODES.total_gpus == 14
    assert NODES.cpus_left.tolist()[:2] == [64, 54]
    assert NODES.memory_left_mb.tolist()[:2] == [1000, 999]


def test_types_of_which_nobody_can_have_a_gpu_are_left_out() -> None:
    types, gpus = NODES.gpus_of_types
    assert (types.tolist(), gpus.tolist()) == ([1, 3], [13.0, 1.0])


def test_a_gang_lies_on_nodes_of_one_way_or_on_any_of_the_partition() -> None:
    members = np.array([[True, True, False], [False, True, True]])
    table = PartitionTable(("p", "q"), np.ones(2, dtype=bool), members)
    assert [table.ways_of(row).tolist() for row in (0, 1)] == [[[True, True, False]], [[False, True, True]]]
    racks = np.array([[False, True, False], [False, False, True]])
    assert replace(table, ways=(members[:1], racks)).ways_of(1) is racks
