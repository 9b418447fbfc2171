"""An array's own %limit keeps some of its tasks waiting."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase, Verdict
from slurm_fair.policy import load
from slurm_fair.policy.orders.array_limits import over_array_limit
from tests.support.accounts import verdicts, view
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, snapshot
from tests.support.every_policy import EVERY

NOW = 1000.0
PROMISED = lease(7, {"n1": 1}, task=0, phase=LeasePhase.GRANTED, granted=NOW - 5, end=NOW + 500)
RUNS = lease(7, {"n1": 1}, task=0, end=NOW + 500)
OVER = lease(7, {"n1": 1}, task=0, end=NOW - 1)


def task(number: int, state: JobState = JobState.WAITING, limit: int = 1) -> JobSpec:
    on = {"n1": 1} if state is JobState.RUNNING else None
    return job(7, task=number, array_limit=limit, state=state, on=on, gpus=1)


@pytest.mark.parametrize(
    ("first", "held"),
    [
        pytest.param(task(0), PROMISED, id="promised"),
        pytest.param(task(0, JobState.RUNNING), RUNS, id="running"),
        pytest.param(task(0, JobState.RUNNING), OVER, id="its lease over"),
    ],
)
def test_a_task_with_a_lease_counts_for_the_limit(first: JobSpec, held: LeaseSpec) -> None:
    seen = view(snapshot(time=NOW, nodes={"n1": 8}, jobs=[first, task(1), task(2)]), leases(held))
    assert over_array_limit(seen, np.array([1, 2])).tolist() == [True, True]
    for name in EVERY:
        said = verdicts(seen.snapshot, load(name, {}).plan(seen))
        assert Verdict.GRANT not in (said["7_1"], said["7_2"]), name


def test_of_a_limit_of_two_one_more_may_start_beside_the_promised_one() -> None:
    tasks = [task(number, limit=2) for number in range(3)]
    seen = view(snapshot(time=NOW, nodes={"n1": 8}, jobs=tasks), leases(PROMISED))
    assert over_array_limit(seen, np.array([1, 2])).tolist() == [False, True]
