"""Acts by hand on a virtual cluster: each does what the job's state allows, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Blocked, JobState, Verb
from slurm_fair.model.ids import pack
from slurm_fair.sim import Submission
from slurm_fair.trace import uniform
from tests.support.virtual_scene import T0, Scene


def ungated(scene: Scene, **more: Any) -> int:
    """The key of a job that no gate of ours keeps."""
    return scene.submit(gated=False, **more)


# -- submissions ----------------------------------------------------------------------------------------------


def test_a_job_begins_behind_our_gate_and_one_without_it_starts_at_once() -> None:
    scene = Scene()
    gated, free = scene.submit(), ungated(scene)
    assert (scene.job(gated)["state"], scene.job(gated)["gated"]) == (JobState.WAITING, True)
    assert (scene.job(free)["state"], scene.job(free)["start"]) == (JobState.RUNNING, T0)
    assert scene.at(100).ended(free) == 100


def test_a_job_is_called_as_its_tenant_and_its_declared_time_is_the_true_one_unless_said() -> None:
    scene = Scene()
    said = scene.submit(tenant="vision", user="eve", declared=9.0, weight=2.0)
    unsaid = scene.submit(tenant="vision")
    people, jobs = scene.cluster.population, scene.cluster.jobs
    assert [people.users[row] for row in jobs.user[:2].tolist()] == ["eve", "vision"]
    assert jobs.declared[:2].tolist() == [9.0, 100.0]
    assert [scene.job(key)["weight"] for key in (said, unsaid)] == [2.0, 1.0]


def test_the_tasks_of_an_array_are_jobs_that_share_one_record() -> None:
    scene = Scene()
    number = scene.hands.submit(Submission(gpus=1, tasks=(2, 5)))
    alone = scene.hands.submit(Submission(gpus=1))
    assert alone == number + 1
    jobs = scene.look().jobs
    assert jobs.key.tolist() == [pack(number, 2), pack(number, 5), pack(alone)]
    assert jobs.record.tolist() == [number, number, alone]


def test_a_gate_that_opens_by_itself_lets_the_job_start() -> None:
    scene = Scene()
    key = scene.submit(gate_seconds=30.0)
    assert scene.job(key)["gate_until"] == T0 + 30
    assert scene.at(29).job(key)["state"] == JobState.WAITING
    assert scene.at(31).job(key)["start"] == T0 + 30


def test_a_begin_time_of_its_own_keeps_a_job_until_then() -> None:
    scene = Scene()
    key = ungated(scene, begin=T0 + 50)
    assert scene.job(key)["blocked"] == Blocked.OWN_BEGIN
    assert scene.at(51).job(key)["start"] == T0 + 50
    past = ungated(scene, begin=T0 + 51)
    assert scene.job(past)["state"] == JobState.RUNNING, "a time that is over keeps nobody"


def test_a_job_that_leaves_slowly_holds_its_gpus_until_it_is_gone() -> None:
    scene = Scene(machines=uniform(8, 8))
    slow = ungated(scene, leaves_in=20.0)
    next_one = ungated(scene)
    assert scene.at(110).job(slow)["state"] == JobState.ENDING
    assert scene.job(next_one)["state"] == JobState.WAITING
    assert scene.at(121).job(next_one)["start"] == T0 + 120


def test_a_job_that_reports_nothing_tells_of_no_progress() -> None:
    scene = Scene()
    for reports in (True, False):
        key = scene.submit(reports=reports)
        scene.act(Verb.OPEN, key, "n1" if reports else "n2")
    told = scene.at(40).look().told
    assert told is not None
    assert told.done_seconds[0] == 40
    assert math.isnan(told.done_seconds[1]), told.done_seconds


def test_further_sizes_are_those_beside_the_one_that_was_asked_for() -> None:
    scene = Scene()
    key = scene.submit(gpus=2, gpus_choices=(4, 1, 2))
    assert scene.cluster.population.elastic
    assert (scene.job(key)["gpus"], scene.job(key)["usual_gpus"]) == (2, 2)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Submission(gpus=17), "a job wants 17 GPUs and the cluster has 16"),
        (Submission(gpu_type="a100"), "no GPUs of type 'a100': there are gpu"),
    ],
)
def test_a_job_that_the_cluster_could_never_run_is_refused_and_leaves_nothing(
    job: Submission, words: str
) -> None:
    scene = Scene()
    with pytest.raises(InputError, match=words):
        scene.hands.submit(job)
    assert len(scene.look().jobs) == 0
    assert scene.cluster.population.tenants == ()


def test_a_job_may_take_the_whole_cluster() -> None:
    scene = Scene()
    key = ungated(scene, gpus=16)
    assert scene.job(key)["state"] == JobState.RUNNING


# -- cancel, finish, begin --------------------------------------------------------------------------------------


def test_who_waits_behind_a_cancelled_job_starts_at_that_instant() -> None:
    scene = Scene(machines=uniform(8, 8))
    first, second, third = (ungated(scene) for _ in range(3))
    scene.at(10).hands.cancel(second)
    scene.at(20).hands.cancel(first)
    assert scene.job(third)["start"] == T0 + 20
    assert [run.word for run in scene.books.of(first)] == ["CANCELLED"]
    assert list(scene.books.of(second)) == [], "it never ran"


def test_a_job_that_is_over_is_not_cancelled_again() -> None:
    scene = Scene()
    key = scene.runs()
    scene.at(200).hands.cancel(key)
    assert [run.word for run in scene.books.of(key)] == ["COMPLETED"]


def test_a_running_job_may_finish_early_and_one_that_waits_does_not() -> None:
    scene = Scene()
    running, waiting = scene.runs(), scene.submit()
    scene.at(40)
    for key in (running, waiting):
        scene.hands.finish(key)
    assert scene.ended(running) == 40
    assert scene.job(waiting)["state"] == JobState.WAITING
    scene.at(50).hands.finish(running)
    assert scene.ended(running) == 40


def test_a_begin_time_takes_the_place_of_our_gate_and_moves_no_job_that_runs() -> None:
    scene = Scene()
    waiting, running = scene.submit(), scene.runs(node="n2")
    for key in (waiting, running):
        scene.hands.move_begin(key, T0 + 30)
    seen = scene.job(waiting)
    assert (seen["gated"], seen["blocked"], seen["gate_until"]) == (False, Blocked.OWN_BEGIN, T0 + 30)
    assert scene.job(running)["start"] == T0
    scene.at(10).hands.move_begin(waiting, T0 + 20)
    assert scene.at(21).job(waiting)["start"] == T0 + 20


def test_a_begin_time_that_is_over_starts_the_job_at_once() -> None:
    scene = Scene().at(50)
    key = scene.submit()
    scene.hands.move_begin(key, T0)
    assert scene.job(key)["start"] == T0 + 50


# -- holds ----------------------------------------------------------------------------------------------------


def test_a_hold_keeps_a_job_without_a_gate_until_it_is_taken_away() -> None:
    scene = Scene(machines=uniform(8, 8))
    first, held, other = (ungated(scene) for _ in range(3))
    scene.hands.hold(held)
    assert scene.job(held)["blocked"] == Blocked.USER_HOLD
    scene.at(150)
    assert scene.job(other)["start"] == T0 + 100, "others pass it"
    scene.hands.release(held)
    assert scene.at(201).job(held)["start"] == T0 + 200
    assert scene.ended(first) == 100


def test_an_admins_hold_takes_the_place_of_the_users() -> None:
    scene = Scene()
    key = scene.submit()
    scene.hands.hold(key)
    scene.hands.hold(key, by_admin=True)
    assert scene.job(key)["blocked"] == Blocked.ADMIN_HOLD
    scene.hands.release(key)
    assert scene.job(key)["blocked"] == Blocked.NOT_BLOCKED
    scene.hands.release(key)
    assert scene.job(key)["blocked"] == Blocked.NOT_BLOCKED


def test_a_job_that_runs_runs_on_though_it_is_held() -> None:
    scene = Scene()
    key = scene.runs()
    scene.hands.hold(key)
    assert scene.at(200).ended(key) == 100
    scene.hands.hold(key)


# -- nodes ----------------------------------------------------------------------------------------------------


def test_a_drained_node_takes_a_waiting_job_when_it_is_back() -> None:
    scene = Scene(machines=uniform(8, 8))
    scene.hands.drain("n1")
    key = ungated(scene)
    assert scene.job(key)["state"] == JobState.WAITING
    scene.at(30).hands.resume("n1")
    assert scene.job(key)["start"] == T0 + 30


def test_gpus_are_lent_and_given_back_as_far_as_there_are_any() -> None:
    scene = Scene(machines=uniform(8, 8))
    running = scene.runs(gpus=6, seconds=1e9)
    scene.hands.lend("n1", 5)
    assert scene.look().total_gpus == 6, "two were free"
    scene.hands.lend("n1", -50)
    assert scene.look().total_gpus == 8
    assert scene.job(running)["state"] == JobState.RUNNING


@pytest.mark.parametrize("act", ["drain", "fail", "resume"])
def test_a_node_that_is_not_there_is_refused_by_name(act: str) -> None:
    with pytest.raises(InputError, match="no node 'n9' in the virtual cluster"):
        getattr(Scene().hands, act)("n9")


def test_gpus_of_a_node_that_is_not_there_cannot_be_lent() -> None:
    with pytest.raises(InputError, match="no node 'n9' in the virtual cluster"):
        Scene().hands.lend("n9", 1)


@pytest.mark.parametrize("act", ["cancel", "finish", "hold", "release"])
def test_a_job_that_is_not_there_is_refused_by_its_key(act: str) -> None:
    scene = Scene()
    scene.submit()
    for key in (pack(9), -1, 0):
        with pytest.raises(InputError, match=f"no job with key {key} in the virtual cluster"):
            getattr(scene.hands, act)(key)
