"""The only writer to Slurm, against programs that answer from a table and write down what they were asked."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.reading.details import Details
from slurm_fair.slurm.reading.stamp import Stamp
from tests.support.actuator_bench import (
    CLOSED,
    GATE,
    NOW,
    OPENED,
    PINNED,
    RUNNING,
    SUBMIT,
    TRIED_AT_FIRST,
    WAITING,
    Bench,
    action,
    mark,
    sent,
)
from tests.support.slurm_stub import Stub, row

# -- what is sent, when it works --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "looks", "lines"),
    [
        (Verb.CLOSE, [WAITING, CLOSED], ["update jobid=7 starttime=uts1795009500"]),
        (
            Verb.OPEN,
            [WAITING, PINNED, OPENED],
            ["update jobid=7 reqnodelist=n1", "update jobid=7 starttime=now"],
        ),
        (Verb.REQUEUE, [RUNNING, row(State="COMPLETING", RestartCnt=1)], ["requeue incomplete 7"]),
        (Verb.REQUEUE, [RUNNING, row(RestartCnt=1)], ["requeue incomplete 7"]),
        (Verb.ASK, [RUNNING], []),
    ],
)
def test_an_act_that_shows_its_effect_is_done(
    stub: Stub, verb: Verb, looks: list[str], lines: list[str]
) -> None:
    stub.answers("squeue", *looks)
    assert Bench(stub).do(action(verb)) == [(Result.DONE, "")]
    assert sent(stub) == lines


HELD = {"PriorityLong": 0, "Reason": "JobHeldUser", "EligibleTime": "N/A"}


def test_the_hold_that_a_job_was_submitted_with_gives_way_to_a_begin_time(stub: Stub) -> None:
    stub.answers("squeue", row(**HELD), TRIED_AT_FIRST, CLOSED)
    bench = Bench(stub)
    bench.actuator.details._known[7, 0] = _stamped()
    assert bench.do(action(Verb.CLOSE)) == [(Result.DONE, "")]
    assert sent(stub) == ["update jobid=7 starttime=uts1795009500", "release 7"]
    assert bench.diary.marks_now[pack(7), False].gate_until == GATE + 500


def test_a_hold_is_ours_until_it_is_seen_lifted(stub: Stub) -> None:
    still = row(**HELD | {"EligibleTime": "1795009500"})
    stub.answers("squeue", row(**HELD), TRIED_AT_FIRST, still)
    stub.answers("scontrol", (1, "", "Unexpected message received for job 7"))
    bench = Bench(stub)
    bench.actuator.details._known[7, 0] = _stamped()
    assert bench.do(action(Verb.CLOSE))[0][0] is Result.UNKNOWN
    ours = bench.diary.marks_now[pack(7), False]
    assert (ours.gate_until, ours.gate_before, ours.blameless) == (math.inf, GATE + 500, True)
    again = Stub(stub.folder / "again")
    again.answers("squeue", still, CLOSED)
    again.answers("scontrol", "")
    assert Bench(again, marks=(ours,)).do(action(Verb.CLOSE)) == [(Result.DONE, "")]
    assert sent(again) == ["update jobid=7 starttime=uts1795009500", "release 7"]


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.FREE])
@pytest.mark.parametrize("ours", [(), (mark(),), (mark(0.0),)], ids=["unknown", "gated", "opened"])
@pytest.mark.parametrize("reason", ["JobHeldAdmin", "JobHeldUser", "job requeued in held state"])
def test_the_hold_of_somebody_else_is_never_lifted_whatever_the_stamp_says(
    stub: Stub, verb: Verb, ours: tuple[Mark, ...], reason: str
) -> None:
    stub.answers("squeue", row(PriorityLong=0, Reason=reason))
    bench = Bench(stub, marks=ours)
    bench.actuator.details._known[7, 0] = _stamped()
    bench.do(action(verb))
    assert "release" not in "".join(sent(stub))


def test_a_hold_that_an_earlier_release_set_is_lifted(stub: Stub) -> None:
    ours = (mark(math.inf),)
    held = row(PriorityLong=0, Reason="JobHeldAdmin")
    stub.answers("squeue", held, row(PriorityLong=0, ReqNodes="n1", Reason="JobHeldAdmin"), OPENED)
    bench = Bench(stub, marks=ours)
    assert bench.do(action(Verb.OPEN)) == [(Result.DONE, "")]
    assert sent(stub) == ["update jobid=7 reqnodelist=n1", "update jobid=7 eligibletime=now+1", "release 7"]
    assert bench.diary.marks_now[pack(7), False].gate_until == 0.0


def test_a_job_that_left_its_node_in_this_second_starts_in_the_next(stub: Stub) -> None:
    requeued = {"RestartCnt": 1, "SubmitTime": str(int(NOW)), "EligibleTime": str(int(NOW) + 121)}
    stub.answers("squeue", row(**requeued), row(ReqNodes="n1", **requeued), OPENED)
    act = action(Verb.OPEN, submit=NOW, restarts=1, until=NOW + 121)
    Bench(stub).do(act)
    assert sent(stub)[-1] == "update jobid=7 starttime=now+1"


def test_of_an_unsplit_array_only_the_waiting_tasks_are_named(stub: Stub) -> None:
    stub.answers("squeue", row(ArrayTaskID="1,3-4%2"), row(ArrayTaskID="1,3-4%2", EligibleTime="1795009500"))
    assert Bench(stub).do(action(Verb.CLOSE, whole_record=True)) == [(Result.DONE, "")]
    assert sent(stub) == ["update jobid=7_[1,3-4] starttime=uts1795009500"]


def test_an_array_with_too_odd_a_task_list_is_named_as_a_whole(stub: Stub) -> None:
    odd = ",".join(str(number) for number in range(1, 1000, 2))
    stub.answers("squeue", row(ArrayTaskID=odd), row(ArrayTaskID=odd, EligibleTime="1795009500"))
    bench = Bench(stub, marks=(mark(whole=True),))
    assert bench.do(action(Verb.CLOSE, whole_record=True)) == [(Result.DONE, "")]
    assert sent(stub) == ["update jobid=7 starttime=uts1795009500"]


def test_closing_gives_the_users_own_nodes_back(stub: Stub) -> None:
    stub.answers("squeue", PINNED, row(ReqNodes="n[4-5]", EligibleTime="1795009500"))
    bench = Bench(stub, marks=(mark(0.0, pinned=True, user_nodes="n[4-5]", pin="n1"),))
    assert bench.do(action(Verb.CLOSE)) == [(Result.DONE, "")]
    assert sent(stub) == ["update jobid=7 reqnodelist=n4,n5 starttime=uts1795009500"]
    assert bench.diary.marks_now[pack(7), False] == Mark(
        pack(7), 7, False, SUBMIT, 0, GATE + 500, False, NOW, "n[4-5]", pin="n1", user_begin=GATE
    )


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.FREE])
def test_an_act_that_leaves_our_node_list_on_a_job_is_not_done(stub: Stub, verb: Verb) -> None:
    left = row(ReqNodes="n1", EligibleTime="1795009500" if verb is Verb.CLOSE else str(int(NOW)))
    stub.answers("squeue", PINNED, left)
    bench = Bench(stub, marks=(mark(pinned=True, pin="n1"),))
    assert bench.do(action(verb)) == [(Result.UNKNOWN, "no effect was seen")]
    assert bench.diary.marks_now[pack(7), False].pinned


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.FREE])
def test_a_node_list_that_somebody_put_in_the_place_of_ours_stays(stub: Stub, verb: Verb) -> None:
    theirs = {"ReqNodes": "n[2-3]"}
    later = row(EligibleTime="1795009500" if verb is Verb.CLOSE else str(int(NOW)), **theirs)
    stub.answers("squeue", row(**theirs), later)
    bench = Bench(stub, marks=(mark(pinned=True, pin="n1"),))
    assert bench.do(action(verb)) == [(Result.DONE, "")]
    assert "reqnodelist" not in "".join(sent(stub))


@pytest.mark.parametrize(("booted", "lines"), [(2.0, "reqnodelist= "), (0.0, "")])
def test_a_node_list_of_ours_that_came_back_with_slurms_last_state_is_taken_away(
    stub: Stub, booted: float, lines: str
) -> None:
    stub.answers("squeue", PINNED, row(ReqNodes="" if lines else "n1", EligibleTime="1795009500"))
    stub.answers("scontrol", *(() if lines else ("BOOT_TIME = 0\n",)), "")
    bench = Bench(stub, marks=(mark(pin="n1"),))
    bench.actuator.ours.booted_at = booted
    assert bench.do(action(Verb.CLOSE)) == [(Result.DONE, "")]
    assert sent(stub) == [f"update jobid=7 {lines}starttime=uts1795009500"]


@pytest.mark.parametrize(
    ("held", "ours", "eligible", "lines"),
    [
        (False, mark(GATE), GATE, ["update jobid=7 starttime=now"]),
        (False, mark(GATE, pinned=True), GATE, ["update jobid=7 reqnodelist= starttime=now"]),
        (False, mark(GATE - 900), GATE, []),  # its user moved it
        (True, mark(math.inf), NOW - 9, ["release 7"]),
        (True, mark(math.inf), GATE, ["release 7"]),  # its user's begin time stays
        (
            True,
            mark(GATE, pinned=True),
            GATE,
            ["update jobid=7 reqnodelist= starttime=now"],
        ),  # held by its user
        (True, mark(0.0, pinned=True), NOW - 9, ["update jobid=7 reqnodelist="]),
    ],
)
def test_freeing_undoes_what_is_ours_and_nothing_else(
    stub: Stub, held: bool, ours: Mark, eligible: float, lines: list[str]
) -> None:
    before = {"PriorityLong": 0 if held else 100, "EligibleTime": str(int(eligible))}
    released = 100 if ours.gate_until == math.inf else before["PriorityLong"]
    opened = str(int(NOW)) if "start" in "".join(lines) else before["EligibleTime"]
    stub.answers("squeue", row(**before), row(PriorityLong=released, EligibleTime=opened))
    bench = Bench(stub, marks=(ours,))
    assert bench.do(action(Verb.FREE)) == [(Result.DONE, "")]
    assert sent(stub) == lines
    assert bench.diary.marks_now == {}


# -- what is not sent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "seen", "detail"),
    [
        (Verb.OPEN, "", "it is no longer listed"),
        (Verb.OPEN, row(SubmitTime="1795000001"), "it was requeued or replaced since it was looked at"),
        (Verb.OPEN, row(RestartCnt=1), "it was requeued or replaced since it was looked at"),
        (Verb.OPEN, RUNNING, "it is running"),
        (Verb.OPEN, row(PriorityLong=0, Reason="JobHeldUser"), "it is held (JobHeldUser)"),
        (Verb.OPEN, row(Dependency="afterok:3"), "it waits for another job"),
        (Verb.OPEN, row(EligibleTime="1795008000"), "its begin time was moved by somebody"),
        (Verb.CLOSE, RUNNING, "it is running"),
        (Verb.CLOSE, row(State="COMPLETED"), "it is done"),
        (Verb.FREE, RUNNING, "it is running"),
        (Verb.REQUEUE, WAITING, "it is waiting"),
        (Verb.REQUEUE, row(State="COMPLETING"), "it is ending"),
        (Verb.REQUEUE, row(State="CANCELLED"), "it is done"),
        (Verb.REQUEUE, row(State="SUSPENDED"), "it is suspended"),
        (Verb.ASK, row(State="COMPLETING"), "it is ending"),
    ],
)
def test_an_act_that_no_longer_applies_is_refused_before_anything_is_sent(
    stub: Stub, verb: Verb, seen: str, detail: str
) -> None:
    stub.answers("squeue", seen)
    assert Bench(stub).do(action(verb)) == [(Result.REFUSED, detail)]
    assert (stub.ran("scontrol"), stub.ran("scancel")) == ([], [])


@pytest.mark.parametrize("whole", [False, True])
def test_a_start_without_nodes_or_of_a_whole_array_is_refused(stub: Stub, whole: bool) -> None:
    stub.answers("squeue", row(ArrayTaskID="1-3") if whole else WAITING)
    act = action(Verb.OPEN, nodes=("n1",) if whole else (), whole_record=whole)
    assert Bench(stub).do(act) == [(Result.REFUSED, "no nodes are named for it")]
    assert stub.ran("scontrol") == []


def test_no_acts_mean_no_calls(stub: Stub) -> None:
    assert Bench(stub).do() == []
    assert stub.calls == []


def test_the_begin_time_of_a_job_that_somebody_holds_is_not_renewed(stub: Stub) -> None:
    stub.answers("squeue", row(PriorityLong=0, Reason="JobHeldUser"))
    unheld = Bench(stub, marks=(mark(0.0),))
    unheld.actuator.details._known[7, 0] = _stamped()
    assert unheld.do(action(Verb.CLOSE)) == [(Result.REFUSED, "it is held (JobHeldUser)")]
    assert sent(stub) == []


def _stamped() -> Details:
    """The stamp of a job that was submitted held."""
    return Details(Stamp(1, gate="hold"), "/home/alice", ())


# -- lists ---------------------------------------------------------------------------------------------------


def test_each_job_of_a_list_gets_its_own_outcome(stub: Stub) -> None:
    jobs = (7, 8, 9, 10)
    before = "".join(row(JobID=job) for job in jobs)
    closed = {"EligibleTime": "1795009500"}
    after = row(**closed) + row(JobID=8) + row(JobID=9) + row(JobID=10, State="RUNNING")
    stub.answers("squeue", before, after)
    stub.answers("scontrol", (1, "", "Invalid node name specified for job 8\n"))
    assert Bench(stub).do(*(action(Verb.CLOSE, job) for job in jobs)) == [
        (Result.DONE, ""),
        (Result.REFUSED, "Invalid node name specified for job 8"),
        (Result.UNKNOWN, "no effect was seen"),
        (Result.REFUSED, "it started first"),
    ]


def test_a_list_longer_than_a_batch_goes_in_several(stub: Stub) -> None:
    stub.answers("squeue", "")
    results = Bench(stub).do(*(action(Verb.CLOSE, job) for job in range(1, 902)))
    assert set(results) == {(Result.REFUSED, "it is no longer listed")}
    assert len(stub.ran("squeue")) == 1


def test_only_jobs_whose_pin_was_seen_are_opened(stub: Stub) -> None:
    before = row() + row(JobID=8)
    stub.answers("squeue", before, row(ReqNodes="n1") + row(JobID=8), OPENED + row(JobID=8))
    stub.answers("scontrol", (1, "", "Requested nodes are busy for job 8\n"), "")
    results = Bench(stub).do(action(Verb.OPEN), action(Verb.OPEN, 8))
    assert results == [(Result.DONE, ""), (Result.REFUSED, "Requested nodes are busy for job 8")]
    assert sent(stub)[2:] == ["update jobid=7 starttime=now"]


def test_a_daemon_that_may_not_act_writes_and_sends_nothing(stub: Stub) -> None:
    bench = Bench(stub)

    def fence() -> None:
        raise PermissionError("another daemon acts")

    bench.actuator.fence = fence
    with pytest.raises(PermissionError):
        bench.actuator.actuate([action(Verb.CLOSE)])
    assert (bench.diary.events, stub.calls) == ([], [])


# -- hostile words -------------------------------------------------------------------------------------------

HOSTILE = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["n1 nice=-9", "n1\nrelease 8", "n1,n2", "n[1-2]", "", "-n1", "n1\x00", "n1\u2028x", "n1\n"]
    ),
)


@settings(max_examples=60, deadline=None)
@given(nodes=st.lists(HOSTILE, min_size=1, max_size=3), own=HOSTILE, until=st.floats() | st.floats(1e9, 2e9))
def test_no_name_or_time_makes_more_than_one_word_of_a_command(
    nodes: list[str], own: str, until: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stub = Stub(Path(folder))
        stub.answers("squeue", WAITING)
        stub.answers("scontrol", "")
        bench = Bench(stub, marks=(mark(GATE, pinned=True, user_nodes=own),))
        acts = (action(Verb.OPEN, nodes=tuple(nodes)), action(Verb.CLOSE, until=until), action(Verb.FREE))
        for act in acts:
            bench.do(act)
