"""A snapshot knows how many GPUs there are, by number and by weight, and who holds some aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import JobState, Placement, Sizes, Snapshot
from slurm_fair.model.aside import Aside
from tests.support.builders import job, node, snapshot

NODES = {
    "n1": node(8, gpus_others=3, gpu_type="x"),
    "n2": node(4, gpu_type="y"),
    "n3": node(8, gpu_type="y", usable=False),
}
WEIGHTS = {"x": 0.5, "y": 2.0}


def with_aside(shown: Snapshot, *held: tuple[int, int, int]) -> Snapshot:
    """The same and jobs 7 and 8 left alone, of tenants b and a, with these GPUs."""
    alone = snapshot(jobs=[job(7, tenant="b"), job(8, tenant="a")], nodes={"n1": 8}).jobs
    return replace(shown, aside=Aside(alone, Placement.of([*held]), ("", "")))


def test_m_is_what_managed_jobs_can_have_and_what_those_left_alone_hold() -> None:
    shown = snapshot(nodes=NODES, jobs=[job(1, gpus=2, state=JobState.RUNNING)])
    assert (shown.total_gpus, shown.weighted_gpus) == (9, 9.0)
    more = with_aside(shown, (0, 0, 2), (1, 2, 1))
    assert (more.total_gpus, more.weighted_gpus) == (12, 12.0)


def test_by_weight_each_gpu_counts_by_the_type_of_its_node() -> None:
    shown = snapshot(nodes=NODES, gpu_weights=WEIGHTS)
    assert (shown.total_gpus, shown.weighted_gpus) == (9, 5 * 0.5 + 4 * 2.0)
    assert with_aside(shown, (0, 0, 2), (1, 2, 1)).weighted_gpus == 7 * 0.5 + 5 * 2.0


def test_gpus_held_aside_are_those_of_the_tenants_of_the_jobs() -> None:
    shown = snapshot(nodes=NODES, jobs=[job(1, tenant="a"), job(2, tenant="b"), job(3, tenant="c")])
    assert shown.tenant_gpus_aside.tolist() == [0, 0, 0]
    more = with_aside(shown, (0, 0, 2), (0, 1, 1), (1, 0, 4))
    assert more.tenant_gpus_aside.tolist() == [4, 3, 0]
    assert more.tenant_gpus_aside.dtype == np.int64


def test_the_usual_size_of_an_elastic_job_is_the_one_that_its_user_asked_for() -> None:
    shown = snapshot(jobs=[job(1, gpus=2), job(2, gpus=8), job(3, gpus=1)])
    assert shown.usual_gpus.tolist() == [2, 8, 1]
    sizes = Sizes(np.array([1, 1, 1]), np.array([2, 4, 8]), np.array([False, True, False]))
    assert replace(shown, sizes=sizes).usual_gpus.tolist() == [2, 4, 1]
    assert shown.jobs.gpus.tolist() == [2, 8, 1]
