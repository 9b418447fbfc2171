"""One tick, and jobs that are asked to give their GPUs back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slurm_fair.model import (
    Action,
    LeasePhase,
    Outcome,
    Standing,
    Verb,
)
from slurm_fair.model.ids import pack
from slurm_fair.tick import owed_answers
from tests.builders import lease, leases
from tests.turns import BEGAN, StubCluster, Turn, gated, kinds, running


def test_the_cluster_is_told_whose_answers_are_owed_and_since_when() -> None:
    asked = leases(
        lease(1, {"n1": 1}, phase=LeasePhase.REVOKING, asked=8000.0),
        lease(2, {"n1": 1}, phase=LeasePhase.REVOKING),
        lease(3, {"n1": 1}),
    )
    assert owed_answers(replace(Standing.new(BEGAN), leases=asked)) == {pack(1): 8000.0}


class Prompt(StubCluster):
    """A cluster whose jobs have nothing to save."""

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Whoever is asked answers."""
        outcomes = StubCluster.actuate(self, actions)
        return tuple(outcome._replace(answered=outcome.action.verb is Verb.ASK) for outcome in outcomes)


def test_a_job_that_answers_when_it_is_asked_is_requeued_in_the_same_tick() -> None:
    turn = Turn()
    turn.cluster = Prompt()
    turn.see(gated(1, gpus=8))
    turn.see(running(1, BEGAN + 15, gpus=8), after=10)
    over = turn.standing.leases.end.tolist()[0] - turn.clock.now()
    done = turn.see(running(1, BEGAN + 15, gpus=8), gated(2, gpus=8), after=over)
    assert turn.acts() == ["ask 1", "requeue 1"]
    assert kinds(done)[-2:] == [("asked", 1), ("requeued", 1)]
    asked, requeued = turn.cluster.done
    assert (requeued.submit, requeued.restarts, requeued.record) == (
        asked.submit,
        asked.restarts,
        asked.record,
    )
