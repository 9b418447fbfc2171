"""The virtual cluster, worked out by hand: what changing hands costs, what befalls nodes, who is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Action, Blind, Blocked, Gate, JobState, Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs, Hitch, Manners, RequeuesAtOnce, Submission
from slurm_fair.trace import uniform
from tests.support.veil import Veil
from tests.support.virtual_scene import T0, Scene

# -- what changing hands costs ----------------------------------------------------------------------------------


def test_a_job_left_alone_takes_its_run_time_and_nothing_is_lost() -> None:
    scene = Scene(costs=Costs(checkpoint=5, restart=20, requeue_delay=60))
    key = scene.runs(seconds=100)
    assert scene.at(101).ended(key) == 100
    assert scene.lost == 0
    assert scene.cluster.tally.held_gpu_seconds == 800


def test_checkpoint_restart_and_requeue_delay_each_cost_their_seconds() -> None:
    scene = Scene(costs=Costs(checkpoint=5, restart=20, requeue_delay=60))
    key = scene.runs(seconds=100)
    scene.at(40).act(Verb.ASK, key)
    assert scene.at(44.9).job(key)["acknowledged"] == 0
    assert scene.at(45).job(key)["acknowledged"] == 1
    scene.act(Verb.REQUEUE, key)
    assert scene.job(key)["blocked"] == Blocked.REQUEUED
    scene.act(Verb.OPEN, key, "n2")
    assert scene.at(104.9).job(key)["state"] == JobState.WAITING
    assert scene.at(105).job(key)["start"] == T0 + 105
    assert scene.at(300).ended(key) == 105 + 20 + 60
    assert scene.lost == pytest.approx(8 * (5 + 20))
    assert scene.cluster.tally.held_gpu_seconds == pytest.approx(8 * (45 + 80))


@pytest.mark.parametrize(
    ("checkpoint", "checkpoints", "at_once"), [(0, True, True), (5, True, False), (0, False, False)]
)
def test_only_a_job_that_has_nothing_to_wait_for_is_requeued_as_soon_as_it_is_asked(
    checkpoint: float, checkpoints: bool, at_once: bool
) -> None:
    scene = Scene(costs=Costs(checkpoint=checkpoint))
    key = scene.runs(seconds=100, checkpoints=checkpoints)
    asked, *more = RequeuesAtOnce(scene.at(40).cluster).actuate([scene.action(Verb.ASK, key)])
    assert asked.result is Result.DONE
    assert [outcome.action.verb for outcome in more] == [Verb.REQUEUE] * at_once
    assert (scene.job(key)["state"] == JobState.WAITING) is at_once


def test_a_job_that_is_asked_in_vain_goes_on_after_its_patience() -> None:
    scene = Scene(costs=Costs(checkpoint=5), manners=Manners(patience_seconds=30))
    key = scene.runs(seconds=100)
    scene.at(40).act(Verb.ASK, key)
    assert scene.at(200).ended(key) == 100 + 5 + 30
    assert scene.lost == pytest.approx(8 * 35)


def test_a_job_that_does_not_checkpoint_hears_nothing_and_loses_all_when_it_is_requeued() -> None:
    scene = Scene(costs=Costs(restart=20))
    key = scene.runs(seconds=100, checkpoints=False)
    scene.at(40).act(Verb.ASK, key)
    assert scene.at(50).job(key)["acknowledged"] == 0
    scene.act(Verb.REQUEUE, key)
    scene.act(Verb.OPEN, key, "n1")
    assert scene.at(300).ended(key) == 50 + 20 + 100
    assert scene.lost == pytest.approx(8 * (50 + 20))


def test_every_start_costs_and_one_that_resumes_costs_more() -> None:
    scene = Scene(costs=Costs(start=7, restart=20))
    key = scene.runs(seconds=100)
    scene.at(47).act(Verb.ASK, key)  # 40 s done
    scene.act(Verb.REQUEUE, key)
    scene.act(Verb.OPEN, key, "n1")
    assert scene.at(300).ended(key) == 47 + 7 + 20 + 60
    assert scene.lost == pytest.approx(8 * (7 + 7 + 20))


def test_a_run_stopped_while_it_restarts_has_lost_only_the_time_it_was_there() -> None:
    scene = Scene(costs=Costs(restart=20))
    key = scene.runs(seconds=100)
    scene.at(40).act(Verb.ASK, key)
    scene.act(Verb.REQUEUE, key)
    scene.act(Verb.OPEN, key, "n1")
    scene.at(46).act(Verb.ASK, key)
    scene.act(Verb.REQUEUE, key)
    scene.act(Verb.OPEN, key, "n1")
    assert scene.at(300).ended(key) == 46 + 20 + 60
    assert scene.lost == pytest.approx(8 * (6 + 20))


# -- nodes ------------------------------------------------------------------------------------------------------


def test_a_node_that_fails_takes_the_work_since_the_last_checkpoint_with_it() -> None:
    scene = Scene(costs=Costs(restart=20))
    key = scene.runs(seconds=100)
    scene.at(30).act(Verb.ASK, key)
    scene.act(Verb.REQUEUE, key)
    scene.act(Verb.OPEN, key, "n1")  # from 50 on it makes progress beyond its 30 seconds
    scene.at(65).hands.fail("n1")
    seen = scene.job(key)
    assert (seen["state"], seen["restarts"], seen["gated"]) == (JobState.WAITING, 2, True)
    assert scene.lost == pytest.approx(8 * (20 + 15))
    scene.act(Verb.OPEN, key, "n2")
    assert scene.at(300).ended(key) == 65 + 20 + 70
    assert [run.word for run in scene.books.of(key)] == ["REQUEUED", "NODE_FAIL", "COMPLETED"]


def test_books_that_are_taken_over_tell_only_of_runs_that_no_look_showed_and_of_lost_ones() -> None:
    scene = Scene()
    scene.runs(seconds=40)
    lost = scene.runs(seconds=100, node="n2")
    assert scene.at(10).books.hand_over(T0 + 10) == []
    unseen = scene.at(41).runs(seconds=5)
    scene.at(50).hands.fail("n2")
    over = scene.books.hand_over(T0 + 60)
    assert [(run.key, run.word) for run in over] == [(unseen, "COMPLETED"), (lost, "NODE_FAIL")]
    assert scene.books.over == []


def test_a_gang_is_lost_whole_and_its_other_nodes_are_free_at_once() -> None:
    scene = Scene()
    gang = scene.submit(gpus=16, nodes=2, gpus_per_node=8)
    scene.act(Verb.OPEN, gang, "n1", "n2")
    small = scene.submit(gpus=8)
    scene.act(Verb.OPEN, small, "n2")
    assert scene.job(small)["state"] == JobState.WAITING
    scene.at(10).hands.fail("n1")
    assert scene.job(gang)["state"] == JobState.WAITING
    assert scene.job(small)["start"] == T0 + 10
    assert scene.look().total_gpus == 8


def test_a_job_that_may_not_be_requeued_dies_with_its_node() -> None:
    scene = Scene(manners=Manners(lists_ended_seconds=60))
    key = scene.runs(requeueable=False)
    assert scene.act(Verb.REQUEUE, key).result is Result.REFUSED
    scene.at(10).hands.fail("n1")
    snapshot = scene.look()
    assert snapshot.jobs.state.tolist() == [JobState.DONE]
    assert snapshot.reasons == ("NODE_FAIL",)


def test_an_ungated_job_that_can_no_longer_make_its_deadline_is_over_and_the_next_one_starts() -> None:
    scene = Scene(manners=Manners(lists_ended_seconds=60))
    scene.runs(), scene.runs(node="n2")
    late = scene.submit(gated=False, deadline=T0 + 190, time_limit=100)
    other = scene.submit(gated=False, deadline=T0 + 900, time_limit=100)
    snapshot = scene.at(100).look()
    assert snapshot.reasons[snapshot.jobs.key.tolist().index(late)] == "DEADLINE"
    assert (scene.job(late)["state"], scene.job(other)["start"]) == (JobState.DONE, T0 + 100)


@pytest.mark.parametrize(
    ("hitch", "result", "later", "done"),
    [
        (Hitch.NEVER, Result.REFUSED, False, False),
        (Hitch.LATER, Result.REFUSED, True, False),
        (Hitch.LOST, Result.UNKNOWN, False, False),
        (Hitch.UNHEARD, Result.UNKNOWN, False, True),
    ],
)
def test_what_befalls_an_act_is_its_outcome_and_only_what_arrives_is_done(
    hitch: Hitch, result: Result, later: bool, done: bool
) -> None:
    befalls = {Verb.REQUEUE: hitch}
    scene = Scene(manners=Manners(hitches=lambda action: befalls.get(action.verb)))
    key = scene.runs()
    outcome = scene.act(Verb.REQUEUE, key)
    assert (outcome.result, outcome.later) == (result, later)
    assert (scene.job(key)["state"] == JobState.WAITING) is done
    assert scene.cluster.tally.preemptions == int(done)


def test_a_drained_node_keeps_what_runs_there_and_takes_nothing_new() -> None:
    scene = Scene()
    key = scene.runs(gpus=4, seconds=100)
    scene.at(10).hands.drain("n1")
    other = scene.submit(gpus=4)
    scene.act(Verb.OPEN, other, "n1")
    assert scene.at(150).ended(key) == 100
    assert scene.job(other)["state"] == JobState.WAITING
    scene.hands.resume("n1")
    assert scene.job(other)["start"] == T0 + 150


def test_a_node_lost_while_a_job_leaves_it_ends_the_leaving_once() -> None:
    scene = Scene()
    key = scene.runs(leaves_in=5.0)
    scene.at(10).act(Verb.REQUEUE, key)
    assert scene.job(key)["state"] == JobState.ENDING
    scene.at(12).hands.fail("n1")
    assert scene.at(30).job(key)["state"] == JobState.WAITING
    assert len(list(scene.books.of(key))) == 1


def test_gpus_lent_to_others_are_no_capacity_and_keep_jobs_waiting_until_they_are_back() -> None:
    scene = Scene()
    scene.hands.lend("n1", 5)
    key = scene.submit(gpus=4)
    scene.act(Verb.OPEN, key, "n1")
    assert scene.look().total_gpus == 11
    assert scene.job(key)["state"] == JobState.WAITING
    scene.at(5).hands.lend("n1", -9)
    assert scene.look().total_gpus == 16
    assert scene.job(key)["start"] == T0 + 5


# -- who waits for what -----------------------------------------------------------------------------------------


def test_jobs_without_a_gate_are_served_strictly_in_the_order_of_their_submission() -> None:
    scene = Scene()
    first = scene.submit(gpus=12, seconds=100, gated=False)
    wide = scene.at(1).submit(gpus=16, seconds=100, gated=False)
    small = scene.at(2).submit(gpus=2, seconds=100, gated=False)
    assert scene.job(small)["state"] == JobState.WAITING, "it would fit beside the first, but is not its turn"
    scene.at(400)
    assert [scene.ended(key) for key in (first, wide, small)] == [100, 200, 300]


def test_a_gang_without_a_gate_lies_on_as_few_nodes_as_can_be() -> None:
    scene = Scene(machines=uniform(24, 8))
    scene.submit(gpus=6, gated=False)
    scene.submit(gpus=2, gated=False)
    scene.submit(gpus=10, gated=False)
    sites = scene.look().held.sites
    assert sites[0][0][0] == sites[1][0][0], "the small one fills the gap"
    assert sorted(gpus for _, gpus in sites[2]) == [2, 8]


@pytest.mark.parametrize("by_admin", [False, True], ids=["its user", "an admin"])
def test_a_held_job_waits_until_it_is_released(by_admin: bool) -> None:
    scene = Scene()
    blocker = scene.submit(gpus=16, seconds=10, gated=False)
    key = scene.submit(gated=False)
    scene.hands.hold(key, by_admin)
    assert scene.at(20).ended(blocker) == 10
    wanted = Blocked.ADMIN_HOLD if by_admin else Blocked.USER_HOLD
    assert (scene.job(key)["state"], scene.job(key)["blocked"]) == (JobState.WAITING, wanted)
    scene.at(30).hands.release(key)
    assert scene.job(key)["start"] == T0 + 30


def test_a_begin_gate_opens_when_its_time_comes_and_a_renewed_one_later() -> None:
    scene = Scene(manners=Manners(Gate.BEGIN))
    plain, renewed = (scene.submit(gpus=2, gate_seconds=60.0) for _ in range(2))
    scene.at(50).act(Verb.CLOSE, renewed, until=T0 + 200)
    scene.at(210)
    assert [run.start - T0 for run in scene.books.of(plain)] == [60]
    assert scene.job(renewed)["start"] == T0 + 200


def test_cancelled_jobs_are_over_whatever_they_did() -> None:
    scene = Scene(manners=Manners(lists_ended_seconds=60))
    runs, waits, leaves = scene.runs(node="n1"), scene.submit(), scene.runs(node="n2", leaves_in=5.0)
    scene.at(10).act(Verb.REQUEUE, leaves)
    for key in (runs, waits, leaves):
        scene.hands.cancel(key)
    snapshot = scene.at(20).look()
    assert snapshot.jobs.state.tolist() == [JobState.DONE] * 3
    assert snapshot.reasons == ("CANCELLED",) * 3
    assert len(snapshot.held) == 0
    assert len(scene.at(100).look().jobs) == 3, "shown once more, and then never again"
    assert len(scene.look().jobs) == 0


def test_a_job_out_of_time_is_ended_also_after_it_was_asked() -> None:
    scene = Scene(manners=Manners(patience_seconds=10.0))
    plain, asked = (scene.runs(gpus=4, seconds=100, time_limit=60.0) for _ in range(2))
    scene.at(30).act(Verb.ASK, asked)
    scene.at(100)
    assert [(run.end - T0, run.word) for key in (plain, asked) for run in scene.books.of(key)] == [
        (60, "TIMEOUT")
    ] * 2


def test_tenants_and_users_may_come_at_any_time_and_stay_sorted() -> None:
    scene = Scene()
    for name in ("nlp", "vision", "audio"):
        scene.submit(tenant=name, user="ann")
    snapshot = scene.look()
    assert snapshot.tenants.names == ("audio", "nlp", "vision")
    assert [snapshot.tenants.names[row] for row in snapshot.jobs.tenant.tolist()] == [
        "nlp",
        "vision",
        "audio",
    ]
    assert snapshot.users == ("ann",)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda hands: hands.submit(Submission(gpus=17)), "17 GPUs"),
        (lambda hands: hands.submit(Submission(gpu_type="h100")), "h100"),
        (lambda hands: hands.drain("n9"), "n9"),
        (lambda hands: hands.cancel(pack(77)), "no job"),
    ],
    ids=["too large", "no such type", "no such node", "no such job"],
)
def test_what_cannot_be_is_refused_in_words(wrong: Callable[[Any], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        wrong(Scene().hands)


def test_what_is_not_seen_is_not_acted_on() -> None:
    scene = Scene()
    key = scene.submit()
    veil = Veil(scene.cluster, scene.clock, "the network is down")
    seen = scene.job(key)
    blind = veil.observe({})
    assert isinstance(blind, Blind)
    (outcome,) = veil.actuate([Action(Verb.OPEN, key, seen["record"], seen["submit"], 0, ("n1",))])
    assert (outcome.result, outcome.later) == (Result.REFUSED, True)
    assert scene.job(key)["state"] == JobState.WAITING


@pytest.mark.parametrize("what", ["open", "hold", "cancel"])
def test_a_task_that_goes_its_own_way_leaves_the_record_that_the_others_share(what: str) -> None:
    scene = Scene()
    base = scene.hands.submit(Submission(gpus=2, tasks=(1, 2, 3)))
    task = pack(base, 2)
    if what == "open":
        scene.act(Verb.OPEN, task, "n1")
    else:
        getattr(scene.hands, what)(task)
    jobs = scene.look().jobs
    records = dict(zip(jobs.key.tolist(), jobs.record.tolist(), strict=True))
    assert records[pack(base, 1)] == records[pack(base, 3)] == base
    assert records[task] > base
    assert scene.hands.submit(Submission(gpus=2)) > records[task]


@pytest.mark.parametrize(
    ("gate", "blocked"),
    [(Gate.BEGIN, Blocked.NOT_BLOCKED), (Gate.HOLD, Blocked.OWN_BEGIN)],
    ids=["a begin gate", "a hold"],
)
def test_only_a_begin_gate_takes_the_place_of_its_users_begin_time(gate: Gate, blocked: Blocked) -> None:
    scene = Scene(manners=Manners(gate))
    key = scene.submit(gated=False, begin=T0 + 100)
    assert scene.job(key)["blocked"] == Blocked.OWN_BEGIN
    scene.act(Verb.CLOSE, key, until=T0 + 500)
    assert (scene.job(key)["gated"], scene.job(key)["blocked"]) == (True, blocked)
    assert scene.at(101).job(key)["blocked"] == Blocked.NOT_BLOCKED
    assert scene.at(501).job(key)["state"] == (JobState.WAITING if gate == "hold" else JobState.RUNNING)
