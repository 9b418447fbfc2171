"""The adapter on a real Slurm: what each verb comes to under both gates, and what Slurm says after it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.model import Blind, Blocked, JobState, Result, Verb, parse_label
from slurm_fair.slurm.fail_open import liberate
from tests.support.adapter_on_slurm import Adapter
from tests.support.on_slurm import Slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available(database=True) is not None, reason=str(available(database=True))),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user"),
]
QUICK = {"KillWait": "2", "MessageTimeout": "2"}
SPEC = LabSpec(nodes=3, users={"games": ("vision",)}, settings=QUICK)
CHECKPOINTS = "trap 'exit 0' USR2; while :; do sleep 0.1; done"


def stays(what: Callable[[], bool], seconds: float = 1.6) -> bool:
    """True where it holds through more than one turn of Slurm's scheduler."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not what():
            return False
        time.sleep(0.1)
    return True


def test_a_job_gated_at_submission_is_seen_as_ours_and_stays_closed(adapter: Adapter) -> None:
    job = adapter.submit()
    seen, row = adapter.job(job)
    assert seen.jobs.gated[row]
    assert seen.jobs.checkpoints[row]
    assert Blocked(int(seen.jobs.blocked[row])) is Blocked.NOT_BLOCKED
    adapter.done(Verb.CLOSE, job)
    seen, row = adapter.job(job)
    assert seen.jobs.gated[row]
    assert stays(lambda: adapter.slurm.look(job).state == "PENDING")


def test_an_opened_job_runs_on_exactly_the_nodes_it_was_promised(adapter: Adapter) -> None:
    job = adapter.submit("-N2", "--gpus-per-node=3", "--gpus=6")
    adapter.done(Verb.CLOSE, job)
    adapter.done(Verb.OPEN, job, "n2", "n3")
    assert adapter.slurm.wait_state(job, "RUNNING").nodes == "n[2-3]"
    seen, row = adapter.job(job)
    held = seen.held.only(np.array([row]))
    assert [(seen.nodes.names[node], gpus) for node, gpus in zip(held.node, held.gpus, strict=True)] == [
        ("n2", 3),
        ("n3", 3),
    ]


def test_a_job_promised_a_node_that_is_none_stays_closed(adapter: Adapter) -> None:
    job = adapter.submit()
    adapter.done(Verb.CLOSE, job)
    outcome = adapter.do(Verb.OPEN, job, "n99")
    assert (outcome.result, "Invalid node name specified" in outcome.detail) == (Result.REFUSED, True)
    assert stays(lambda: adapter.slurm.look(job).state == "PENDING")
    seen, row = adapter.job(job)
    assert seen.jobs.gated[row]


def test_a_job_goes_round_again_and_again_without_being_lost(adapter: Adapter) -> None:
    job = adapter.submit()
    for turn, node in enumerate(("n1", "n1", "n2", "n2")):
        adapter.start(job, node)
        assert adapter.slurm.look(job).restarts == turn
        adapter.requeue(job)
    assert stays(lambda: adapter.slurm.look(job).state == "PENDING")


def test_a_job_that_ends_before_its_requeue_never_runs_again(adapter: Adapter) -> None:
    job = adapter.submit(body=CHECKPOINTS)
    adapter.start(job, "n1")
    ordered = adapter.action(Verb.REQUEUE, job)
    adapter.slurm.do("scancel", job)
    adapter.slurm.wait_state(job, "CANCELLED")
    (outcome,) = adapter.cluster.actuate([ordered])
    assert (outcome.result, outcome.detail) == (Result.REFUSED, "it is done")
    assert (adapter.slurm.look(job).state, adapter.slurm.look(job).restarts) == ("CANCELLED", 0)


def test_an_asked_job_gets_the_signal_of_its_stamp(adapter: Adapter) -> None:
    job = adapter.submit(body=CHECKPOINTS)
    adapter.start(job, "n1")
    adapter.slurm.wait(job, lambda _: adapter.do(Verb.ASK, job).result is Result.DONE)
    assert adapter.slurm.wait_state(job, "COMPLETED", "COMPLETING", "FAILED").restarts == 0


