"""The ledger's account of a slurmctld that was killed and came back with its last saved state."""

from __future__ import annotations

import pytest

from slurm_fair.model import JobState
from tests.support.builders import JobSpec, job
from tests.support.ledger_watch import Watch

RUNNING, DONE = JobState.RUNNING, JobState.DONE


def requeued(watch: Watch) -> None:
    """A job that ran from 1000 to 1100 on 4 GPUs and waits since then."""
    watch.look(1000, job(1, gpus=4, submit=990, state=RUNNING, start=1000))
    watch.look(1100, job(1, gpus=4, submit=1100, restarts=1))
    assert watch.of_job(1, "had") == 400


@pytest.mark.parametrize(
    "back",
    [
        job(1, gpus=4, submit=990),
        job(1, gpus=4, submit=1100),
        job(1, gpus=4, submit=1115, restarts=1),
    ],
    ids=["waiting as at first", "its restart is forgotten", "requeued once more"],
)
def test_a_job_whose_restart_slurm_forgot_is_the_same_job(back: JobSpec) -> None:
    watch = Watch()
    requeued(watch)
    watch.look(1120, back)
    assert "finished" not in [kind for kind, _ in watch.kinds()]
    assert [kind for kind, _ in watch.kinds()].count("submitted") == 1
    assert watch.of_job(1, "had") == 400
    assert watch.of_tenant("a", "had") == 400


def test_a_run_that_slurm_believes_to_go_on_is_charged_once() -> None:
    watch = Watch()
    requeued(watch)
    watch.look(1120, job(1, gpus=4, submit=990, state=RUNNING, start=1000))
    assert watch.of_tenant("a", "had") == 480
    watch.look(1130, job(1, gpus=4, submit=1125, restarts=1))
    assert watch.of_tenant("a", "had") == 500
    watch.look(1140, job(1, gpus=4, submit=1125, restarts=1, state=RUNNING, start=1135))
    assert watch.of_tenant("a", "had") == 520
    assert [kind for kind, _ in watch.kinds()].count("submitted") == 1


def test_a_later_job_without_a_restart_is_another_under_the_id() -> None:
    watch = Watch()
    requeued(watch)
    watch.look(1120, job(1, gpus=4, submit=1115))
    assert [kind for kind, _ in watch.kinds()].count("submitted") == 2
    assert watch.of_job(1, "had") == 0
