"""An act of unknown outcome on a whole array leaves each of its waiting tasks alone for a while."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Standing, label
from slurm_fair.model.ids import pack
from slurm_fair.reconcile.retries import overlaid
from tests.support.builders import job, lease, leases, snapshot

GATE = {"gated": True, "gate_until": 900.0}
JOBS = [
    job(6),
    job(7, task=1, record=7, **GATE),
    job(7, task=2, record=7, **GATE),
    job(7, task=3, record=73, **GATE),
    job(7, task=4, record=74),
    job(7, task=5, record=75, state=JobState.RUNNING, on={"n1": 1}),
    job(8, task=1, record=8),
]


@pytest.mark.parametrize(
    ("unsettled", "rest"),
    [
        ({pack(7): 99.0}, ["7_1", "7_2", "7_3"]),
        ({pack(7, 2): 99.0}, ["7_2"]),
        ({pack(6): 99.0, pack(8): 98.0}, ["6", "8_1"]),
        ({pack(5): 99.0}, []),
    ],
    ids=["an array", "a task", "a job and an array without a gate", "who is gone"],
)
def test_an_unknown_outcome_of_an_array_is_one_of_its_tasks(
    unsettled: Mapping[int, float], rest: list[str]
) -> None:
    """One with a record of its own and no gate is left out: it has yet to get its gate."""
    seen = snapshot(time=100.0, jobs=JOBS)
    jobs = overlaid(seen, Standing.new(100.0)._replace(unsettled=unsettled)).jobs
    assert [label(key) for key in jobs.key[jobs.blocked == Blocked.UNSETTLED].tolist()] == rest


def test_a_task_that_was_promised_gpus_is_followed() -> None:
    held = leases(lease(7, {"n1": 1}, task=1, phase=LeasePhase.GRANTED))
    standing = Standing.new(100.0)._replace(unsettled={pack(7): 99.0}, leases=held)
    jobs = overlaid(snapshot(time=100.0, jobs=JOBS), standing).jobs
    assert jobs.blocked[jobs.key == pack(7, 1)].tolist() == [Blocked.NOT_BLOCKED]