@pytest.mark.parametrize("tasks", ["1-3", "1-2"])
def test_an_asked_task_gets_its_signal_though_others_of_its_array_wait(begin: Adapter, tasks: str) -> None:
    array = begin.submit(f"--array={tasks}", body=CHECKPOINTS)
    begin.start(f"{array}_2", "n1")
    began = time.monotonic()
    begin.slurm.wait(f"{array}_2", lambda _: begin.do(Verb.ASK, f"{array}_2").result is Result.DONE)
    assert time.monotonic() - began < 5
    assert begin.slurm.wait_state(f"{array}_2", "COMPLETED", "FAILED").restarts == 0
    assert begin.slurm.look(f"{array}_1").state == "PENDING"


def test_an_act_ordered_for_an_earlier_run_is_refused(adapter: Adapter) -> None:
    job = adapter.submit()
    adapter.start(job, "n1")
    ordered = adapter.action(Verb.REQUEUE, job)
    adapter.requeue(job)
    adapter.start(job, "n2")
    (outcome,) = adapter.cluster.actuate([ordered])
    assert outcome.result is Result.REFUSED
    assert adapter.slurm.look(job).state == "RUNNING"


def test_a_job_that_its_user_holds_stays_the_users(adapter: Adapter) -> None:
    job = adapter.slurm.sbatch("-H", user="games")
    assert adapter.blocked(job) is Blocked.USER_HOLD
    adapter.do(Verb.CLOSE, job)
    assert adapter.do(Verb.OPEN, job, "n1").result is Result.REFUSED
    adapter.done(Verb.FREE, job)
    held = adapter.slurm.look(job)
    assert (held.reason, held.priority) == ("JobHeldUser", 0)
    assert adapter.slurm.do("scontrol", "release", job, user="games").returncode == 0


def test_an_admins_hold_is_never_opened(adapter: Adapter) -> None:
    job = adapter.slurm.sbatch_waiting()
    adapter.slurm.do("scontrol", "hold", job)
    assert adapter.blocked(job) is Blocked.ADMIN_HOLD
    assert adapter.do(Verb.OPEN, job, "n1").result is Result.REFUSED
    assert adapter.slurm.look(job).reason == "JobHeldAdmin"


def test_the_users_nice_outlives_a_whole_cycle(adapter: Adapter) -> None:
    job = adapter.submit("--nice=33")
    adapter.done(Verb.CLOSE, job)
    adapter.start(job, "n1")
    adapter.requeue(job)
    adapter.done(Verb.CLOSE, job)
    adapter.start(job, "n2")
    assert adapter.slurm.look(job).nice == 33


def test_an_admins_fixed_priority_outlives_a_whole_cycle_of_the_begin_gate(begin: Adapter) -> None:
    job = begin.submit()
    begin.slurm.update(job, "priority=7777")
    begin.done(Verb.CLOSE, job)
    begin.start(job, "n1")
    begin.requeue(job)
    begin.done(Verb.CLOSE, job)
    assert begin.slurm.look(job).priority == 7777


def test_the_hold_gate_keeps_a_job_with_a_fixed_priority_back_by_a_begin_time(hold: Adapter) -> None:
    blocker = hold.slurm.sbatch_running("-w", "n1", "--exclusive")
    job = hold.submit()
    hold.done(Verb.OPEN, job, "n1")
    hold.slurm.update(job, "priority=7777")
    hold.slurm.wait(job, lambda _: hold.slurm.do("sprio", "-h", "-j", job).stdout.split()[0] == job)
    hold.done(Verb.CLOSE, job)
    closed = hold.slurm.look(job)
    assert (closed.priority, closed.eligible > time.time() + 600) == (7777, True)
    seen, row = hold.job(job)
    assert seen.jobs.gated[row]
    hold.slurm.do("scancel", blocker)


