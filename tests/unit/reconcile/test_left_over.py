"""The queue that a plan left over: what is news at the next look, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Leases, Snapshot
from slurm_fair.model.columns import find
from slurm_fair.reconcile.left_over import left_over
from tests.support.builders import job, lease, leases, snapshot

RUNS: dict[str, Any] = {"gpus": 4, "state": JobState.RUNNING, "start": 100, "on": {"n1": 4}}
PROMISED = leases(lease(1, {"n1": 4}), lease(2, {"n1": 4}, phase=LeasePhase.GRANTED))
WAITS, STARTED = job(2, gpus=4), job(2, gpus=4, state=JobState.RUNNING, start=200, on={"n1": 4})
NODES = {"n1": 8, "n2": 8}
SIZES = [
    (1, 3, 1, 1),
    (2, 1, 2, 1),
    (1, 1, 3, 1),
    (3, 1, 1, 1),
    (2, 1, 1, 2),
    (1, 2, 2, 1),
    (4, 2, 4, 1),
    (3, 4, 3, 1),
]


def seen(*jobs: Any, nodes: dict[str, int] | None = None) -> Snapshot:
    return snapshot(time=1000.0, nodes=nodes or NODES, jobs=[job(1, **RUNS), *jobs])


def checksum(shown: Snapshot, held: Leases = PROMISED) -> int:
    return left_over(shown, held, find(shown.jobs.key, held.key))


AFTER_THE_PLAN = checksum(seen(WAITS, job(3)))


def test_a_job_that_starts_as_promised_is_no_news() -> None:
    held = leases(lease(1, {"n1": 4}), lease(2, {"n1": 4}))
    assert checksum(seen(STARTED, job(3)), held) == AFTER_THE_PLAN != 0


@pytest.mark.parametrize(
    ("shown", "held"),
    [
        (seen(WAITS, job(3), job(4)), PROMISED),
        (seen(WAITS), PROMISED),
        (seen(WAITS, job(3, blocked=Blocked.USER_HOLD)), PROMISED),
        (seen(WAITS, job(3)), leases(lease(1, {"n1": 4}))),
        (seen(WAITS, job(3), nodes={"n1": 8, "n2": 7}), PROMISED),
        (seen(WAITS, job(3, gpus=2)), PROMISED),
        (seen(WAITS, job(3, restarts=1)), PROMISED),
        (seen(WAITS, job(3, cpus=7)), PROMISED),
        (snapshot(nodes=NODES, jobs=[job(1, **RUNS, requeueable=False), WAITS, job(3)]), PROMISED),
    ],
    ids=["arrival", "cancel", "hold", "end of a lease", "node", "size", "requeue", "CPUs", "no stop"],
)
def test_news(shown: Snapshot, held: Leases) -> None:
    assert checksum(shown, held) != AFTER_THE_PLAN


def test_wishes_that_change_among_jobs_are_news() -> None:
    """Keys of jobs are equally far apart: the sums of what they wish must not be alike for that."""
    several = [
        checksum(seen(WAITS, *(job(3 + at, gpus=gpus) for at, gpus in enumerate(sizes)))) for sizes in SIZES
    ]
    assert len(set(several)) == len(SIZES)


def test_who_waits_is_not_taken_for_who_has_a_lease() -> None:
    """The same keys in the same order: job 1 was requeued, and job 3 began to run."""
    shown = snapshot(nodes=NODES, jobs=[job(1, gpus=4), WAITS, job(3)])
    assert checksum(shown, leases(lease(2, {"n1": 4}), lease(3, {"n1": 1}))) != checksum(
        shown, leases(lease(1, {"n1": 4}), lease(2, {"n1": 4}), lease(3, {"n1": 1}))
    )


def test_nothing_at_all_has_a_checksum_too() -> None:
    nothing = snapshot(time=0.0, nodes={}, jobs=[])
    assert left_over(nothing, Leases.none(), np.array([], dtype=np.int64)) != 0
