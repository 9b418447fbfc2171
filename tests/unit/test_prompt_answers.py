"""A job that has nothing to save answers when it is asked, and is requeued in the same tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurm_fair.model import Action, Outcome, Verb
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs
from tests.turns import BEGAN, StubCluster, Turn, gated, running
from tests.virtual_scene import Scene


class Prompt(StubCluster):
    """A cluster whose jobs have nothing to save."""

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Whoever is asked answers."""
        outcomes = StubCluster.actuate(self, actions)
        return tuple(replace(outcome, answered=outcome.action.verb is Verb.ASK) for outcome in outcomes)


def test_a_job_that_answers_when_it_is_asked_is_requeued_in_the_same_tick() -> None:
    turn = Turn()
    turn.cluster = Prompt()
    turn.see(gated(1, gpus=8))
    turn.see(running(1, BEGAN + 15, gpus=8), after=10)
    over = turn.standing.leases.end.tolist()[0] - turn.clock.now()
    done = turn.see(running(1, BEGAN + 15, gpus=8), gated(2, gpus=8), after=over)
    assert turn.acts() == ["ask 1", "requeue 1"]
    assert done.record is not None
    assert [(event.kind, event.key) for event in done.record.events][-2:] == [
        ("asked", pack(1)),
        ("requeued", pack(1)),
    ]
    asked, requeued = turn.cluster.done
    assert (requeued.submit, requeued.restarts, requeued.record) == (
        asked.submit,
        asked.restarts,
        asked.record,
    )


@pytest.mark.parametrize(
    ("checkpoint", "checkpoints", "answers"), [(0, True, True), (5, True, False), (0, False, False)]
)
def test_only_a_job_that_has_nothing_to_wait_for_answers_when_it_is_asked(
    checkpoint: float, checkpoints: bool, answers: bool
) -> None:
    scene = Scene(costs=Costs(checkpoint=checkpoint))
    key = scene.runs(seconds=100, checkpoints=checkpoints)
    assert scene.at(40).act(Verb.ASK, key).answered is answers
