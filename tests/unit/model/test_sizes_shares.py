"""CPUs and memory of elastic jobs with another size: by the GPU, by the node, or of the whole job."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import Placement, Sizes
from slurm_fair.model.sizes import Per, shares, with_gangs
from tests.support.builders import job, snapshot

JOBS = snapshot(
    nodes={"n1": 8, "n2": 8}, jobs=[job(1, gpus=2, cpus=8, memory_mb=100), job(2, gpus=2, cpus=8)]
).jobs


def sizes(per: Per) -> Sizes:
    """The first job can run with 2 and 4 GPUs; its CPUs and memory are asked for so."""
    ways = np.full(2, per, dtype=np.int8)
    return Sizes(np.array([0, 0]), np.array([2, 4]), np.array([True, False]), ways, ways)


@pytest.mark.parametrize(
    ("per", "cpus", "memory_mb"), [(Per.JOB, [4, 4], 50), (Per.GPU, [12, 4], 150), (Per.NODE, [8, 8], 100)]
)
def test_what_is_taken_of_a_node_goes_by_what_was_asked_for(
    per: Per, cpus: list[int], memory_mb: int
) -> None:
    places = Placement.of([(0, 0, 3), (0, 1, 1)])
    gpus, taken, memory = shares(places, places.row, JOBS, sizes(per))
    assert (gpus.tolist(), taken.tolist(), memory.tolist()[0]) == ([3, 1], cpus, memory_mb)


def test_rigid_jobs_and_usual_sizes_are_split_evenly() -> None:
    places = Placement.of([(0, 0, 1), (0, 1, 1), (1, 0, 3), (1, 1, 1)])
    _, cpus, _ = shares(places, places.row, JOBS, sizes(Per.GPU))
    assert cpus.tolist() == [4, 4, 4, 4]


def test_with_another_gang_goes_what_was_asked_for_by_the_gpu() -> None:
    after = with_gangs(JOBS, sizes(Per.GPU), np.array([4, 4]))
    assert (after.gpus.tolist(), after.cpus.tolist(), after.memory_mb.tolist()) == ([4, 2], [16, 8], [200, 1])


def test_sizes_of_some_jobs_are_renumbered_in_their_order() -> None:
    table = Sizes(np.array([0, 0, 2]), np.array([1, 2, 4]), np.array([True, False, True]))
    some = table.for_rows(np.array([2, 1, 0]))
    assert (some.row.tolist(), some.gpus.tolist()) == ([0, 2, 2], [4, 1, 2])
