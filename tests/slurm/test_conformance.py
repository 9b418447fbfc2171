"""Facts that the design takes for granted of Slurm, done to a real one: each test states one by doing it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.slurm.reading.changes import Counters
from tests.support.on_slurm import Slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available(database=True) is not None, reason=str(available(database=True))),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user"),
]
SPEC = LabSpec(
    nodes=3,
    users={"games": ("vision",)},
    operators=("daemon",),
    settings={"KillWait": "2", "MessageTimeout": "2"},
)
REUSING = LabSpec(nodes=1, database=False, settings={"FirstJobId": "40", "MaxJobId": "46", "MinJobAge": "2"})
UNEXPECTED = "Unexpected message received"


@pytest.fixture(scope="module")
def lab() -> Iterator[Slurm]:
    """One cluster with accounting for all facts but the reuse of ids."""
    with Lab(spec=SPEC) as running:
        yield Slurm(running)


@pytest.fixture
def slurm(lab: Slurm) -> Iterator[Slurm]:
    """The cluster, emptied after each fact."""
    yield lab
    lab.clear()


def far() -> str:
    """A begin time far ahead, as scontrol takes it in every time zone."""
    return f"uts{int(time.time()) + 900}"


# -- what has changed ---------------------------------------------------------------------------------------


def test_a_counter_moves_with_every_change_and_with_no_look(slurm: Slurm) -> None:
    counted = {"before": counters(slurm)}
    for command in (
        ("squeue",),
        ("sinfo",),
        ("scontrol", "show", "config"),
        ("sshare",),
        ("scontrol", "ping"),
    ):
        slurm.do(*command)
    counted["looks"] = counters(slurm)
    assert counted["looks"] == counted["before"]
    job = slurm.sbatch("--begin=now+600", body="sleep 2")
    counted["submission"] = counters(slurm)
    slurm.do("scontrol", "update", f"jobid={job}", "starttime=now")
    counted["update"] = counters(slurm)
    slurm.wait_state(job, "RUNNING")
    counted["start"] = counters(slurm)
    slurm.wait_state(job, "COMPLETED")
    counted["end"] = counters(slurm)
    told = list(counted.values())[1:]
    assert all(one != other for one, other in pairwise(told)), counted


def counters(slurm: Slurm) -> Mapping[str, int]:
    """The counters that slurmctld shows; slurmds that register add to them in their own time."""
    found = Counters.read(slurm.do("sdiag").stdout)
    assert found is not None
    return {name: count for name, count in found.moved.items() if name != "MESSAGE_NODE_REGISTRATION_STATUS"}


# -- requeue ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("end", "body"), [("COMPLETED", "true"), ("FAILED", "exit 3"), ("CANCELLED", "")])
def test_a_requeue_runs_a_finished_job_again_but_an_incomplete_requeue_leaves_it(
    slurm: Slurm, end: str, body: str
) -> None:
    job = slurm.sbatch(body=body) if body else slurm.sbatch_waiting()
    if not body:
        slurm.do("scancel", job)
    ended = slurm.wait_state(job, end)

    assert slurm.do("scontrol", "requeue", "incomplete", job).returncode == 0
    assert slurm.look(job) == ended

    assert slurm.do("scontrol", "requeue", job).returncode == 0
    again = slurm.wait_state(job, "PENDING")
    assert again.restarts == ended.restarts + 1


def test_the_restart_is_counted_at_once_and_the_submission_moves_when_the_job_waits_again(
    slurm: Slurm,
) -> None:
    job = slurm.sbatch_running(body="trap '' TERM; sleep 300")
    before = slurm.look(job)
    slurm.wait(job, lambda _: time.time() > before.submit + 1)  # so that the new submission differs
    slurm.do("scontrol", "requeue", "incomplete", job)
    ending = slurm.look(job)
    assert (ending.state, ending.restarts, ending.submit) == ("COMPLETING", 1, before.submit)
    waiting = slurm.wait_state(job, "PENDING")
    assert waiting.restarts == 1
    assert waiting.submit > before.submit


def test_a_job_that_ends_by_itself_keeps_its_count_though_it_is_requeued_while_it_leaves(
    slurm: Slurm,
) -> None:
    job = slurm.sbatch_running(body="trap '' TERM; sleep 300")
    slurm.do("scancel", job)
    assert slurm.look(job).state == "COMPLETING"
    assert slurm.do("scontrol", "requeue", "incomplete", job).returncode == 0
    assert slurm.look(job).restarts == 0
    assert slurm.wait_state(job, "CANCELLED").restarts == 0


def test_a_requeued_job_is_kept_back_for_two_minutes_and_an_eligible_time_clears_that(slurm: Slurm) -> None:
    job = slurm.sbatch_running()
    slurm.do("scontrol", "requeue", "incomplete", job)
    waiting = slurm.wait_state(job, "PENDING")
    assert 119 <= waiting.eligible - waiting.submit <= 125
    assert slurm.update(job, "eligibletime=now+1").returncode == 0
    assert slurm.wait_state(job, "RUNNING").restarts == 1


def restarted(slurm: Slurm, job: str, wait_for_next_second: bool) -> bool:
    """Requeue a running job and start it again on its node; whether it lived."""
    node = slurm.look(job).nodes
    slurm.do("scontrol", "requeue", "incomplete", job)
    waiting = slurm.wait_state(job, "PENDING")
    slurm.update(job, f"reqnodelist={node}", f"eligibletime={'now+1' if wait_for_next_second else 'now'}")
    return slurm.wait(job, lambda seen: seen.state not in ("PENDING", "CONFIGURING")) is not None and lives(
        slurm, job, waiting.restarts
    )


def lives(slurm: Slurm, job: str, restarts: int) -> bool:
    """True where a job that just started keeps running: a refused launch shows within a second."""
    deadline = time.monotonic() + 0.8
    while time.monotonic() < deadline:
        if (seen := slurm.look(job)).state != "RUNNING":
            assert seen.restarts == restarts
            return False
        time.sleep(0.05)
    return True


def test_a_job_started_in_the_second_in_which_it_left_its_node_can_be_lost_and_never_in_the_next(
    slurm: Slurm,
) -> None:
    careful = slurm.sbatch_running()
    assert all(restarted(slurm, careful, wait_for_next_second=True) for _ in range(3))
    tries = (restarted(slurm, slurm.sbatch_running(), wait_for_next_second=False) for _ in range(12))
    assert all(tries) is (slurm.release >= (26, 5))  # up to 24.11 the node takes it for the run that it left


# -- deadlines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shut", [("--begin=now+600",), ("-H", "--time=20")], ids=["a begin time", "a hold"])
def test_from_some_release_on_a_limit_that_ends_behind_the_deadline_is_refused_at_submission_only(
    slurm: Slurm, shut: tuple[str, ...]
) -> None:
    """The limit counts from the begin time, or from now."""
    argv = ("sbatch", "--parsable", "-A", "vision", "--gpus=1", "-o", "/dev/null", "--time=2", *shut)
    done = slurm.do(*argv, "--deadline=now+660", "--wrap=true")
    assert (done.returncode != 0) is (slurm.release >= (24, 11)), done.stderr
    assert done.returncode == 0 or "Requested time limit is invalid" in done.stderr
    job = slurm.do(*argv, "--deadline=now+9000", "--wrap=true").stdout.strip()
    assert slurm.update(job, "deadline=now+660").returncode == 0
    assert slurm.update(job, f"starttime={far()}").returncode == 0
    assert slurm.look(job).state == "PENDING"


# -- hold and release ---------------------------------------------------------------------------------------


def test_a_hold_on_a_running_job_lets_it_run_and_catches_it_when_it_is_requeued(slurm: Slurm) -> None:
    job = slurm.sbatch_running()
    assert slurm.do("scontrol", "hold", job).returncode == 0
    assert (slurm.look(job).state, slurm.look(job).priority) == ("RUNNING", 0)
    slurm.do("scontrol", "requeue", "incomplete", job)
    assert slurm.wait_state(job, "PENDING").reason == "JobHeldAdmin"


def test_the_release_of_a_job_that_is_not_held_takes_its_nice_and_its_fixed_priority(slurm: Slurm) -> None:
    nice, fixed = slurm.sbatch_waiting("--nice=50"), slurm.sbatch_waiting()
    slurm.update(fixed, "priority=5000")
    slurm.do("scontrol", "release", f"{nice},{fixed}")
    assert slurm.look(nice).nice == 0
    assert slurm.look(fixed).priority < 5000


def test_the_release_of_a_held_job_leaves_its_nice_but_a_hold_costs_a_fixed_priority(slurm: Slurm) -> None:
    nice, fixed = slurm.sbatch_waiting("--nice=50"), slurm.sbatch_waiting()
    slurm.update(fixed, "priority=5000")
    slurm.do("scontrol", "hold", f"{nice},{fixed}")
    assert slurm.look(fixed).priority == 0
    slurm.do("scontrol", "release", f"{nice},{fixed}")
    assert slurm.look(nice).nice == 50
    assert slurm.look(fixed).priority < 5000


def test_a_fixed_priority_outlives_a_requeue_and_shows_in_sprio_as_one_without_factors(slurm: Slurm) -> None:
    job = slurm.sbatch_running()
    slurm.update(job, "priority=5000")
    slurm.do("scontrol", "requeue", "incomplete", job)
    assert slurm.wait_state(job, "PENDING").priority == 5000
    slurm.update(job, "numnodes=3-3", "excnodelist=n1", "eligibletime=now")
    line = slurm.do("sprio", "-h", "-j", job, "-o", "%Y|%A|%F|%J|%P|%Q|%N").stdout.strip()
    assert line == "5000|0|0|0|0|0|0"


def test_an_operators_hold_of_a_users_hold_takes_the_release_from_the_user(slurm: Slurm) -> None:
    taken, left = (slurm.sbatch_waiting("-H", user="games") for _ in range(2))
    slurm.do("scontrol", "hold", taken, user="daemon")
    assert slurm.look(taken).reason == "JobHeldAdmin"
    refused = slurm.do("scontrol", "release", taken, user="games")
    assert (refused.returncode, "Access/permission denied" in refused.stderr) == (1, True)
    slurm.do("scontrol", "uhold", left, user="daemon")
    assert slurm.do("scontrol", "release", left, user="games").returncode == 0


def scheduling(slurm: Slurm, job: str) -> tuple[str, str, str]:
    """Slurm's times of a job: its submission, its eligible time, and when it last tried to start it."""
    said = slurm.lab.run(
        "squeue", "-h", "-j", job, "-O", "SubmitTime:|,EligibleTime:|,LastSchedEval:|"
    ).stdout
    submit, eligible, tried, _ = said.split("|")
    return submit, eligible, tried


