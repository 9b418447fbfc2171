"""Promises about jobs that run, about arrays, and about the cluster."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair.model import Blocked, JobState, Result, Verb, pack_keys, parse_label
from tests.contract.stages import (
    Job,
    Promises,
    Stage,
    act,
    action,
    do,
    look,
    nodes_of,
    row_of,
    running,
    state,
    until,
    until_state,
)

RUNNING = Promises()
promise, whatever_the_gate = RUNNING.promise, RUNNING.whatever_the_gate


# -- running jobs -----------------------------------------------------------------------------------------------


@promise
def a_running_job_is_neither_closed_nor_opened_and_never_held(stage: Stage) -> None:
    label = running(stage)
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.REFUSED
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.REFUSED
    assert state(stage, label) == JobState.RUNNING
    assert stage.priority(label) > 0


@promise
def a_job_that_started_between_look_and_act_is_left_alone(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.CLOSE, label, until=stage.now() + 300)
    act(stage, Verb.OPEN, label, nodes=("n1",))
    until_state(stage, label, JobState.RUNNING)
    assert do(stage, planned).result is Result.REFUSED
    assert stage.priority(label) > 0


@whatever_the_gate
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
    unasked = look(stage, {})
    assert unasked.jobs.acknowledged[row_of(unasked, label)] == 0, "nobody waits for an answer any more"


@whatever_the_gate
def a_waiting_job_cannot_be_asked_nor_requeued(stage: Stage) -> None:
    label = stage.submit(Job())
    assert act(stage, Verb.ASK, label).result is Result.REFUSED
    assert act(stage, Verb.REQUEUE, label).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING


@promise
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


@promise
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


@promise
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


@whatever_the_gate
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


@whatever_the_gate
def a_job_that_may_not_be_requeued_runs_on(stage: Stage) -> None:
    label = running(stage, Job(requeue=False))
    snapshot = look(stage)
    assert not snapshot.jobs.requeueable[row_of(snapshot, label)]
    assert act(stage, Verb.REQUEUE, label).result is Result.REFUSED
    assert state(stage, label) == JobState.RUNNING


# -- arrays -----------------------------------------------------------------------------------------------------


@whatever_the_gate
def every_task_of_an_unsplit_array_is_a_job(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-4"))
    snapshot = look(stage)
    base = int(label)
    rows = [row_of(snapshot, f"{label}_{task}") for task in (1, 2, 3, 4)]
    assert snapshot.jobs.gated[rows].all()
    assert set(snapshot.jobs.record[rows].tolist()) == {base}


@promise
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


@promise
def one_act_closes_all_waiting_tasks_of_an_array_and_no_running_one(stage: Stage) -> None:
    label = stage.submit(Job(tasks="1-4"))
    act(stage, Verb.OPEN, f"{label}_2", nodes=("n3",))
    until_state(stage, f"{label}_2", JobState.RUNNING)
    whole = action(stage, Verb.CLOSE, f"{label}_1", until=float(int(stage.now() + 900)), whole_record=True)
    base = int(pack_keys(np.array([int(label)]), np.array([-1]))[0])
    assert do(stage, whole._replace(key=base)).result is Result.DONE
    snapshot = look(stage)
    rows = [row_of(snapshot, f"{label}_{task}") for task in (1, 3, 4)]
    assert snapshot.jobs.gated[rows].all()
    assert set(snapshot.jobs.gate_until[rows]) == ({math.inf} if stage.shut_by == "hold" else {whole.until})
    assert state(stage, f"{label}_2") == JobState.RUNNING
    assert stage.priority(f"{label}_2") > 0


@whatever_the_gate
def tasks_of_arrays_of_which_some_one_or_none_wait_are_asked_together(stage: Stage) -> None:
    several, one, alone = (stage.submit(Job(tasks=f"1-{last}")) for last in (3, 2, 1))
    running_tasks = [f"{several}_2", f"{one}_2", f"{alone}_1"]
    for label in running_tasks:
        act(stage, Verb.OPEN, label, nodes=("n3",))
    for label in running_tasks:
        until_state(stage, label, JobState.RUNNING)
    stage.wait(2.0)  # until their batch scripts can be signalled
    asked, began = [action(stage, Verb.ASK, label) for label in running_tasks], stage.now()
    outcomes = stage.cluster.actuate(asked)
    assert [outcome.result for outcome in outcomes] == [Result.DONE] * 3
    assert stage.now() - began < 3


@promise
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


@whatever_the_gate
def gpus_of_jobs_that_are_not_ours_are_never_capacity(stage: Stage) -> None:
    stage.submit(Job(gpus=5, partition="other", gated=False, stamped=False))
    until(stage, lambda: look(stage).nodes.gpus_others.sum() == 5, "the other job runs")
    snapshot = look(stage)
    capacity = dict(zip(snapshot.nodes.names, snapshot.nodes.capacity.tolist(), strict=True))
    assert sum(capacity.values()) == 8 * len(capacity) - 5
    if "n4" not in capacity:
        assert capacity == {"n1": 8, "n2": 8, "n3": 3}


@whatever_the_gate
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
