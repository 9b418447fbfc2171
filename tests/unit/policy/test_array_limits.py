"""An array's own %limit keeps some of its tasks waiting."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Snapshot, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import load
from slurm_fair.policy.orders.array_limits import over_array_limit, without_limited_tasks
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


def shown(*jobs: JobSpec) -> Snapshot:
    return snapshot(time=NOW, nodes={"n1": 8}, jobs=jobs)


def limited(seen: Snapshot, *held: LeaseSpec, resting: Snapshot | None = None) -> list[str]:
    """The tasks that their array's limit blocks, in both snapshots alike."""
    both = without_limited_tasks(seen, resting or seen, leases(*held))
    of_each = [
        np.array(labels(one.jobs.key))[one.jobs.blocked == Blocked.ARRAY_LIMIT].tolist() for one in both
    ]
    assert of_each[0] == of_each[1]
    return list(of_each[0])


def test_the_first_tasks_of_an_array_wait_for_gpus_and_the_others_are_blocked() -> None:
    tasks = [task(number, limit=2) for number in range(4)]
    assert limited(shown(*tasks, job(8, task=0), job(9))) == ["7_2", "7_3"]


def test_each_array_has_its_own_limit() -> None:
    others = [job(8, task=number, array_limit=3) for number in range(4)]
    assert limited(shown(*[task(number) for number in range(2)], *others)) == ["7_1", "8_3"]


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED])
def test_a_task_that_has_gpus_takes_up_the_limit(state: JobState) -> None:
    first = job(7, task=2, array_limit=2, state=state, on={"n1": 1}, gpus=1)
    assert limited(shown(task(0, limit=2), task(1, limit=2), first)) == ["7_1"]


def test_a_task_that_is_over_takes_up_nothing_though_it_has_a_lease_still() -> None:
    over = job(7, task=0, array_limit=1, state=JobState.DONE, end=NOW - 1)
    assert limited(shown(over, task(1), task(2)), RUNS) == ["7_2"]


def test_what_was_promised_is_not_blocked_and_takes_up_the_limit() -> None:
    held = lease(7, {"n1": 1}, task=2, phase=LeasePhase.GRANTED, granted=NOW - 5, end=NOW + 500)
    assert limited(shown(*[task(number) for number in range(3)]), held) == ["7_0", "7_1"]


@pytest.mark.parametrize("why", [Blocked.USER_HOLD, Blocked.BACKOFF, Blocked.NODES, Blocked.UNSETTLED])
def test_a_task_that_could_not_start_anyway_leaves_its_place_to_the_next(why: Blocked) -> None:
    """It keeps its own obstacle."""
    tasks = [task(number) for number in range(3)]
    resting = shown(job(7, task=0, array_limit=1, gpus=1, blocked=why), *tasks[1:])
    assert limited(resting) == ["7_2"]
    _, after = without_limited_tasks(resting, resting, leases())
    assert after.jobs.blocked.item(0) == why
    one, other = without_limited_tasks(shown(*tasks), resting, leases())
    assert [one.jobs.blocked.item(2), other.jobs.blocked.item(2)] == [Blocked.ARRAY_LIMIT] * 2


def test_a_look_that_was_recorded_comes_out_the_same_once_more() -> None:
    once, _ = without_limited_tasks(both := shown(*[task(number) for number in range(4)]), both, leases(RUNS))
    assert without_limited_tasks(once, once, leases(RUNS)) == (once, once)


def test_where_no_array_has_a_limit_nothing_is_made() -> None:
    seen = shown(job(7, task=0), job(7, task=1))
    one, other = without_limited_tasks(seen, seen, leases())
    assert one is seen
    assert other is seen