def test_a_hold_takes_the_eligible_time_away_and_leaves_when_slurm_last_tried_to_start_the_job(
    slurm: Slurm,
) -> None:
    blockers = [slurm.sbatch_running("-w", node, "--exclusive") for node in ("n1", "n2", "n3")]
    job, untouched = slurm.sbatch("-H", user="games"), slurm.sbatch("-H", user="games")
    submit, eligible, tried = scheduling(slurm, job)
    assert (eligible, tried) == ("N/A", submit)
    slurm.do("scontrol", "release", job)
    slurm.wait(job, lambda _: scheduling(slurm, job)[2] > submit, 30)
    assert slurm.look(job).eligible > 0
    time.sleep(1.1)  # a hold in the very second of the eligible time leaves that time
    slurm.do("scontrol", "hold", job, user="games")
    assert slurm.look(job).reason == "JobHeldUser"
    assert scheduling(slurm, job)[1] == "N/A"
    time.sleep(4)
    assert scheduling(slurm, job)[2] > submit
    first, eligible, tried = scheduling(slurm, untouched)
    assert (eligible, tried) == ("N/A", first), "it is never tried while it is held"
    slurm.do("scancel", *blockers)


# -- the begin gate -----------------------------------------------------------------------------------------


def test_a_begin_time_opens_by_itself_and_touches_neither_priority_nor_nice(slurm: Slurm) -> None:
    job = slurm.sbatch_waiting("--nice=7", user="games")
    before = slurm.look(job)
    opened = slurm.lab.run(
        "scontrol", "update", f"jobid={job}", f"starttime=uts{int(time.time()) + 2}", user="daemon"
    )
    assert opened.returncode == 0
    assert slurm.look(job).state == "PENDING"
    after = slurm.wait_state(job, "RUNNING")
    assert (after.nice, after.priority) == (before.nice, before.priority)


