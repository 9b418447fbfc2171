"""The window at the head of the queue, and how placement-sensitive jobs are."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import Verdict
from slurm_fair.policy import load
from slurm_fair_plugins.hops.window import sensitivity, window_end, with_insensitive
from tests.support.accounts import reasons, verdicts
from tests.support.builders import job
from tests.support.hops_views import sight


def test_the_window_ends_with_the_job_that_fills_the_cluster() -> None:
    assert window_end(np.array([4, 4, 8, 1]), 16) == 3
    assert window_end(np.array([4, 4, 9, 1]), 16) == 3
    assert window_end(np.array([4]), 16) == 1


def test_jobs_behind_the_window_join_a_plan_of_fragments_while_the_window_is_too_sensitive() -> None:
    inside = np.array([True, True, False, False, False, False])
    sensitivity, least = np.array([2.0, 2.0, 1.0, 2.0, 1.0, 1.0]), np.array([8, 8, 1, 1, 3, 1])
    wider = with_insensitive(inside, sensitivity, least, idle=3)
    assert wider.tolist() == [True, True, True, False, False, True]  # 3 GPUs are not fewer than are idle
    assert with_insensitive(inside, sensitivity[::-1].copy(), least, idle=3).tolist() == inside.tolist()


def test_sensitivity_is_speed_alone_over_speed_per_gpu_apart() -> None:
    seen = sight([job(1, gpus=2), job(2, gpus=2)], spread_rate=[[0.5], [1.0]], scaling=[2.0, 2.0])
    assert sensitivity(seen, np.arange(2)).tolist() == pytest.approx([2.0, 1.0])


def test_a_job_outside_the_window_is_told_so() -> None:
    jobs = [job(1, gpus=8), job(2, gpus=6), job(3, gpus=8)]
    seen = sight(jobs, {"n1": 8}, declared_seconds=[9.0, 900.0, 9.0], waited={"1": 9.0, "2": 9.0})
    made = load("hops", {}).plan(seen)
    assert verdicts(seen.snapshot, made)["1"] == Verdict.GRANT
    assert "ask for all GPUs" in reasons(seen.snapshot, made)["3"]
