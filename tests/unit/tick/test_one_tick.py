"""One tick of the controller over a stub: what it does with blindness, bad policies, lost answers, refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import (
    Blind,
    Blocked,
    Event,
    Explanation,
    LeasePhase,
    Placement,
    Plan,
    Profiles,
    Result,
    TickRecord,
    Verb,
    Verdict,
)
from slurm_fair.model.ids import pack
from slurm_fair.policy import Draft, Policy, View
from slurm_fair.policy.own_share import BEYOND
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.turns import TurnBook
from slurm_fair.reconcile import Limits
from slurm_fair_plugins.astraea import Astraea
from tests.support.builders import job, snapshot
from tests.support.fake_slurm import PushedClock
from tests.support.strange_policies import Exits
from tests.support.tick_bench import BEGAN, DONE, TERMS, Judge, TickBench, gated, kinds, running

# -- blind --------------------------------------------------------------------------------------------------------


def test_a_blind_look_changes_nothing_and_leaves_nothing() -> None:
    bench = TickBench()
    bench.see(gated(1))
    before, ticks = bench.standing, len(bench.journal.records)
    done = bench.look(Blind(bench.clock.now(), "no answer"))
    assert done.blind == "no answer"
    assert done.record is None
    assert bench.standing is before
    assert (bench.acts(), len(bench.journal.records)) == ([], ticks)


def test_a_queue_that_shrinks_suddenly_is_looked_at_again_first() -> None:
    many = [gated(base, gate_until=0.0, gated=False) for base in range(1, 31)]
    bench = TickBench()
    bench.see(*many)
    accounts = len(bench.standing.ledger.jobs)
    done = bench.see(many[0])
    assert "shrank from 30 to 1" in done.blind
    assert bench.acts() == []
    assert len(bench.standing.ledger.jobs) == accounts, "no account is closed on the strength of one odd look"
    assert bench.see(*many).blind == ""


def test_a_queue_that_did_shrink_is_believed_at_the_second_look() -> None:
    many = [gated(base) for base in range(1, 31)]
    bench = TickBench()
    bench.see(*many)
    bench.see(many[0])
    done = bench.see(many[0])
    assert done.blind == ""
    assert len(bench.standing.ledger.jobs) == 1


# -- policies -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Raises:
    """A policy with a bug."""

    def plan(self, view: View) -> Plan:
        raise KeyError("no such tenant")


@dataclass(frozen=True)
class Late:
    """A policy that takes its time."""

    clock: PushedClock
    seconds: float

    def plan(self, view: View) -> Plan:
        """A fine plan, after a while."""
        self.clock.advance(self.seconds)
        return Astraea().plan(view)


@dataclass(frozen=True)
class Says:
    """A policy that says one thing of every job, on the first node."""

    verdict: Verdict
    memory: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, view: View) -> Plan:
        """The same for all."""
        jobs = view.snapshot.jobs
        rows = len(jobs)
        said = np.full(rows, self.verdict, dtype=np.int8)
        granted = self.verdict == Verdict.GRANT
        places = Placement.of([(row, 0, int(jobs.gpus[row])) for row in range(rows)] if granted else [])
        nothing = np.zeros(rows, dtype=np.int64)
        return Plan(said, places, Explanation(nothing, nothing, np.zeros(rows), ("so",)), self.memory)


class Answers:
    """A policy that returns no plan at all."""

    def plan(self, view: View) -> Plan:
        return None  # type: ignore[return-value]


class Explains:
    """A policy that fails when it is asked why."""

    def plan(self, view: View) -> Plan:
        """Everybody stays, by a score that cannot be."""
        return Draft(view).finish(Placement.none(), score=lambda: np.zeros(len(view.waiting) + 1))


@pytest.mark.parametrize(
    ("policy", "note"),
    [
        (Raises(), "the policy raised: "),
        (Exits(), "the policy raised: "),
        (Answers(), "the policy raised: "),
        (Explains(), "the policy raised: "),
        (Says(Verdict.GRANT), "it grants a job that cannot start now"),
        (Says(Verdict.REVOKE), "it ends or renews a lease that is not over"),
    ],
    ids=[
        "it raises",
        "it exits",
        "it returns nothing",
        "it cannot say why",
        "it grants who runs",
        "it stops who may run",
    ],
)
def test_a_bad_policy_means_that_leases_stay_and_gates_are_kept(policy: Policy, note: str) -> None:
    bench = TickBench()
    bench.see(running(1, BEGAN + 5), gated(2, gpus=8))
    bench.policy = policy
    done = bench.see(running(1, BEGAN + 5), gated(2, gpus=8, gate_until=BEGAN + 100))
    assert done.record is not None
    assert note in done.record.plan.note
    assert bench.acts() == ["close 2"]
    assert bench.standing.leases.phase.tolist() == [LeasePhase.RUNNING]


def test_a_policy_that_raised_is_quoted() -> None:
    done = TickBench(Raises()).see(gated(1))
    assert done.record is not None
    assert "no such tenant" in done.record.plan.note


def test_a_late_plan_is_not_used() -> None:
    bench = TickBench(plan_limit_seconds=5.0)
    bench.policy = Late(bench.clock, 6.0)
    done = bench.see(gated(1))
    assert done.record is not None
    assert done.record.plan.note == "the policy took 6.0 s (limit 5 s)"
    assert bench.acts() == []


def test_a_plan_in_time_is() -> None:
    bench = TickBench(plan_limit_seconds=5.0)
    bench.policy = Late(bench.clock, 4.0)
    bench.see(gated(1))
    assert bench.acts() == ["open 1"]


def test_what_a_policy_remembers_comes_back_to_it_unless_its_plan_was_refused() -> None:
    bench = TickBench(Says(Verdict.LEAVE, {"window": 1}))
    bench.see(gated(1))
    assert bench.standing.memory == {"window": 1}
    bench.policy = Says(Verdict.RENEW, {"window": 2})
    bench.see(gated(1))
    assert bench.standing.memory == {"window": 1}


# -- what comes of acts -------------------------------------------------------------------------------------------


def refuses(*verbs: Verb) -> Judge:
    return lambda action: Result.REFUSED if action.verb in verbs else Result.DONE


def loses(*verbs: Verb) -> Judge:
    """The answers to these get lost."""
    return lambda action: Result.UNKNOWN if action.verb in verbs else Result.DONE


def test_a_job_whose_act_is_of_unknown_outcome_is_left_alone_for_a_while() -> None:
    bench = TickBench(judge=loses(Verb.CLOSE))
    bench.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN))
    assert bench.acts() == ["close 2"]
    assert list(bench.standing.unsettled) == [pack(2)]
    bench.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN), after=10)
    assert bench.acts() == []
    bench.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN), after=16)
    assert bench.acts() == ["close 2"], "looked at again, and done again"


def test_it_is_not_planned_for_meanwhile_and_told_so() -> None:
    bench = TickBench(judge=loses(Verb.CLOSE))
    bench.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN))
    done = bench.see(job(1, state=DONE, submit=BEGAN), job(2, submit=BEGAN))
    assert done.record is not None
    assert done.record.snapshot.jobs.blocked.tolist() == [Blocked.NOT_BLOCKED, Blocked.UNSETTLED]
    assert bench.acts() == []


def test_a_start_of_unknown_outcome_keeps_its_gpus_promised() -> None:
    bench = TickBench(judge=loses(Verb.OPEN))
    bench.see(gated(1))
    bench.see(gated(1, gated=False, gate_until=0.0), gated(2, gpus=8))
    assert bench.standing.leases.phase.tolist() == [LeasePhase.GRANTED]
    assert bench.acts() == []


def test_a_refused_start_gives_the_promise_back_and_is_not_tried_again_at_once() -> None:
    bench = TickBench(judge=refuses(Verb.OPEN))
    bench.see(gated(1))
    assert (bench.acts(), len(bench.standing.leases)) == (["open 1"], 0)
    bench.see(gated(1), after=1)
    assert bench.acts() == []
    bench.see(gated(1), after=10)
    assert bench.acts() == ["open 1"]


def test_a_job_that_slurm_does_not_start_rests_longer_each_time() -> None:
    bench, rests = TickBench(), []
    for _ in range(4):
        while "open 1" not in bench.acts():
            bench.see(gated(1), after=5)
        opened = bench.clock.now()
        while len(bench.standing.leases):
            bench.see(gated(1, pinned=True, gated=False, gate_until=0.0), after=5)
        assert bench.clock.now() - opened == pytest.approx(TERMS.start_timeout, abs=6)
        rests.append(bench.standing.backoff.due[pack(1)][0] - bench.clock.now())
        assert bench.acts() == ["close 1"], "its pin is taken away and its gate set again"
    assert rests == [30.0, 60.0, 120.0, 240.0]


def test_a_job_that_rests_is_told_so_and_passed_over() -> None:
    bench = TickBench()
    bench.see(gated(1, gpus=8))
    bench.see(gated(1, gpus=8, gated=False, pinned=True, gate_until=0.0), gated(2, gpus=8), after=61)
    assert bench.acts() == ["open 2", "close 1"]
    done = bench.see(gated(1, gpus=8), gated(2, gpus=8), after=1)
    assert done.record is not None
    assert done.record.snapshot.jobs.blocked.tolist()[0] == Blocked.BACKOFF


def test_a_job_that_slurm_will_not_requeue_has_another_lease() -> None:
    bench = TickBench(judge=refuses(Verb.REQUEUE))
    boundary = BEGAN + TERMS.term
    bench.see(running(1, BEGAN + 5, gpus=8))
    bench.see(running(1, BEGAN + 5, gpus=8), gated(2, gpus=8), after=boundary - bench.clock.now())
    assert bench.acts() == ["ask 1"]
    bench.see(running(1, BEGAN + 5, gpus=8, acknowledged=1), gated(2, gpus=8), after=1)
    assert bench.acts() == ["requeue 1"]
    assert bench.standing.leases.end.tolist()[0] == boundary + TERMS.term


@pytest.mark.parametrize("verb", [Verb.ASK, Verb.REQUEUE])
def test_that_slurm_will_not_stop_a_job_is_told_and_what_was_promised_of_its_gpus_is_taken_back(
    verb: Verb,
) -> None:
    bench = TickBench(judge=refuses(verb))
    runs, waits = running(1, BEGAN + 5, gpus=8), gated(2, gpus=8)
    bench.see(runs)
    done = bench.see(runs, waits, after=BEGAN + TERMS.term - bench.clock.now())
    if verb is Verb.REQUEUE:
        done = bench.see(replace(runs, acknowledged=1), waits, after=1)
    assert kinds(done)[-1] == ("stays", 1)
    assert done.record is not None
    (told,) = [event for event in done.record.events if event.kind == "stays"]
    assert told.detail == {"why": "because", "until": BEGAN + 2 * TERMS.term, "number": 2}
    assert kinds(bench.see(runs, waits, after=1)) == [("takenback", 2)]
    assert bench.standing.leases.key.tolist() == [pack(1)]


def test_no_more_is_done_than_the_guard_allows_and_the_rest_comes_next() -> None:
    bench = TickBench(limits=Limits(closes=2))
    jobs = [running(9, BEGAN, gpus=8), *(job(base, submit=BEGAN) for base in range(1, 6))]
    done = bench.see(*jobs)
    assert bench.acts() == ["close 1", "close 2"]
    assert done.record is not None
    assert "3 of 5 acts wait" in done.record.guard


@pytest.mark.parametrize(("gate", "rests"), [(BEGAN + 25, [BEGAN + 25]), (float("inf"), [])])
def test_a_users_begin_time_is_remembered_when_our_gate_takes_its_place(
    gate: float, rests: list[float]
) -> None:
    """A hold leaves it as it is, so there is nothing to remember, least of all for ever."""
    bench = TickBench()
    waits = gated(1, blocked=Blocked.OWN_BEGIN, gate_until=gate, pinned=True)
    bench.see(replace(waits, gated=gate == float("inf")))
    assert bench.acts() == ["close 1"]
    assert [until for until, _ in bench.standing.backoff.due.values()] == rests


def test_who_is_changed_into_work_that_cannot_be_taken_back_loses_a_promise_beyond_the_own_share() -> None:
    bench = TickBench()
    runs = running(1, BEGAN + 1, gpus=8, tenant="b")
    bench.see(runs)
    waits = [gated(number, tenant="a") for number in (2, 3)]
    after = bench.standing.leases.end.tolist()[0] - bench.clock.now()
    assert {("granted", 2), ("granted", 3)} <= set(kinds(bench.see(runs, *waits, after=after)))
    changed = [replace(job, requeueable=False) for job in waits]
    done = bench.see(runs, *changed, after=1)
    assert ("takenback", 3) in kinds(done)
    assert done.record is not None
    (event,) = [event for event in done.record.events if event.kind == "takenback"]
    assert event.detail["why"] == BEYOND
    assert (bench.standing.leases.key >> 23).tolist() == [1, 2]


# -- dry run ------------------------------------------------------------------------------------------------------


def test_a_dry_run_promises_nothing_and_stops_nobody() -> None:
    bench = TickBench(dry_run=True, judge=lambda action: Result.REFUSED)
    bench.see(gated(1))
    assert len(bench.standing.leases) == 0
    bench.see(running(1, BEGAN + 15, gpus=8), after=10)
    ends = bench.standing.leases.end.tolist()[0]
    done = bench.see(running(1, BEGAN + 15, gpus=8), gated(2, gpus=8), after=ends - bench.clock.now())
    assert done.record is not None
    assert done.record.plan.verdict.tolist() == [Verdict.REVOKE, Verdict.GRANT], "it says what it would do"
    assert bench.standing.leases.phase.tolist() == [LeasePhase.RUNNING]
    assert done.record.dry_run


# -- what is told -------------------------------------------------------------------------------------------------


def test_the_life_of_a_lease_is_told_event_by_event() -> None:
    bench = TickBench()
    assert kinds(bench.see(gated(1, gpus=8, submit=BEGAN + 5))) == [
        ("submitted", 1),
        ("granted", 1),
        ("opened", 1),
    ]
    runs = running(1, BEGAN + 11, gpus=8, submit=BEGAN + 5)
    assert kinds(bench.see(runs)) == [("started", 1)]
    after = bench.standing.leases.end.tolist()[0] - bench.clock.now()
    waits = gated(2, gpus=8, submit=BEGAN + 20, tenant="b")
    told = kinds(bench.see(runs, waits, after=after))
    assert told == [("submitted", 2), ("revoked", 1), ("granted", 2), ("asked", 1)]
    told = kinds(bench.see(replace(runs, acknowledged=1), waits, after=1))
    assert told == [("requeued", 1)]
    back = gated(1, gpus=8, submit=bench.clock.now(), restarts=1)
    assert kinds(bench.see(back, waits, after=1)) == [("stopped", 1), ("returned", 1), ("opened", 2)]


def test_only_what_was_done_is_told() -> None:
    bench = TickBench(judge=refuses(Verb.OPEN))
    assert ("opened", 1) not in kinds(bench.see(gated(1)))


def test_an_event_names_tenant_gpus_and_reason() -> None:
    done = TickBench().see(gated(1, gpus=4, tenant="vision"))
    assert done.record is not None
    (event,) = [event for event in done.record.events if event.kind == "opened"]
    assert isinstance(event, Event)
    assert (event.tenant, event.gpus, event.detail) == ("vision", 4, {"why": "granted", "nodes": ["n1"]})


def test_a_record_says_how_long_each_part_took() -> None:
    done = TickBench().see(gated(1))
    assert done.record is not None
    assert set(done.record.seconds) == {"observe", "advance", "plan", "act"}
    assert (done.record.number, done.record.time) == (1, BEGAN + 10)


def test_a_ledger_that_was_settled_between_ticks_is_kept_with_the_next_one() -> None:
    bench = TickBench()
    bench.see(gated(1))
    bench.standing = bench.standing._replace(amended=True)
    settled = bench.standing.ledger
    done = bench.see(gated(1))
    assert done.record is not None
    assert done.record.amended is settled
    assert not bench.standing.amended
    assert bench.see(gated(1)).record.amended is None  # type: ignore[union-attr]


# -- turns of the profiler ----------------------------------------------------------------------------------------


def one_to_be_profiled(bench: TickBench) -> TickRecord:
    """A look at a job whose speed is known nowhere, and another one."""
    bench.clock.advance(10.0)
    shown = snapshot(time=bench.clock.now(), nodes={"n1": 4}, jobs=[gated(1), gated(2)])
    profiles = Profiles(np.array([1]), np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, 1), dtype=bool))
    record = bench.look(replace(shown, profiles=profiles)).record
    assert record is not None
    return record


def see_one_to_be_profiled(bench: TickBench) -> list[int]:
    """The verdicts of such a look."""
    return [*map(int, one_to_be_profiled(bench).plan.verdict)]


def test_a_job_to_be_profiled_goes_before_the_policy_and_the_turn_is_remembered() -> None:
    bench = TickBench(profiling=Profiling())
    assert see_one_to_be_profiled(bench) == [Verdict.WAIT, Verdict.GRANT]
    assert bench.acts() == ["open 2"]
    assert [kept.key >> 23 for kept in TurnBook.kept(bench.standing.memory, BEGAN).turns] == [2]


def test_a_shadow_run_uses_up_no_tries() -> None:
    bench = TickBench(profiling=Profiling(tries=1), dry_run=True)
    for _ in range(3):
        assert see_one_to_be_profiled(bench) == [Verdict.WAIT, Verdict.GRANT]
    assert bench.standing.memory == {}


def test_a_pause_keeps_what_was_tried_and_spent() -> None:
    bench = TickBench(profiling=Profiling())
    kept = TurnBook((), {(pack(2), "gpu"): 1}, int(BEGAN // 86_400), {"a": 50.0}).into({})
    bench.standing, bench.dry_run = bench.standing._replace(memory=kept), True
    see_one_to_be_profiled(bench)
    assert bench.standing.memory == kept


def test_a_policy_that_raises_gives_no_turn_either() -> None:
    bench = TickBench(Raises(), profiling=Profiling())
    assert see_one_to_be_profiled(bench) == [Verdict.WAIT, Verdict.WAIT]
    assert bench.standing.memory == {}


WHERE_IT_RAISES = {
    "when turns end": "tick.prepared.ended_with_turns",
    "when it reads what is remembered": "policy.profiling._brought_up",
    "when it seeks places": "policy.profiling._Seekers.found",
    "when it looks for jobs that leave": "policy.profiling._Seekers.movers",
    "when it says why": "policy.profiling._sayings",
    "when it says who gets no turn": "policy.profiling._Seekers.reasons",
}


def broken(*_: Any) -> Any:
    """A profiler with a bug."""
    raise ArithmeticError("no such\nturn")


@pytest.mark.parametrize("where", WHERE_IT_RAISES)
def test_a_fault_of_the_profiler_costs_the_turns_of_one_look(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = TickBench(profiling=Profiling())
    kept = TurnBook((), {(pack(2), "gpu"): 1}, int(BEGAN // 86_400), {}).into({})
    bench.standing = bench.standing._replace(memory=kept)
    with monkeypatch.context() as patched:
        patched.setattr(f"slurm_fair.{WHERE_IT_RAISES[where]}", broken)
        plan = one_to_be_profiled(bench).plan
    assert plan.verdict.tolist() == [Verdict.GRANT, Verdict.WAIT], "the policy has the GPUs of the turn"
    assert plan.memory == kept
    assert bench.acts() == ["open 1"]
    assert plan.note == ""
    error = re.escape(repr(ArithmeticError("no such\nturn")))
    said = rf"\S+\.py:\d+: the profiler raised {error}: this look goes without its turns"
    assert re.fullmatch(said, plan.fault)
    again = TickBench(profiling=Profiling())
    again.standing = bench.standing._replace(leases=again.standing.leases)
    assert one_to_be_profiled(again).plan.fault == ""
    assert [each.key >> 23 for each in TurnBook.kept(again.standing.memory, BEGAN).turns] == [2]


def test_turns_that_cannot_be_are_a_fault_of_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = TickBench(profiling=Profiling())
    monkeypatch.setattr("slurm_fair.policy.profiling._Seekers.place_in", lambda *_: (0, ((0, 5),)))
    plan = one_to_be_profiled(bench).plan
    assert (plan.note, plan.verdict.tolist()) == ("", [Verdict.GRANT, Verdict.WAIT])
    assert plan.fault == (
        "the profiler's turns cannot be: it gives GPUs away that are not free: this look goes without its turns"
    )


def test_a_bad_plan_of_the_policy_is_no_fault_of_the_profiler() -> None:
    plan = one_to_be_profiled(TickBench(Says(Verdict.REVOKE), profiling=Profiling())).plan
    assert "it ends or renews a lease that is not over" in plan.note
    assert plan.fault == ""
