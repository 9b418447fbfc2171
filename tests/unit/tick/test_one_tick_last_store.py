"""On-demand checkpoints (Astraea, section 5.1.1): a job stores when it loses its lease, and at no other time."""

from __future__ import annotations

import pytest

from slurm_fair.model import Answer
from slurm_fair.model.ids import pack
from tests.support.builders import JobSpec
from tests.support.tick_bench import BEGAN, TickBench, gated, running

TERM, GRACE = 900.0, 60.0


def renewed_thrice() -> tuple[TickBench, JobSpec]:
    """A job on all GPUs that nobody else wants, just after the end of its third lease."""
    bench, job = TickBench(), running(1, BEGAN, gpus=8)
    bench.see(job)
    for _ in range(3):
        bench.see(job, after=TERM - 10.0)
        bench.see(job)
    return bench, job


def revoked() -> tuple[TickBench, JobSpec, JobSpec]:
    """The same job, asked at the end of its fourth lease because another tenant waits."""
    bench, job = renewed_thrice()
    rival = gated(2, gpus=8, tenant="b", gate_until=1e9)
    bench.see(job, rival)
    bench.see(job, rival, after=TERM)
    return bench, job, rival


def test_a_lease_that_is_renewed_costs_its_job_no_checkpoint() -> None:
    bench, _ = renewed_thrice()
    kinds = [event.kind for record in bench.journal.records for event in record.events]
    assert kinds.count("renewed") == 3
    assert "asked" not in kinds
    assert all(record.outcomes == () for record in bench.journal.records)


def test_a_lease_that_is_lost_asks_its_job_once() -> None:
    bench, job, rival = revoked()
    assert "ask 1" in bench.acts()
    bench.see(job, rival)
    assert "ask 1" not in bench.acts()


def test_it_keeps_its_gpus_until_it_has_stored() -> None:
    bench, job, rival = revoked()
    bench.see(job, rival)
    assert bench.acts() == []
    assert bench.cluster.asked[-1].keys() == {pack(1)}
    bench.see(running(1, BEGAN, gpus=8, acknowledged=Answer.SAVED), rival)
    assert "requeue 1" in bench.acts()


@pytest.mark.parametrize("seconds", [GRACE - 1.0, GRACE + 1.0])
def test_an_iteration_that_takes_longer_than_the_grace_is_not_waited_for(seconds: float) -> None:
    """It goes on from what it stored last: the step that was not finished is done again."""
    bench, job, rival = revoked()
    bench.see(job, rival, after=seconds)
    assert ("requeue 1" in bench.acts()) == (seconds > GRACE)
