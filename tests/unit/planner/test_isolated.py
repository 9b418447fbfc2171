"""Plans from a process of their own: whatever the policy does there, the caller has an answer in time.

All processes are real.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import NoPlan
from slurm_fair.model import Event, EventKind, Plan, Verdict
from slurm_fair.planner import IsolatedPlanner, PlannerLimits
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.planning import KEEPS, comes_true, lives, planner_of, shown
from tests.support.solving_policies import Hears, Solving, SolvingQuick, plain

LIMIT = 20.0  # of a plan that must come, on a busy machine
SHORT = 1.0  # of one that does not come
SMALL = 2.5  # by which a busy machine may be later


def same(one: Plan, other: Plan) -> bool:
    said, says = one.explanation, other.explanation
    pairs = (
        (one.verdict, other.verdict),
        (one.places.row, other.places.row),
        (one.places.node, other.places.node),
        (one.places.gpus, other.places.gpus),
        (said.reason, says.reason),
        (said.rank, says.rank),
    )
    told = said.reasons == says.reasons and one.memory == other.memory and one.note == other.note
    return told and all(np.array_equal(a, b) for a, b in pairs)


def warm(planner: IsolatedPlanner) -> None:
    """Have the process load its policy, in a look in which it does nothing odd."""
    planner.plan(shown(1010.0), LIMIT)


@pytest.mark.parametrize("name", ["astraea", "gavel", "tiresias"])
def test_it_is_the_plan_that_the_policy_makes_in_this_process(name: str) -> None:
    policy = load(name, {})
    with planner_of(policy) as planner:
        for now in (1000.0, 2000.0):
            seen = shown(now)
            assert same(planner.plan(seen, LIMIT), policy.plan(seen))


def test_a_view_that_a_policy_has_read_here_travels_without_what_it_keeps() -> None:
    seen = shown()
    before = plain(seen)
    with planner_of(Solving()) as planner:
        assert same(planner.plan(seen, LIMIT), before)


ODD = {
    "hangs": r"not there after 1\.\d s",
    "crashes": "the planning process was ended by SIGSEGV while it made the plan",
    "exits": "the planning process ended with exit code 3 while it made the plan",
    "quits": "the policy raised: .*SystemExit: 5",
    "raises": r"solving_policies\.py:\d+: the policy raised: .*no such tenant",
    "bloats": "MemoryError",
    "bloats slowly": "MemoryError|was ended by|not there after",
    "says bytes": "said what is no plan: it begins an answer of",
    "keeps a class": "said what is no plan: .*solving_policies.Strange, and a plan is plain data",
    "says text": "the plan cannot be: its verdict is no column",
    "repeats others": r"not there after 1\.\d s",
    "repeats itself": r"not there after 1\.\d s",
    "says half": "said what is no plan: it says a tuple that is no answer",
    "says nothing": "the policy raised: .*returned None, not a Plan",
    "grants all": "the plan cannot be: it grants a job that cannot start now",
}


@pytest.mark.parametrize("does", ODD)
def test_whatever_goes_wrong_is_told_in_time_and_the_next_look_has_a_plan(does: str) -> None:
    with planner_of(Solving(does, every=100)) as planner:
        warm(planner)
        began, limit = time.monotonic(), SHORT if "not there" in ODD[does] else 8.0
        with pytest.raises(NoPlan, match=f"(?s){ODD[does]}"):
            planner.plan(shown(1000.0), limit)
        assert time.monotonic() - began < limit + SMALL
        seen = shown(1020.0)
        assert same(planner.plan(seen, LIMIT), plain(seen))


@pytest.mark.parametrize("does", ["hangs", "crashes", "raises", "says bytes", "grants all"])
def test_the_quick_plan_stands_in_and_says_so(does: str) -> None:
    with planner_of(SolvingQuick(does, every=100)) as planner:
        warm(planner)
        seen = replace(shown(1000.0), memory={"by": "an earlier plan"})
        plan = planner.plan(seen, SHORT)
    assert plan.note.endswith("; its quick plan stands in")
    assert np.array_equal(plan.verdict, plain(seen).verdict)
    assert objections(plan, seen) == ""
    assert plan.memory == {"by": "an earlier plan"}, "the memory is not the quick plan's"


@pytest.mark.parametrize("quick", ["raises", "says nothing", "grants all", "says text"])
def test_a_quick_plan_that_cannot_be_is_none(quick: str) -> None:
    with planner_of(SolvingQuick("hangs", every=100, quick=quick)) as planner:
        warm(planner)
        with pytest.raises(NoPlan, match="not there after"):
            planner.plan(shown(1000.0), SHORT)


def test_a_quick_plan_that_hangs_holds_nothing_up() -> None:
    with planner_of(SolvingQuick(quick="hangs")) as planner:
        began = time.monotonic()
        with pytest.raises(NoPlan, match=r"not there after|has not loaded"):
            planner.plan(shown(1000.0), 3.0)
        assert time.monotonic() - began < 3.0 + SMALL


def test_what_a_policy_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    seen = shown()
    with planner_of(Solving("prints")) as planner:
        assert same(planner.plan(seen, LIMIT), plain(seen))
    assert capfd.readouterr().out == ""


def test_a_process_that_dies_between_two_looks_is_started_again() -> None:
    with planner_of(Solving()) as planner:
        warm(planner)
        assert planner.process is not None
        first = planner.process.number
        os.kill(first, signal.SIGKILL)
        assert comes_true(lambda: not lives(first))
        seen = shown()
        assert same(planner.plan(seen, LIMIT), plain(seen))
        assert planner.process.number != first


def test_a_process_that_is_stopped_is_late_and_no_more() -> None:
    with planner_of(Solving()) as planner:
        warm(planner)
        assert planner.process is not None
        os.kill(planner.process.number, signal.SIGSTOP)
        with pytest.raises(NoPlan, match="not there after"):
            planner.plan(shown(), SHORT)
        assert planner.plan(shown(), LIMIT).note == ""


class _Nowhere(Solving):
    """A class that no other process finds."""


def test_a_policy_that_cannot_be_loaded_there_is_named_and_tried_again_later() -> None:
    _Nowhere.__module__ = "no_such_module"
    try:
        planner = IsolatedPlanner(_Nowhere())
        for _ in range(2):
            with pytest.raises(NoPlan, match=r"the planning process cannot be started: .*no_such_module"):
                planner.plan(shown(), LIMIT)
        assert planner.process is None
    finally:
        _Nowhere.__module__ = __name__


def test_a_process_that_dies_before_it_has_loaded_the_policy_is_not_started_over_and_over() -> None:
    planner = IsolatedPlanner(Solving(), program=("/bin/sh", "-c", "exit 7"))
    for _ in range(2):
        with pytest.raises(NoPlan, match="ended with exit code 7 before it had loaded the policy"):
            planner.plan(shown(), LIMIT)
        assert planner.process is None


def test_a_program_that_is_not_there_is_told() -> None:
    planner = IsolatedPlanner(Solving(), program=("/no/such/python",))
    with pytest.raises(NoPlan, match=r"cannot be started: .*No such file"):
        planner.plan(shown(), LIMIT)


def test_the_memory_that_it_may_take_is_a_setting() -> None:
    with planner_of(Solving("bloats", every=100), PlannerLimits(memory_mb=32_000)) as planner:
        assert planner.process is not None
        limits = f"/proc/{planner.process.number}/limits"
        warm(planner)
        with open(limits) as file:
            (line,) = (line for line in file if line.startswith("Max address space"))
        assert line.split()[3:5] == [str(32_000 << 20)] * 2


def test_events_of_a_look_without_a_plan_are_told_at_the_next_one() -> None:
    with planner_of(Hears("hangs", every=100)) as planner:
        event = Event(1000.0, EventKind.STARTED, 7, "a", 4)
        first, second, third = (
            replace(shown(instant), happened=(event,) * many)
            for instant, many in ((1000.0, 3), (1010.0, 2), (1020.0, 1))
        )
        with pytest.raises(NoPlan):
            planner.plan(first, 3.0)
        heard = planner.plan(second, LIMIT).memory["heard"]
        assert heard == 5
        assert planner.plan(replace(third, memory={"heard": heard}), LIMIT).memory["heard"] == 6


def test_it_ends_at_once_when_it_is_closed_from_another_thread() -> None:
    with planner_of(Solving("hangs", every=100)) as planner:
        warm(planner)
        threading.Timer(0.3, planner.close).start()
        began = time.monotonic()
        with pytest.raises(NoPlan, match="the daemon is about to end or to change its policy"):
            planner.plan(shown(1000.0), LIMIT)
        assert time.monotonic() - began < 0.3 + SMALL
        assert planner.process is None
        with pytest.raises(NoPlan):
            planner.plan(shown(1010.0), SHORT)


def test_whoever_waits_is_asked_to_show_that_it_lives() -> None:
    calls: list[float] = []
    with planner_of(Solving("sleeps", every=100)) as planner:
        warm(planner)
        planner.waits = lambda: calls.append(time.monotonic())
        planner.plan(shown(1000.0), LIMIT)
    assert len(calls) >= 2


# -- a plan that comes late ---------------------------------------------------------------------------------------


def late(seen: View, planner: IsolatedPlanner) -> None:
    """A look whose plan is not there in time."""
    with pytest.raises(NoPlan, match="the last plan stands, and this one counts once it is there"):
        planner.plan(seen, 0.2)


def test_a_late_plan_counts_at_the_next_look_as_far_as_it_fits() -> None:
    with planner_of(Solving("sleeps", every=100), KEEPS) as planner:
        warm(planner)
        first = shown(1000.0, 2, 3)
        late(first, planner)
        assert planner.process is not None
        before = planner.process.number
        now = shown(1010.0, 3, 5)
        plan = planner.plan(now, LIMIT)
        assert planner.process.number == before
    assert plan.note == "this plan came late: it was made for the look 10 s before"
    assert plan.memory == {"by": "plan"}
    assert objections(plan, now) == ""
    assert plan.verdict.tolist() == [Verdict.RENEW, Verdict.GRANT, Verdict.WAIT]
    assert plan.explanation.reasons[plan.explanation.reason[2]] == "no plan could be made in this tick"


def test_a_plan_that_is_late_twice_is_given_up() -> None:
    with planner_of(Solving("hangs", every=100), KEEPS) as planner:
        warm(planner)
        late(shown(1000.0), planner)
        with pytest.raises(NoPlan, match="not there after"):
            planner.plan(shown(1010.0), SHORT)
        assert planner.plan(shown(1020.0), LIMIT).note == ""


def test_the_quick_plan_stands_in_for_one_that_is_late_twice() -> None:
    with planner_of(SolvingQuick("hangs", every=100), KEEPS) as planner:
        warm(planner)
        late(shown(1000.0, 2, 3), planner)
        plan = planner.plan(replace(shown(1010.0, 2, 3), memory={"by": "before"}), SHORT)
    assert "was given up; its quick plan stands in" in plan.note
    assert plan.verdict.tolist() == [Verdict.RENEW, Verdict.GRANT, Verdict.GRANT]
    assert plan.memory == {"by": "before"}


def test_a_late_plan_whose_process_died_is_made_anew() -> None:
    with planner_of(Solving("sleeps", every=100), KEEPS) as planner:
        warm(planner)
        late(shown(1000.0), planner)
        assert planner.process is not None
        os.kill(planner.process.number, signal.SIGKILL)
        seen = shown(1010.0)
        assert same(planner.plan(seen, LIMIT), plain(seen))