def test_a_hold_beside_a_begin_time_is_not_the_one_that_a_job_was_gated_with(hold: Adapter) -> None:
    job = hold.submit("--begin=now+500")
    assert hold.blocked(job) is Blocked.USER_HOLD
    assert hold.do(Verb.OPEN, job, "n1").result is Result.REFUSED
    assert hold.slurm.look(job).priority == 0


def test_a_gate_that_its_user_moved_is_not_opened_on_the_old_word(begin: Adapter) -> None:
    job = begin.submit(user="games")
    ordered = begin.action(Verb.OPEN, job, ("n1",))
    begin.slurm.do("scontrol", "update", f"jobid={job}", "starttime=now+300", user="games")
    (outcome,) = begin.cluster.actuate([ordered])
    assert (outcome.result, outcome.detail) == (Result.REFUSED, "its begin time was moved by somebody")


def test_the_users_own_node_list_comes_back_when_a_job_is_closed(adapter: Adapter) -> None:
    blocker = adapter.slurm.sbatch_running("-w", "n2", "--exclusive")
    job = adapter.submit("-w", "n3")
    adapter.done(Verb.OPEN, job, "n2")
    assert adapter.slurm.look(job).pinned == "n2"
    adapter.done(Verb.CLOSE, job)
    assert adapter.slurm.look(job).pinned == "n3"
    adapter.slurm.do("scancel", blocker)


def test_tasks_of_an_array_start_one_by_one_and_the_rest_stays_closed(adapter: Adapter) -> None:
    array = adapter.submit("--array=1-3")
    adapter.done(Verb.CLOSE, f"{array}_1", whole=True)
    adapter.start(f"{array}_2", "n2")
    adapter.requeue(f"{array}_2")
    adapter.start(f"{array}_1", "n1")
    seen, row = adapter.job(f"{array}_2")
    assert (seen.jobs.restarts[row], seen.jobs.gated[row]) == (1, True)
    adapter.done(Verb.CLOSE, f"{array}_2")
    adapter.start(f"{array}_3", "n1")
    assert stays(lambda: adapter.slurm.look(f"{array}_2").state == "PENDING")
    assert adapter.slurm.look(f"{array}_1").priority > 0
    adapter.start(f"{array}_2", "n3")
    assert adapter.slurm.look(f"{array}_2").restarts == 1


def test_closing_an_array_leaves_its_running_tasks_as_they_are(adapter: Adapter) -> None:
    array = adapter.submit("--array=1-3")
    adapter.start(f"{array}_1", "n1")
    before = adapter.slurm.look(f"{array}_1")
    adapter.done(Verb.CLOSE, f"{array}_2", whole=True)
    assert adapter.slurm.look(f"{array}_1") == before


def test_freeing_undoes_gate_and_node_list(adapter: Adapter) -> None:
    blocker = adapter.slurm.sbatch_running("-w", "n2", "--exclusive")
    job = adapter.submit()
    adapter.done(Verb.OPEN, job, "n2")
    adapter.done(Verb.FREE, job)
    assert adapter.slurm.wait_state(job, "RUNNING").nodes != "n2"
    adapter.slurm.do("scancel", blocker)


def test_fail_open_frees_what_we_closed_and_nothing_else(adapter: Adapter) -> None:
    closed, array = adapter.submit(), adapter.submit("--array=1-2")
    gone_round = adapter.submit()
    adapter.start(gone_round, "n1")
    adapter.requeue(gone_round)
    foreign = adapter.slurm.sbatch_waiting()
    held = adapter.slurm.sbatch("-H", user="games")
    for job in (closed, gone_round):
        adapter.done(Verb.CLOSE, job)
    adapter.done(Verb.CLOSE, f"{array}_1", whole=True)
    marks = adapter.cluster.marks.all()
    freed = liberate(adapter.commands, marks, time.time)
    assert freed.left == ()
    for job in (closed, gone_round, f"{array}_1", f"{array}_2"):
        adapter.slurm.wait_state(job, "RUNNING")
    assert adapter.slurm.look(foreign).state == "PENDING"
    assert adapter.slurm.look(held).reason == "JobHeldUser"


