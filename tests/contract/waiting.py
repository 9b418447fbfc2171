"""Promises about jobs that wait: gates, pins, and what people do to them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, Result, Verb, parse_label
from tests.contract.stages import (
    GATE_SECONDS,
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
    sites_of,
    state,
    until_state,
)

WAITING = Promises()
promise, whatever_the_gate = WAITING.promise, WAITING.whatever_the_gate


# -- gates ------------------------------------------------------------------------------------------------------


@promise
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


@promise
def a_managed_job_is_never_to_be_freed_by_itself(stage: Stage) -> None:
    shut, opened, bare = stage.submit(Job()), running(stage, node="n2"), stage.submit(Job(gated=False))
    act(stage, Verb.CLOSE, shut, until=stage.now() + 900)
    act(stage, Verb.CLOSE, bare, until=stage.now() + 900)
    snapshot = look(stage)
    assert {parse_label(label) for label in (shut, opened)} <= set(snapshot.jobs.key.tolist())
    assert snapshot.to_free == ()


@promise
def an_opened_job_runs_on_exactly_the_node_named(stage: Stage) -> None:
    label = running(stage, node="n2")
    assert nodes_of(stage, label) == {"n2"}


@whatever_the_gate
def an_opened_gang_runs_on_exactly_the_nodes_named(stage: Stage) -> None:
    label = stage.submit(Job(gpus=8, nodes=2))
    assert act(stage, Verb.OPEN, label, nodes=("n1", "n3")).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert nodes_of(stage, label) == {"n1", "n3"}


@promise
def a_gang_of_no_fixed_split_takes_all_of_one_node_after_the_other_but_for_one_gpu_on_each(
    stage: Stage,
) -> None:
    running(stage, Job(gpus=2), "n2")
    for gpus, sites in ((12, {"n1": 8, "n2": 4}), (5, {"n1": 4, "n2": 1}), (8, {"n2": 6, "n3": 2})):
        label = stage.submit(Job(gpus=gpus, nodes=2, freely=True))
        assert act(stage, Verb.OPEN, label, nodes=tuple(sites)).result is Result.DONE
        until_state(stage, label, JobState.RUNNING)
        assert sites_of(stage, label) == sites
        stage.cancel(label)
        until_state(stage, label, JobState.DONE)


@promise
def a_closed_job_stays_waiting(stage: Stage) -> None:
    label = stage.submit(Job())
    gate = float(int(stage.now() + 300))
    assert act(stage, Verb.CLOSE, label, until=gate).result is Result.DONE
    stage.wait(1.5)
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert (jobs.state[row], jobs.blocked[row]) == (JobState.WAITING, Blocked.NOT_BLOCKED)
    assert jobs.gated[row]
    assert jobs.gate_until[row] == (math.inf if stage.shut_by == "hold" else gate)
    assert jobs.gate_set[row] > 0


@promise
def a_begin_gate_opens_by_itself_and_a_hold_does_not(stage: Stage) -> None:
    label = stage.submit(Job())
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 2).result is Result.DONE
    if stage.shut_by == "begin":
        until_state(stage, label, JobState.RUNNING, 10)
    else:
        stage.wait(3)
        assert state(stage, label) == JobState.WAITING


@promise
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


@promise
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


@promise
def an_opened_job_starts_when_its_busy_node_comes_free(stage: Stage) -> None:
    first = running(stage, Job(gpus=8), "n2")
    label = stage.submit(Job(gpus=4))
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.DONE
    assert act(stage, Verb.REQUEUE, first).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert nodes_of(stage, label) == {"n2"}


@promise
def a_freed_job_is_plain_slurm_again(stage: Stage) -> None:
    label = stage.submit(Job())
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    assert act(stage, Verb.FREE, label).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert stage.wanted_nodes(label) == ""
    assert stage.priority(label) > 0
    assert [mark for mark in stage.marks() if mark.key == parse_label(label)] == []


@promise
def a_freed_job_that_was_pinned_to_a_busy_node_runs_elsewhere(stage: Stage) -> None:
    running(stage, Job(gpus=8), "n2")
    label = stage.submit(Job(gpus=4))
    act(stage, Verb.OPEN, label, nodes=("n2",))
    assert act(stage, Verb.FREE, label).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert "n2" not in nodes_of(stage, label)


# -- people win -------------------------------------------------------------------------------------------------


@promise
def a_job_held_by_its_user_is_blocked_and_not_opened(stage: Stage) -> None:
    label = stage.submit(Job(gated=stage.gate == "begin", begin_in=300))
    stage.hold(label, by_admin=False)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.USER_HOLD
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.REFUSED
    assert stage.priority(label) == 0
    assert stage.wanted_nodes(label) == ""


@promise
def a_job_held_by_its_user_after_we_closed_it_is_blocked_and_not_opened(stage: Stage) -> None:
    if stage.shut_by == "hold":
        pytest.skip("this gate shows a hold as it shows its user's")
    label = stage.submit(Job())
    assert act(stage, Verb.CLOSE, label, until=float(int(stage.now() + 300))).result is Result.DONE
    stage.hold(label, by_admin=False)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.USER_HOLD
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.REFUSED
    act(stage, Verb.CLOSE, label, until=stage.now() + 600)
    assert stage.priority(label) == 0


@promise
def a_job_that_was_released_once_and_is_held_again_is_its_users(stage: Stage) -> None:
    """Although it is submitted behind a hold of ours that nobody noted."""
    full = [running(stage, Job(gpus=8), node) for node in ("n1", "n2", "n3")]
    label = stage.submit(Job(gpus=16, nodes=2))
    stage.wait(2.0)
    stage.release(label) if stage.gate == "hold" else stage.move_begin(label, stage.now())
    stage.wait(5.0)  # Slurm tries to start it, and there is no room
    stage.hold(label, by_admin=False)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.USER_HOLD
    assert parse_label(label) not in {act.key for act in snapshot.to_free}
    for verb, nodes in ((Verb.OPEN, ("n1", "n2")), (Verb.CLOSE, ()), (Verb.FREE, ())):
        act(stage, verb, label, nodes=nodes, until=stage.now() + 600)
        assert stage.priority(label) == 0
    assert {state(stage, each) for each in full} == {JobState.RUNNING}


@promise
def a_job_held_by_an_admin_is_blocked_and_stays_held_whatever_we_do(stage: Stage) -> None:
    label = stage.submit(Job(gated=stage.gate == "begin", begin_in=300))
    stage.hold(label, by_admin=True)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.ADMIN_HOLD
    assert act(stage, Verb.OPEN, label, nodes=("n1",)).result is Result.REFUSED
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    assert stage.priority(label) == 0


@whatever_the_gate
def a_job_with_a_begin_time_of_its_own_is_not_planned_before_it(stage: Stage) -> None:
    label = stage.submit(Job(gated=False, begin_in=300))
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    assert jobs.blocked[row] == Blocked.OWN_BEGIN
    assert not jobs.gated[row]
    assert jobs.gate_until[row] == pytest.approx(stage.now() + 300, abs=5)


@promise
def a_begin_time_that_its_user_moves_is_no_longer_our_gate(stage: Stage) -> None:
    if stage.shut_by == "hold":
        pytest.skip("under a hold the begin time is the user's anyway")
    label = stage.submit(Job())
    act(stage, Verb.CLOSE, label, until=stage.now() + 300)
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.move_begin(label, stage.now() + 200)
    snapshot = look(stage)
    assert snapshot.jobs.blocked[row_of(snapshot, label)] == Blocked.OWN_BEGIN
    assert do(stage, planned).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING


# -- deadlines --------------------------------------------------------------------------------------------------


@whatever_the_gate
def nothing_is_told_where_no_job_has_a_deadline(stage: Stage) -> None:
    stage.submit(Job())
    assert look(stage).told is None


@whatever_the_gate
def a_deadline_is_seen_and_other_jobs_have_none(stage: Stage) -> None:
    plain, label = stage.submit(Job()), stage.submit(Job(deadline_in=3000))
    wanted, snapshot = stage.now() + 3000, look(stage)
    told = snapshot.told
    assert told is not None
    assert told.deadline[row_of(snapshot, label)] == pytest.approx(wanted, abs=5)
    assert told.deadline[row_of(snapshot, plain)] == math.inf
    assert np.isnan(told.left_seconds).all()
    assert told.rate.shape == (len(snapshot.jobs), len(snapshot.gpu_types))


@promise
def a_job_whose_limit_fits_before_its_deadline_is_started(stage: Stage) -> None:
    label = running(stage, Job(deadline_in=7000, minutes=20))
    snapshot = look(stage)
    row = row_of(snapshot, label)
    assert snapshot.jobs.time_limit_seconds[row] == 1200
    assert snapshot.jobs.requeueable[row]


@promise
def a_job_that_could_not_be_started_again_in_time_is_not_to_be_stopped(stage: Stage) -> None:
    label = running(stage, Job(deadline_in=1300, minutes=20))
    snapshot = look(stage)
    row = row_of(snapshot, label)
    assert snapshot.jobs.checkpoints[row]
    assert not snapshot.jobs.requeueable[row]


@promise
def a_job_opened_too_late_for_its_deadline_is_over_for_good(stage: Stage) -> None:
    label = stage.submit(Job(deadline_in=700, minutes=20))
    assert state(stage, label) == JobState.WAITING
    act(stage, Verb.OPEN, label, nodes=("n1",))
    until_state(stage, label, JobState.DONE)
    snapshot = look(stage)
    row = row_of(snapshot, label)
    assert snapshot.reasons[row] == "DEADLINE"
    assert act(stage, Verb.REQUEUE, label).result is Result.REFUSED
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.REFUSED
    assert state(stage, label) == JobState.DONE


# -- identity ---------------------------------------------------------------------------------------------------


@whatever_the_gate
def an_act_decided_for_another_incarnation_is_refused(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    for stale in (planned._replace(submit=planned.submit - 7), planned._replace(restarts=3)):
        assert do(stage, stale).result is Result.REFUSED
    assert do(stage, planned._replace(key=parse_label("999999"), record=999999)).result is Result.REFUSED
    assert state(stage, label) == JobState.WAITING
    assert stage.wanted_nodes(label) == ""


@whatever_the_gate
def a_cancelled_job_is_done_and_not_opened(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.cancel(label)
    assert state(stage, label) == JobState.DONE
    assert do(stage, planned).result is Result.REFUSED


@promise
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


# -- elastic jobs -----------------------------------------------------------------------------------------------

ELASTIC = Job(gpus=2, choices=(1, 2, 4))


def _sizes_of(stage: Stage, label: str) -> list[int]:
    snapshot = look(stage)
    assert snapshot.sizes is not None
    mine = snapshot.sizes.take(snapshot.sizes.row == row_of(snapshot, label))
    assert mine.gpus[mine.usual].tolist() == [ELASTIC.gpus]
    sizes: list[int] = mine.gpus.tolist()
    return sizes


@promise
def an_elastic_job_shows_its_sizes_and_waits_with_its_usual_one(stage: Stage) -> None:
    rigid, label = stage.submit(Job()), stage.submit(ELASTIC)
    assert _sizes_of(stage, label) == [1, 2, 4]
    snapshot = look(stage)
    assert snapshot.sizes is not None
    assert row_of(snapshot, rigid) not in snapshot.sizes.row.tolist()
    row = row_of(snapshot, label)
    assert (snapshot.jobs.gpus[row], snapshot.jobs.usual_gpus[row]) == (2, 2)


@promise
def an_elastic_job_runs_with_the_size_that_it_is_opened_with(stage: Stage) -> None:
    label = stage.submit(ELASTIC)
    assert act(stage, Verb.OPEN, label, nodes=("n2",), gpus=4).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert sites_of(stage, label) == {"n2": 4}
    snapshot = look(stage)
    row = row_of(snapshot, label)
    assert (snapshot.jobs.gpus[row], snapshot.jobs.usual_gpus[row]) == (4, 2)


@promise
def once_requeued_an_elastic_job_has_its_usual_size_and_may_be_given_another(stage: Stage) -> None:
    label = stage.submit(ELASTIC)
    assert act(stage, Verb.OPEN, label, nodes=("n1",), gpus=4).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert act(stage, Verb.REQUEUE, label).result is Result.DONE
    until_state(stage, label, JobState.WAITING)
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 900).result is Result.DONE
    snapshot = look(stage)
    assert snapshot.jobs.gpus[row_of(snapshot, label)] == 2
    stage.wait(1.1)
    assert act(stage, Verb.OPEN, label, nodes=("n3",), gpus=1).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert sites_of(stage, label) == {"n3": 1}


@whatever_the_gate
def a_job_is_refused_a_size_that_it_does_not_name(stage: Stage) -> None:
    for job in (ELASTIC, Job()):
        label = stage.submit(job)
        assert act(stage, Verb.OPEN, label, nodes=("n1",), gpus=3).result is Result.REFUSED
        snapshot = look(stage)
        assert snapshot.jobs.gpus[row_of(snapshot, label)] == 2
        assert state(stage, label) == JobState.WAITING