def test_a_begin_time_is_refused_on_a_running_job(slurm: Slurm) -> None:
    job = slurm.sbatch_running()
    refused = slurm.update(job, f"starttime={far()}")
    assert (refused.returncode, "Job is no longer pending execution" in refused.stderr) == (1, True)
    assert slurm.look(job).state == "RUNNING"


@pytest.mark.parametrize("line", [("reqnodelist=n99", "starttime=now"), ("starttime=now", "reqnodelist=n99")])
def test_an_unknown_node_in_an_update_refuses_the_whole_line(slurm: Slurm, line: tuple[str, str]) -> None:
    job = slurm.sbatch_waiting()
    before = slurm.look(job)
    refused = slurm.update(job, *line)
    assert (refused.returncode, "Invalid node name specified" in refused.stderr) == (1, True)
    assert slurm.look(job).eligible == before.eligible


def test_nodes_are_pinned_for_one_id_at_a_time(slurm: Slurm) -> None:
    one, other = slurm.sbatch_waiting(), slurm.sbatch_waiting()
    assert slurm.update(f"{one},{other}", "reqnodelist=n2").returncode == 1
    assert [slurm.look(job).pinned for job in (one, other)] == ["", ""]


# -- arrays -------------------------------------------------------------------------------------------------


def test_opening_one_task_splits_it_off_and_the_rest_stays_behind_its_gate(slurm: Slurm) -> None:
    array = slurm.sbatch_waiting("--array=1-4")
    slurm.update(f"{array}_2", "reqnodelist=n2")
    slurm.update(f"{array}_2", "starttime=now")
    assert slurm.wait_state(f"{array}_2", "RUNNING").nodes == "n2"
    assert {row.task: row.state for row in slurm.rows(array)} == {"1,3-4": "PENDING", "2": "RUNNING"}