def test_fail_open_gives_a_begin_time_of_its_users_own_back(adapter: Adapter) -> None:
    job = adapter.slurm.sbatch("--gpus=1", "--begin=now+300", user="games")
    own = adapter.slurm.look(job).eligible
    adapter.done(Verb.CLOSE, job)
    assert adapter.slurm.look(job).eligible != own
    freed = liberate(adapter.commands, adapter.cluster.marks.all(), time.time)
    assert (freed.freed, freed.left) == (1, ())
    assert (adapter.slurm.look(job).state, adapter.slurm.look(job).eligible) == ("PENDING", own)


def test_fail_open_finds_our_jobs_by_their_stamp_when_the_marks_are_lost(adapter: Adapter) -> None:
    job, foreign = adapter.submit(), adapter.slurm.sbatch_waiting()
    freed = liberate(adapter.commands, (), time.time, lost=True)
    assert (freed.freed, freed.left) == (1, ())
    adapter.slurm.wait_state(job, "RUNNING")
    assert adapter.slurm.look(foreign).state == "PENDING"


def test_one_users_comment_speaks_for_nobody_elses_job(begin: Adapter) -> None:
    victim = begin.submit()
    forged = f"\x1e\n{victim}\x1f\x1f/evil\x1fnothing"
    begin.slurm.sbatch_waiting(f"--comment=slurm_fair:v1{forged}", user="games")
    seen, row = begin.job(victim)
    assert seen.jobs.checkpoints[row]
    assert seen.jobs.gated[row]


def test_an_acknowledgement_in_the_comment_is_read_for_the_job_that_was_asked(adapter_lab: Slurm) -> None:
    adapter = Adapter(adapter_lab, "begin", reports="comment")
    try:
        asked, other = adapter.submit(), adapter.submit()
        for job in (asked, other):
            adapter.start(job, "n1")
        for job in (asked, other):
            token = f"slurm_fair_ack:job={job},restart=0,saved=1,time={time.time():.3f},step=4"
            adapter_lab.update(job, f"comment=slurm_fair:v1 {token}")
        seen = adapter.observe({parse_label(asked): time.time() - 1})
        answers = dict(zip(seen.jobs.key.tolist(), seen.jobs.acknowledged.tolist(), strict=True))
        assert (answers[parse_label(asked)], answers[parse_label(other)]) == (1, 0)
    finally:
        adapter_lab.clear()


def test_gpus_are_counted_where_accounting_does_not_track_them() -> None:
    with Lab(spec=LabSpec(nodes=2, database=False, settings=QUICK)) as running:
        slurm = Slurm(running)
        adapter = Adapter(slurm, "begin")
        shapes = (
            ("--gpus=2",),
            ("-N2", "--gpus-per-node=3", "--gpus=6"),
            ("-n4", "--gpus-per-task=1", "--gpus=4"),
        )
        jobs = [parse_label(slurm.sbatch_waiting(*shape)) for shape in shapes]
        runs = slurm.sbatch_running("-N2", "--gpus=4", "--gpus-per-node=2")
        seen = adapter.observe()
        gpus = dict(zip(seen.jobs.key.tolist(), seen.jobs.gpus.tolist(), strict=True))
        assert [gpus[job] for job in jobs] == [2, 6, 4]
        assert gpus[parse_label(runs)] == 4
        assert seen.held.gpus.tolist() == [2, 2]


def test_a_frozen_controller_makes_an_act_refused_before_it_and_a_look_blind(begin: Adapter) -> None:
    job = begin.submit()
    ordered = begin.action(Verb.OPEN, job, ("n1",))
    begin.slurm.lab.freeze("slurmctld")
    try:
        (outcome,) = begin.cluster.actuate([ordered])
        blind = begin.cluster.observe({})
    finally:
        begin.slurm.lab.thaw("slurmctld")
    assert (outcome.result, outcome.detail.startswith("not tried: squeue: ")) == (Result.REFUSED, True)
    assert isinstance(blind, Blind)
    seen, row = begin.job(job)
    assert seen.jobs.state[row] == JobState.WAITING
