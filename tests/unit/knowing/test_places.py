"""The GPU types on which jobs run, and their speed there."""

from __future__ import annotations

import numpy as np

from slurm_fair.knowing.places import speeds_here, types_of
from slurm_fair.model import JobState
from tests.support.builders import job, node, snapshot

RUNNING = JobState.RUNNING
SEEN = snapshot(
    nodes={"n1": node(4, gpu_type="b"), "n2": node(4, gpu_type="b"), "n3": node(4, gpu_type="a")},
    jobs=[
        job(1, gpus=4, state=RUNNING, on={"n1": 2, "n2": 2}),
        job(2, gpus=3, state=RUNNING, on={"n2": 1, "n3": 2}),
        job(3, gpus=1, state=RUNNING, on={"n3": 1}),
        job(4, gpus=1),
    ],
)


def test_a_job_runs_on_a_type_where_all_its_gpus_are_of_it() -> None:
    kinds = types_of(SEEN, np.array([3, 2, 1, 0]))
    assert [SEEN.gpu_types[kind] if kind >= 0 else "" for kind in kinds] == ["", "a", "", "b"]


def test_the_slowest_gpu_sets_the_pace() -> None:
    rate = np.array([[1.0, 5.0], [2.0, 3.0], [7.0, 1.0], [1.0, 1.0]])  # on types a and b
    np.testing.assert_array_equal(speeds_here(SEEN, rate), [5.0, 2.0, 7.0, np.nan])
