"""Figure 6 of Astraea on the virtual cluster: jobs of 6, 3 and 3 GPUs, 40 minutes each, share 6 GPUs by leases of
10 minutes; (b) under finish-time fairness, (c) under long-term GPU-time fairness."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.sim import SimulationResult
from tests.support.simulated import Rounds, arrival, simulated

MINUTE = 60.0
LEASE = 10 * MINUTE
JOBS = [arrival(gpus=gpus, seconds=40 * MINUTE, job_id=f"J{n}") for n, gpus in ((1, 6), (2, 3), (3, 3))]


def gpu_minutes(result: SimulationResult, minutes: float) -> list[float]:
    """The GPU time of each job after so many minutes."""
    runs, until = result.runs, result.epoch + minutes * MINUTE
    seconds = np.clip(np.minimum(runs.end, until) - runs.start, 0.0, None)
    had = np.bincount(runs.job, seconds * runs.gpus, len(result.outcomes)) / MINUTE
    return [float(value) for value in had]


def run(policy: str) -> SimulationResult:
    """All three from the beginning on."""
    paper: dict[str, object] = {"swap_after": 0.0, "early_starts": 0.0} if policy == "astraea" else {}
    how = Rounds(lease=LEASE, interval=10.0)
    return simulated(JOBS, policy, gpus=6, gpus_per_node=6, how=how, settings=paper)


def test_under_ltgf_every_job_has_had_as_much_after_each_half_hour() -> None:
    result = run("astraea")
    assert gpu_minutes(result, 30) == pytest.approx([60.0, 60.0, 60.0])
    assert gpu_minutes(result, 60) == pytest.approx([120.0, 120.0, 120.0])


def test_under_finish_time_fairness_the_large_job_gets_half_of_the_cluster_and_the_small_ones_a_quarter_each() -> (
    None
):
    result = simulated(
        JOBS,
        "gavel-ftf",
        gpus=6,
        gpus_per_node=6,
        how=Rounds(lease=LEASE, rounds="gavel"),
        settings={"alone": "whole"},
    )
    for minutes in (20, 40, 60, 80):
        share = gpu_minutes(result, minutes)
        assert share == pytest.approx([3.0 * minutes, 1.5 * minutes, 1.5 * minutes])
