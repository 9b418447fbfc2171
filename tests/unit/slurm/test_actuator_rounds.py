"""Many acts at once: how often Slurm is asked and told, and what stops them."""

from __future__ import annotations

from itertools import count

import pytest

from slurm_fair.model import Result, Verb
from slurm_fair.model.ids import pack
from tests.support.actuator_bench import GATE, NOW, WAITING, Bench, action, mark, sent
from tests.support.slurm_stub import Stub, row

JOBS = (7, 8, 9, 10, 11)
ALL = "".join(row(JobID=job) for job in JOBS)
SHUT = "".join(row(JobID=job, EligibleTime=str(int(GATE) + 500)) for job in JOBS)


@pytest.fixture(autouse=True)
def _small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_fair.slurm.acting.actuator.ROUND", 2)


def test_many_gates_are_set_with_one_look_before_and_one_after(stub: Stub) -> None:
    stub.answers("squeue", ALL, SHUT)
    assert set(Bench(stub).do(*(action(Verb.CLOSE, job) for job in JOBS))) == {(Result.DONE, "")}
    assert len(stub.ran("squeue")) == 2
    assert len(stub.ran("scontrol")) == 3


def test_more_than_one_scontrol_has_room_for_are_shared_out_and_each_is_answered(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.slurm.acting.actuator.ROUND", 100)
    monkeypatch.setattr("slurm_fair.slurm.acting.sending._AT_LEAST", 2)
    monkeypatch.setattr("slurm_fair.slurm.acting.sending._TOGETHER", 3)
    stub.answers("squeue", ALL, SHUT)
    assert set(Bench(stub).do(*(action(Verb.CLOSE, job) for job in JOBS))) == {(Result.DONE, "")}
    assert sorted(sent(stub)) == sorted(f"update jobid={job} starttime=uts1795009500" for job in JOBS)
    assert len(stub.ran("scontrol")) == 3


def test_gates_for_which_the_look_has_grown_old_wait_for_the_next(stub: Stub) -> None:
    stub.answers("squeue", ALL, SHUT)
    bench = Bench(stub, marks=(mark(GATE),))
    ticking = count()
    bench.now = lambda: NOW + 0.3 * next(ticking)
    outcomes = bench.actuator.actuate([action(Verb.CLOSE, job) for job in reversed(JOBS)])
    assert [o.result for o in outcomes][:2] == [Result.DONE] * 2
    last = outcomes[-1]
    assert (last.detail, last.later) == ("not tried: the look is too old by now", True)
    assert bench.diary.marks_now[pack(7), False] == mark(GATE), "what was not tried changes no mark"
    assert len(stub.ran("squeue")) == 2


@pytest.mark.parametrize(("seconds", "rounds"), [(0.1, 3), (0.8, 2), (1.0, 2), (1.1, 1), (9.0, 1)])
def test_a_round_that_would_make_the_look_too_long_is_not_begun(
    stub: Stub, seconds: float, rounds: int
) -> None:
    stub.answers("squeue", ALL, SHUT)
    bench = Bench(stub)
    bench.now = lambda: NOW + seconds * len(stub.ran("scontrol"))
    outcomes = bench.actuator.actuate([action(Verb.CLOSE, job) for job in JOBS])
    assert len(stub.ran("scontrol")) == rounds
    assert [o.result for o in outcomes].count(Result.DONE) == min(2 * rounds, len(JOBS))
    assert {o.later for o in outcomes if o.result is not Result.DONE} <= {True}


@pytest.mark.parametrize(("looked", "rounds"), [(0.0, 3), (0.2, 3), (0.4, 2), (0.8, 2), (1.0, 1), (9.0, 1)])
def test_the_look_that_a_tick_began_with_counts_into_its_time(stub: Stub, looked: float, rounds: int) -> None:
    stub.answers("squeue", ALL, SHUT)
    bench = Bench(stub)
    bench.actuator.rounds.tick_began = NOW - looked
    bench.now = lambda: NOW + 0.6 * len(stub.ran("scontrol"))
    bench.actuator.actuate([action(Verb.CLOSE, job) for job in JOBS])
    assert len(stub.ran("scontrol")) == rounds


def test_a_round_in_which_slurmctld_answered_nobody_for_a_while_tells_nothing_of_the_next(stub: Stub) -> None:
    stub.answers("squeue", ALL, SHUT)
    bench, instants = Bench(stub), [0.0, 0.2, 1.4, 1.6]
    bench.now = lambda: NOW + instants[len(stub.ran("scontrol"))]
    bench.actuator.actuate([action(Verb.CLOSE, job) for job in JOBS])
    assert len(stub.ran("scontrol")) == 3


def test_jobs_are_freed_however_long_it_takes(stub: Stub) -> None:
    stub.answers("squeue", ALL, "".join(row(JobID=job, EligibleTime=str(int(NOW))) for job in JOBS))
    bench = Bench(stub)
    ticking = count()
    bench.now = lambda: NOW + 0.3 * next(ticking)
    outcomes = bench.actuator.actuate([action(Verb.FREE, job) for job in JOBS])
    assert {o.result for o in outcomes} == {Result.DONE}


def test_before_each_round_we_ask_whether_we_may_act(stub: Stub) -> None:
    stub.answers("squeue", ALL, SHUT)
    bench, turns = Bench(stub), count(1)

    def fence() -> None:
        if next(turns) > 2:
            raise PermissionError("another daemon acts")

    bench.actuator.fence = fence
    with pytest.raises(PermissionError):
        bench.actuator.actuate([action(Verb.CLOSE, job) for job in JOBS])
    assert len(sent(stub)) == 4
    assert {key for key, _ in bench.diary.marks_now} == {pack(job) for job in (7, 8, 9, 10)}


def test_what_starts_and_stops_jobs_goes_before_gates(stub: Stub) -> None:
    stub.answers("squeue", row(JobID=8, State="RUNNING"), row(JobID=8, RestartCnt=1), WAITING, SHUT)
    outcomes = Bench(stub).do(action(Verb.CLOSE), action(Verb.REQUEUE, 8))
    assert [result for result, _ in outcomes] == [Result.DONE, Result.DONE]
    assert [line.split()[0] for line in sent(stub)] == ["requeue", "update"]


# -- what stood before, and what does not stand -----------------------------------------------------------------


def test_a_gate_that_stood_before_is_not_known_to_be_set_by_an_act_that_timed_out(stub: Stub) -> None:
    stub.answers("squeue", row(EligibleTime=str(int(GATE) + 500)))
    stub.answers("scontrol", "", hangs=True)
    ((result, _),) = Bench(stub, marks=(mark(GATE + 500),), timeout_seconds=0.4).do(action(Verb.CLOSE))
    assert result is Result.UNKNOWN


def test_a_gate_that_was_not_set_is_not_remembered_as_set(stub: Stub) -> None:
    stub.answers("squeue", WAITING)
    stub.answers("scontrol", (1, "", "Access/permission denied for job 7"))
    bench = Bench(stub, marks=(mark(GATE),))
    bench.do(action(Verb.CLOSE))
    assert bench.diary.marks_now[pack(7), False].blameless


@pytest.mark.parametrize(("delay", "opens"), [(121, True), (126, True), (127, False), (5000, False)])
def test_only_slurms_own_delay_of_a_requeued_job_is_opened_without_a_gate_of_ours(
    stub: Stub, delay: int, opens: bool
) -> None:
    submit = int(NOW) - 60
    seen = row(RestartCnt=1, SubmitTime=str(submit), EligibleTime=str(submit + delay))
    stub.answers("squeue", seen)
    ((_, detail),) = Bench(stub).do(action(Verb.OPEN, submit=float(submit), restarts=1, until=0.0))
    assert (detail != "its begin time was moved by somebody") is opens
