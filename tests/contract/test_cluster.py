"""What every Cluster promises, held up to the fake and to a real Slurm under both gates.

This is what makes the fake trustworthy: where it differs from Slurm, the fake is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.lab import Lab, available
from slurm_fair.model import Blind, Blocked, JobState, Result, Verb, pack_keys, parse_label
from tests.contract.stages import (
    GATE_SECONDS,
    SPEC,
    FakeStage,
    Job,
    RealStage,
    Stage,
    act,
    action,
    do,
    look,
    nodes_of,
    row_of,
    state,
    until,
    until_state,
)

needs_slurm = [pytest.mark.slurm, pytest.mark.skipif(available() is not None, reason=str(available()))]
Sentence = Callable[[Stage], None]
SENTENCES: list[Sentence] = []


def sentence(check: Sentence) -> Sentence:
    """One promise; its name says it."""
    SENTENCES.append(check)
    return check


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One Slurm for all sentences."""
    with Lab(spec=SPEC) as private:
        yield private


@pytest.fixture(
    params=[
        pytest.param("fake begin"),
        pytest.param("fake hold"),
        pytest.param("slurm begin", marks=needs_slurm),
        pytest.param("slurm hold", marks=needs_slurm),
    ]
)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The fake or a real Slurm, with one of the gates."""
    kind, gate = request.param.split()
    made: Stage = FakeStage(gate) if kind == "fake" else RealStage(request.getfixturevalue("lab"), gate)
    yield made
    made.clear()


def running(stage: Stage, job: Job = Job(), node: str = "n1") -> str:
    """A job that was opened and runs."""
    label = stage.submit(job)
    assert act(stage, Verb.OPEN, label, nodes=(node,)).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    return label


# -- gates ------------------------------------------------------------------------------------------------------


@sentence
def a_job_submitted_behind_our_gate_waits_and_may_be_planned(stage: Stage) -> None:
    label = stage.submit(Job(gpus=3))
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert jobs.state[row] == JobState.WAITING
    assert jobs.blocked[row] == Blocked.NOT_BLOCKED
    assert jobs.gated[row]
    assert jobs.checkpoints[row]
    assert (jobs.gpus[row], jobs.restarts[row], jobs.start[row]) == (3, 0, 0)
    until_then = jobs.gate_until[row]
    assert until_then == math.inf if stage.gate == "hold" else until_then >= stage.now() + GATE_SECONDS - 5


@sentence
def an_opened_job_runs_on_exactly_the_node_named(stage: Stage) -> None:
    label = running(stage, node="n2")
    assert nodes_of(stage, label) == {"n2"}


@sentence
def an_opened_gang_runs_on_exactly_the_nodes_named(stage: Stage) -> None:
    label = stage.submit(Job(gpus=8, nodes=2))
    assert act(stage, Verb.OPEN, label, nodes=("n1", "n3")).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert nodes_of(stage, label) == {"n1", "n3"}


@sentence
def a_closed_job_stays_waiting(stage: Stage) -> None:
    label = stage.submit(Job())
    gate = float(int(stage.now() + 300))
    assert act(stage, Verb.CLOSE, label, until=gate).result is Result.DONE
    stage.wait(1.5)
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert (jobs.state[row], jobs.blocked[row]) == (JobState.WAITING, Blocked.NOT_BLOCKED)
    assert jobs.gated[row]
    assert jobs.gate_until[row] == (math.inf if stage.gate == "hold" else gate)
    assert jobs.gate_set[row] > 0


@sentence
def a_begin_gate_opens_by_itself_and_a_hold_does_not(stage: Stage) -> None:
    label = stage.submit(Job())
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 2).result is Result.DONE
    if stage.gate == "begin":
        until_state(stage, label, JobState.RUNNING, 10)
    else:
        stage.wait(3)
        assert state(stage, label) == JobState.WAITING


@sentence
def a_job_that_nobody_gated_is_gated_by_the_first_close_of_the_begin_gate(stage: Stage) -> None:
    blocker = [running(stage, Job(gpus=8), node) for node in ("n1", "n2", "n3")]
    label = stage.submit(Job(gated=False, stamped=False))
    snapshot = look(stage)
    assert not snapshot.jobs.gated[row_of(snapshot, label)]
    assert not snapshot.jobs.checkpoints[row_of(snapshot, label)]
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.DONE
    for each in blocker:
        stage.cancel(each)
    stage.wait(1.5)
    assert state(stage, label) == JobState.WAITING


@sentence
def an_opened_job_whose_node_is_busy_waits_for_it_and_is_closed_without_a_trace(stage: Stage) -> None:
    running(stage, Job(gpus=8), "n2")
    label = stage.submit(Job(gpus=4))
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.DONE
    stage.wait(1.2)
    snapshot = look(stage)
    assert snapshot.jobs.pinned[row_of(snapshot, label)]
    assert snapshot.jobs.state[row_of(snapshot, label)] == JobState.WAITING
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.DONE
    after = look(stage)
    assert not after.jobs.pinned[row_of(after, label)]
    assert after.jobs.gated[row_of(after, label)]
    assert stage.wanted_nodes(label) == ""


@sentence
def an_opened_job_starts_when_its_busy_node_comes_free(stage: Stage) -> None:
    first = running(stage, Job(gpus=8), "n2")
    label = stage.submit(Job(gpus=4))
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.DONE
    assert act(stage, Verb.REQUEUE, first).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert nodes_of(stage, label) == {"n2"}


@sentence
def a_freed_job_is_plain_slurm_again(stage: Stage) -> None:
    label = stage.submit(Job())
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    assert act(stage, Verb.FREE, label).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert stage.wanted_nodes(label) == ""
    assert stage.priority(label) > 0
    assert [mark for mark in stage.marks() if mark.key == parse_label(label)] == []


@sentence
def a_freed_job_that_was_pinned_to_a_busy_node_runs_elsewhere(stage: Stage) -> None:
    running(stage, Job(gpus=8), "n2")
    label = stage.submit(Job(gpus=4))
    act(stage, Verb.OPEN, label, nodes=("n2",))
    assert act(stage, Verb.FREE, label).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert "n2" not in nodes_of(stage, label)


# -- people win -------------------------------------------------------------------------------------------------


@sentence
def a_job_held_by_its_user_is_blocked_and_not_opened(stage: Stage) -> None:
    label = stage.submit(Job(gated=stage.gate == "begin", begin_in=300))
    stage.hold(label, by_admin=False)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.USER_HOLD
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.REFUSED
    assert stage.priority(label) == 0
    assert stage.wanted_nodes(label) == ""


@sentence
def a_job_held_by_an_admin_is_blocked_and_stays_held_whatever_we_do(stage: Stage) -> None:
    label = stage.submit(Job(gated=stage.gate == "begin", begin_in=300))
    stage.hold(label, by_admin=True)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.ADMIN_HOLD
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.REFUSED
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    assert stage.priority(label) == 0


@sentence
def a_job_with_a_begin_time_of_its_own_is_not_planned_before_it(stage: Stage) -> None:
    label = stage.submit(Job(gated=False, begin_in=300))
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert jobs.blocked[row] == Blocked.OWN_BEGIN
    assert not jobs.gated[row]
    assert jobs.gate_until[row] == pytest.approx(stage.now() + 300, abs=5)


@sentence
def a_begin_time_that_its_user_moves_is_no_longer_our_gate(stage: Stage) -> None:
    if stage.gate == "hold":
        pytest.skip("under a hold the begin time is the user's anyway")
    label = stage.submit(Job())
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.move_begin(label, stage.now() + 200)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.OWN_BEGIN
    assert do(stage, planned).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING


# -- running jobs -----------------------------------------------------------------------------------------------


@sentence
def a_running_job_is_neither_closed_nor_opened_and_never_held(stage: Stage) -> None:
    label = running(stage)
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.REFUSED
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.REFUSED
    assert state(stage, label) == JobState.RUNNING
    assert stage.priority(label) > 0


@sentence
def a_job_that_started_between_look_and_act_is_left_alone(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.CLOSE, label, until=stage.now() + 300)
    act(stage, Verb.OPEN, label, nodes=("n1",))
    until_state(stage, label, JobState.RUNNING)
    assert do(stage, planned).result is Result.REFUSED
    assert stage.priority(label) > 0


@sentence
def a_job_that_is_asked_answers_and_goes_on_holding_its_gpus(stage: Stage) -> None:
    label = running(stage)
    stage.wait(0.5)  # its script has set its trap
    asked = stage.now()
    assert act(stage, Verb.ASK, label).result is Result.DONE
    key = parse_label(label)

    def answer() -> int:
        snapshot = look(stage, {key: asked})
        return int(snapshot.jobs.acknowledged[row_of(snapshot, label)])

    until(stage, lambda: answer() == 1, "an acknowledgement")
    assert state(stage, label) == JobState.RUNNING
    later = look(stage, {key: stage.now() + 1000})
    assert later.jobs.acknowledged[row_of(later, label)] == 0, "an answer to an earlier request"


@sentence
def a_waiting_job_cannot_be_asked_nor_requeued(stage: Stage) -> None:
    label = stage.submit(Job())
    assert act(stage, Verb.ASK, label).result is Result.REFUSED
    assert act(stage, Verb.REQUEUE, label).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING


@sentence
def a_requeued_job_waits_behind_our_gate_with_one_restart_more(stage: Stage) -> None:
    label = running(stage)
    before = look(stage)
    stage.wait(1.1)
    assert act(stage, Verb.REQUEUE, label).result is Result.DONE
    until_state(stage, label, JobState.WAITING)
    stage.wait(1.2)
    after = look(stage)
    jobs, row, old = after.jobs, row_of(after, label), row_of(before, label)
    assert jobs.state[row] == JobState.WAITING
    assert jobs.restarts[row] == before.jobs.restarts[old] + 1
    assert jobs.submit[row] > before.jobs.submit[old]
    assert jobs.gated[row]
    assert jobs.blocked[row] == Blocked.NOT_BLOCKED
    assert len(after.held.nodes_of(row)) == 0


@sentence
def a_requeued_job_opened_at_once_runs_on_the_same_node_and_is_not_lost(stage: Stage) -> None:
    label = running(stage)
    assert act(stage, Verb.REQUEUE, label).result is Result.DONE
    until_state(stage, label, JobState.WAITING)
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    stage.wait(1.0)
    snapshot = look(stage)
    assert snapshot.jobs.state[row_of(snapshot, label)] == JobState.RUNNING
    assert snapshot.jobs.restarts[row_of(snapshot, label)] == 1


@sentence
def a_job_slow_to_leave_is_ending_and_its_gpus_are_not_free(stage: Stage) -> None:
    label = running(stage, Job(leaves_in=1.5))
    stage.wait(0.5)
    assert act(stage, Verb.REQUEUE, label).result is Result.DONE
    snapshot = look(stage)
    row = row_of(snapshot, label)
    assert snapshot.jobs.state[row] == JobState.ENDING
    assert snapshot.jobs.restarts[row] == 1
    assert snapshot.held.only(np.array([row])).gpus.sum() == 2
    until_state(stage, label, JobState.WAITING)


@sentence
def a_job_that_ended_is_not_requeued_and_never_runs_again(stage: Stage) -> None:
    label = running(stage)
    planned = action(stage, Verb.REQUEUE, label)
    stage.finish(label)
    until_state(stage, label, JobState.DONE)
    assert do(stage, planned).result is Result.REFUSED
    stage.wait(1.0)
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert (jobs.state[row], jobs.restarts[row]) == (JobState.DONE, 0)
    assert 0 < jobs.start[row] <= jobs.end[row]


@sentence
def a_job_that_may_not_be_requeued_runs_on(stage: Stage) -> None:
    label = running(stage, Job(requeue=False))
    snapshot = look(stage)
    assert not snapshot.jobs.requeueable[row_of(snapshot, label)]
    assert act(stage, Verb.REQUEUE, label).result is Result.REFUSED
    assert state(stage, label) == JobState.RUNNING


# -- identity ---------------------------------------------------------------------------------------------------


@sentence
def an_act_decided_for_another_incarnation_is_refused(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    for stale in (replace(planned, submit=planned.submit - 7), replace(planned, restarts=3)):
        assert do(stage, stale).result is Result.REFUSED
    assert do(stage, replace(planned, key=parse_label("999999"), record=999999)).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING
    assert stage.wanted_nodes(label) == ""


@sentence
def a_cancelled_job_is_done_and_not_opened(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.cancel(label)
    assert state(stage, label) == JobState.DONE
    assert do(stage, planned).result is Result.REFUSED


@sentence
def one_refused_act_does_not_keep_others_from_being_done(stage: Stage) -> None:
    runs, waits, other = running(stage), stage.submit(Job()), stage.submit(Job())
    acts = [
        action(stage, Verb.CLOSE, runs, until=stage.now() + 300),
        action(stage, Verb.CLOSE, waits, until=stage.now() + 300),
        action(stage, Verb.OPEN, other, nodes=("n2",)),
    ]
    outcomes = stage.cluster.actuate(acts)
    assert [o.action for o in outcomes] == acts
    assert [o.result for o in outcomes] == [Result.REFUSED, Result.DONE, Result.DONE]


# -- arrays -----------------------------------------------------------------------------------------------------


@sentence
def every_task_of_an_unsplit_array_is_a_job(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-4"))
    snapshot = look(stage)
    base = int(label)
    rows = [row_of(snapshot, f"{label}_{task}") for task in (1, 2, 3, 4)]
    assert snapshot.jobs.gated[rows].all()
    assert set(snapshot.jobs.record[rows].tolist()) == {base}


@sentence
def one_task_opened_leaves_the_rest_of_its_array_gated(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-4"))
    assert act(stage, Verb.OPEN, f"{label}_2", nodes=("n3",)).result is Result.DONE
    until_state(stage, f"{label}_2", JobState.RUNNING)
    stage.wait(1.0)
    snapshot = look(stage)
    rows = [row_of(snapshot, f"{label}_{task}") for task in (1, 3, 4)]
    assert (snapshot.jobs.state[rows] == JobState.WAITING).all()
    assert snapshot.jobs.gated[rows].all()
    assert nodes_of(stage, f"{label}_2") == {"n3"}


@sentence
def one_act_closes_all_waiting_tasks_of_an_array_and_no_running_one(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-4"))
    act(stage, Verb.OPEN, f"{label}_2", nodes=("n3",))
    until_state(stage, f"{label}_2", JobState.RUNNING)
    whole = action(stage, Verb.CLOSE, f"{label}_1", until=float(int(stage.now() + 900)), whole_record=True)
    base = int(pack_keys(np.array([int(label)]), np.array([-1]))[0])
    assert do(stage, replace(whole, key=base)).result is Result.DONE
    snapshot = look(stage)
    rows = [row_of(snapshot, f"{label}_{task}") for task in (1, 3, 4)]
    assert snapshot.jobs.gated[rows].all()
    assert set(snapshot.jobs.gate_until[rows]) == ({math.inf} if stage.gate == "hold" else {whole.until})
    assert state(stage, f"{label}_2") == JobState.RUNNING
    assert stage.priority(f"{label}_2") > 0


@sentence
def a_requeued_task_keeps_its_restarts_its_gate_and_its_identity(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-3"))
    act(stage, Verb.OPEN, f"{label}_2", nodes=("n3",))
    until_state(stage, f"{label}_2", JobState.RUNNING)
    assert act(stage, Verb.REQUEUE, f"{label}_2").result is Result.DONE
    until_state(stage, f"{label}_2", JobState.WAITING)
    snapshot = look(stage)
    row = row_of(snapshot, f"{label}_2")
    assert snapshot.jobs.restarts[row] == 1
    assert snapshot.jobs.gated[row]
    assert snapshot.jobs.blocked[row] == Blocked.NOT_BLOCKED
    assert act(stage, Verb.OPEN, f"{label}_2", nodes=("n1",)).result is Result.DONE
    until_state(stage, f"{label}_2", JobState.RUNNING)
    assert nodes_of(stage, f"{label}_2") == {"n1"}


# -- the cluster ------------------------------------------------------------------------------------------------


@sentence
def gpus_of_jobs_that_are_not_ours_are_never_capacity(stage: Stage) -> None:
    stage.submit(Job(gpus=5, partition="other", gated=False, stamped=False))
    until(stage, lambda: look(stage).nodes.gpus_others.sum() == 5, "the other job runs")
    snapshot = look(stage)
    capacity = dict(zip(snapshot.nodes.names, snapshot.nodes.capacity.tolist(), strict=True))
    assert sum(capacity.values()) == 8 * len(capacity) - 5
    if "n4" not in capacity:
        assert capacity == {"n1": 8, "n2": 8, "n3": 3}


@sentence
def a_drained_node_is_no_capacity_until_it_is_back(stage: Stage) -> None:
    stage.drain("n2", back=False)
    try:
        snapshot = look(stage)
        at = snapshot.nodes.names.index("n2")
        assert snapshot.nodes.capacity[at] == 0
        assert snapshot.nodes.why[at]
    finally:
        stage.drain("n2", back=True)
    until(stage, lambda: look(stage).nodes.capacity[at] == 8, "the node is back")


@pytest.mark.parametrize("holds", SENTENCES, ids=lambda check: check.__name__)
def test_every_cluster(holds: Sentence, stage: Stage) -> None:
    holds(stage)


def test_a_cluster_without_its_controller_is_blind_and_nothing_is_done_to_it(stage: Stage) -> None:
    if isinstance(stage, RealStage) and stage.gate == "hold":
        pytest.skip("once is enough: it takes ten seconds")
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.cut(dead=True)
    try:
        blind = stage.cluster.observe({})
        assert isinstance(blind, Blind)
        assert blind.reason
        assert do(stage, planned).result is not Result.DONE
    finally:
        stage.cut(dead=False)
    until(stage, lambda: not isinstance(stage.cluster.observe({}), Blind), "it is seen again", 20)
    assert state(stage, label) == JobState.WAITING