def test_a_requeued_task_keeps_its_own_record_though_squeue_folds_it_into_the_array(slurm: Slurm) -> None:
    array = slurm.sbatch_waiting("--array=1-4%3")
    slurm.update(f"{array}_2", "starttime=now")
    slurm.wait_state(f"{array}_2", "RUNNING")
    slurm.do("scontrol", "requeue", "incomplete", f"{array}_2")
    slurm.wait_state(f"{array}_2", "PENDING")
    folded = slurm.lab.run("squeue", "-h", "-j", array, "-O", "ArrayTaskID:|,RestartCnt:|").stdout
    assert folded.split() == ["1-4|0|"]
    limit = "%3" if slurm.lists_by_record else ""  # a row per task has no room for it
    assert {row.task: row.restarts for row in slurm.rows(array)} == {f"1,3-4{limit}": 0, "2": 1}
    assert " ArrayTaskThrottle=3 " in slurm.lab.run("scontrol", "-o", "show", "job", f"{array}_1").stdout


def test_an_update_of_an_array_reaches_its_split_tasks_too_and_one_of_its_waiting_tasks_does_not(
    slurm: Slurm,
) -> None:
    array = slurm.sbatch_waiting("--array=1-4")
    slurm.update(f"{array}_2", "nice=1")  # splits it off
    slurm.update(f"{array}_3", "starttime=now")
    slurm.wait_state(f"{array}_3", "RUNNING")
    mixed = slurm.update(array, f"starttime={far()}")
    assert mixed.returncode == 1  # the running task refuses; the others are moved
    moved = {row.task: row.eligible for row in slurm.rows(array) if row.state == "PENDING"}
    assert len(set(moved.values())) == 1
    assert slurm.update(f"{array}_[1,4]", "starttime=now+700").returncode == 0
    assert slurm.look(f"{array}_2").eligible == moved["2"] != slurm.look(f"{array}_1").eligible
    assert sorted(row.task for row in slurm.rows(array)) == ["1,4", "2", "3"]


