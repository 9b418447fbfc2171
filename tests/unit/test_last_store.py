"""On-demand checkpoints (Astraea, section 5.1.1): a job stores when it loses its lease, and at no other time."""

from __future__ import annotations

import pytest

from slurm_fair.model import Answer
from slurm_fair.model.ids import pack
from tests.support.builders import JobSpec
from tests.support.turns import BEGAN, Turn, gated, running

TERM, GRACE = 900.0, 60.0


def renewed_thrice() -> tuple[Turn, JobSpec]:
    """A job on all GPUs that nobody else wants, just after the end of its third lease."""
    turn, job = Turn(), running(1, BEGAN, gpus=8)
    turn.see(job)
    for _ in range(3):
        turn.see(job, after=TERM - 10.0)
        turn.see(job)
    return turn, job


def revoked() -> tuple[Turn, JobSpec, JobSpec]:
    """The same job, asked at the end of its fourth lease because another tenant waits."""
    turn, job = renewed_thrice()
    rival = gated(2, gpus=8, tenant="b", gate_until=1e9)
    turn.see(job, rival)
    turn.see(job, rival, after=TERM)
    return turn, job, rival


def test_a_lease_that_is_renewed_costs_its_job_no_checkpoint() -> None:
    turn, _ = renewed_thrice()
    kinds = [event.kind for record in turn.journal.records for event in record.events]
    assert kinds.count("renewed") == 3
    assert "asked" not in kinds
    assert all(record.outcomes == () for record in turn.journal.records)


def test_a_lease_that_is_lost_asks_its_job_once() -> None:
    turn, job, rival = revoked()
    assert "ask 1" in turn.acts()
    turn.see(job, rival)
    assert "ask 1" not in turn.acts()


def test_it_keeps_its_gpus_until_it_has_stored() -> None:
    turn, job, rival = revoked()
    turn.see(job, rival)
    assert turn.acts() == []
    assert turn.cluster.asked[-1].keys() == {pack(1)}
    turn.see(running(1, BEGAN, gpus=8, acknowledged=Answer.SAVED), rival)
    assert "requeue 1" in turn.acts()


@pytest.mark.parametrize("seconds", [GRACE - 1.0, GRACE + 1.0])
def test_an_iteration_that_takes_longer_than_the_grace_is_not_waited_for(seconds: float) -> None:
    """What it stored last is then what it goes on from: the step that was not finished is done again."""
    turn, job, rival = revoked()
    turn.see(job, rival, after=seconds)
    assert ("requeue 1" in turn.acts()) == (seconds > GRACE)
