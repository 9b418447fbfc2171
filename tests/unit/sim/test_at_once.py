"""A job with nothing to save is requeued in the tick that asks it, and no other one."""

from __future__ import annotations

from slurm_fair.model import JobState, Result, Verb
from slurm_fair.sim import Costs, RequeuesAtOnce
from tests.support.virtual_scene import Scene


def asked(scene: Scene, *keys: int) -> list[tuple[Verb, int, Result]]:
    """The acts on these jobs when they are asked, in order."""
    acts = [scene.action(Verb.ASK, key) for key in keys]
    outcomes = RequeuesAtOnce(scene.cluster).actuate(acts)
    return [(each.action.verb, each.action.key, each.result) for each in outcomes]


def test_those_who_have_nothing_to_save_are_requeued_behind_all_that_was_asked() -> None:
    scene = Scene()
    first, second = scene.runs(node="n1"), scene.runs(node="n2")
    done = asked(scene.at(40), first, second)
    assert done == [
        (Verb.ASK, first, Result.DONE), (Verb.ASK, second, Result.DONE),
        (Verb.REQUEUE, first, Result.DONE), (Verb.REQUEUE, second, Result.DONE),
    ]  # fmt: skip
    assert [scene.job(key)["state"] for key in (first, second)] == [JobState.WAITING, JobState.WAITING]


def test_a_job_that_saves_first_and_a_job_that_waits_are_not_requeued() -> None:
    scene = Scene(costs=Costs(checkpoint=30.0))
    saves = scene.runs(node="n1")
    assert asked(scene.at(40), saves) == [(Verb.ASK, saves, Result.DONE)]
    assert scene.job(saves)["state"] == JobState.RUNNING
    waits = scene.submit()
    ((verb, _, result),) = asked(scene, waits)
    assert (verb, result is Result.DONE) == (Verb.ASK, False)


def test_without_acts_nothing_is_done_and_a_look_is_that_of_the_cluster() -> None:
    scene = Scene()
    key = scene.runs()
    port = RequeuesAtOnce(scene.at(40).cluster)
    assert port.actuate([]) == ()
    assert port.observe({}).jobs.key.tolist() == scene.look().jobs.key.tolist() == [key]
    assert port.acts