def test_a_hold_of_an_array_marks_its_running_tasks_and_one_of_its_waiting_tasks_does_not(
    slurm: Slurm,
) -> None:
    array = slurm.sbatch_waiting("--array=1-3")
    slurm.update(f"{array}_2", "starttime=now")
    slurm.wait_state(f"{array}_2", "RUNNING")
    slurm.do("scontrol", "hold", f"{array}_[1,3]")
    assert {row.task: row.priority == 0 for row in slurm.rows(array)} == {"1,3": True, "2": False}
    slurm.do("scontrol", "hold", array)
    assert slurm.look(f"{array}_2").priority == 0


# -- lists, ids, other commands -----------------------------------------------------------------------------


def test_a_list_with_one_bad_id_fails_as_a_whole_and_yet_acts_on_the_others(slurm: Slurm) -> None:
    job = slurm.sbatch_waiting()
    listed = slurm.do("scontrol", "hold", f"{job},999999")
    assert (listed.returncode, slurm.look(job).priority) == (1, 0)
    lines = f"update jobid=999999 starttime={far()}\nrelease {job}\nexit\n"
    fed = slurm.lab.run("scontrol", input=lines, check=False)
    assert (fed.returncode, "for job 999999" in fed.stderr) == (1, True)
    assert slurm.look(job).priority > 0


def test_an_empty_id_is_no_error(slurm: Slurm) -> None:
    slurm.sbatch_waiting()
    assert slurm.do("scontrol", "hold", "").returncode == 0
    assert slurm.update("", "starttime=now").returncode == 0
    everything = slurm.do("squeue", "-h", "-j", "", "-o", "%i")
    assert everything.returncode == 0


def test_squeue_leaves_out_a_purged_id_without_a_word_unless_it_is_alone(slurm: Slurm) -> None:
    job = slurm.sbatch_waiting()
    both = slurm.do("squeue", "-h", "-o", "%i", "-j", f"{job},999999")
    assert (both.returncode, both.stdout.split(), both.stderr) == (0, [job], "")
    alone = slurm.do("squeue", "-h", "-j", "999999")
    assert (alone.returncode, "Invalid job id specified" in alone.stderr) == (1, True)


def test_an_unknown_id_is_an_error_to_a_signal_and_none_to_a_cancellation(slurm: Slurm) -> None:
    running = slurm.sbatch_running()
    assert slurm.do("scancel", "999999").returncode == 0
    signal = slurm.do("scancel", "--batch", "--signal=CONT", running, "999999")
    assert signal.returncode == 1
    assert signal.stderr == "scancel: error: Kill job error on job id 999999: Invalid job id specified\n"


def test_one_waiting_job_keeps_scancel_trying_so_that_later_ones_in_the_list_get_no_signal(
    slurm: Slurm,
) -> None:
    waiting = slurm.sbatch_waiting()
    running = slurm.sbatch_running(body="trap 'exit 0' USR1; while :; do sleep 0.1; done")
    stuck = slurm.do("timeout", "2", "scancel", "--batch", "--signal=USR1", waiting, running)
    assert (stuck.returncode, slurm.look(running).state) == (124, "RUNNING")
    slurm.do("scancel", "--batch", "--signal=USR1", running)
    assert slurm.wait_state(running, "COMPLETED").restarts == 0


def test_a_task_gets_its_signal_but_scancel_goes_on_while_others_of_its_array_wait(slurm: Slurm) -> None:
    body = "trap 'exit 0' USR1; while :; do sleep 0.1; done"
    array = slurm.sbatch("--begin=now+600", "--array=1-3", body=body)
    slurm.update(f"{array}_2", "starttime=now")
    slurm.wait_state(f"{array}_2", "RUNNING")
    time.sleep(0.5)  # the script sets its trap
    stuck = slurm.do("timeout", "2", "scancel", "--batch", "--signal=USR1", f"{array}_2")
    assert stuck.returncode == 124
    assert slurm.wait_state(f"{array}_2", "COMPLETED").restarts == 0


def test_a_comment_keeps_separators_and_newlines(slurm: Slurm) -> None:
    comment = "one\x1ftwo\x1e\nthree"
    job = slurm.sbatch_waiting(f"--comment={comment}")
    assert slurm.lab.run("squeue", "-h", "-j", job, "-o", "%k").stdout == f"{comment}\n"


# -- a controller that does not answer ----------------------------------------------------------------------


def test_a_frozen_controller_does_later_what_it_seemed_to_refuse(slurm: Slurm) -> None:
    job = slurm.sbatch_waiting()
    slurm.lab.freeze("slurmctld")
    try:
        answer = slurm.do("scontrol", "hold", job)
    finally:
        slurm.lab.thaw("slurmctld")
    assert (answer.returncode, UNEXPECTED in answer.stderr) == (1, True)
    assert slurm.wait(job, lambda seen: seen.priority == 0).reason == "JobHeldAdmin"


def test_a_dead_controller_reads_like_a_frozen_one_to_an_act_and_like_an_empty_queue_to_json(
    slurm: Slurm,
) -> None:
    job = slurm.sbatch_waiting()
    slurm.lab.halt("slurmctld")
    try:
        act = slurm.do("scontrol", "update", f"jobid={job}", "starttime=now")
        text = slurm.do("squeue", "-h")
        signal = slurm.do("scancel", "--batch", "--signal=USR1", job)
        ping = slurm.do("scontrol", "ping")
        document = slurm.do("squeue", "--json")
    finally:
        slurm.lab.revive("slurmctld")
        slurm.lab.wait_idle_nodes()
    assert (act.returncode, UNEXPECTED in act.stderr) == (1, True)
    assert (text.returncode, "Unable to contact slurm controller" in text.stderr) == (1, True)
    assert signal.returncode != 0
    assert (ping.returncode, "DOWN" in ping.stdout) == (1, True)
    assert document.returncode == 1 or json.loads(document.stdout)["jobs"] == []
    assert slurm.look(job).state == "PENDING"


def test_ids_come_again_and_a_restart_tells_the_same_job_from_another() -> None:
    with Lab(spec=REUSING) as running:
        slurm = Slurm(running)
        requeued = slurm.sbatch_running()
        first = slurm.look(requeued)
        slurm.wait(requeued, lambda _: time.time() > first.submit + 1)
        slurm.do("scontrol", "requeue", "incomplete", requeued)
        again = slurm.wait_state(requeued, "PENDING")
        assert (again.submit > first.submit, again.restarts > first.restarts) == (True, True)
        slurm.do("scancel", requeued)
        ids: list[str] = []
        deadline = time.monotonic() + 30
        while requeued not in ids:
            assert time.monotonic() < deadline, ids
            ids.append(slurm.sbatch(body="true"))
        other = slurm.look(requeued)
        assert (other.submit > first.submit, other.restarts) == (True, 0)
