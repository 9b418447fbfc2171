"""One turn of the controller over a stub: what it does with blindness, bad policies, lost answers, refusals."""

from __future__ import annotations

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
    Result,
    Verb,
    Verdict,
)
from slurm_fair.model.ids import pack
from slurm_fair.policy import Draft, Policy, View
from slurm_fair.policy.own_share import BEYOND
from slurm_fair.reconcile import Limits
from slurm_fair_plugins.astraea import Astraea
from tests.support.builders import job
from tests.support.fake_slurm import PushedClock
from tests.support.turns import BEGAN, DONE, TERMS, Judge, Turn, gated, kinds, running

# -- blind --------------------------------------------------------------------------------------------------------


def test_a_blind_look_changes_nothing_and_leaves_nothing() -> None:
    turn = Turn()
    turn.see(gated(1))
    before, ticks = turn.standing, len(turn.journal.records)
    done = turn.look(Blind(turn.clock.now(), "no answer"))
    assert done.blind == "no answer"
    assert done.record is None
    assert turn.standing is before
    assert (turn.acts(), len(turn.journal.records)) == ([], ticks)


def test_a_queue_that_shrinks_suddenly_is_looked_at_again_first() -> None:
    many = [gated(base, gate_until=0.0, gated=False) for base in range(1, 31)]
    turn = Turn()
    turn.see(*many)
    accounts = len(turn.standing.ledger.jobs)
    done = turn.see(many[0])
    assert "shrank from 30 to 1" in done.blind
    assert turn.acts() == []
    assert len(turn.standing.ledger.jobs) == accounts, "no account is closed on the strength of one odd look"
    assert turn.see(*many).blind == ""


def test_a_queue_that_did_shrink_is_believed_at_the_second_look() -> None:
    many = [gated(base) for base in range(1, 31)]
    turn = Turn()
    turn.see(*many)
    turn.see(many[0])
    done = turn.see(many[0])
    assert done.blind == ""
    assert len(turn.standing.ledger.jobs) == 1


# -- policies -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Raises:
    """A policy with a bug."""

    def plan(self, view: View) -> Plan:
        """Never."""
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
        """Nothing."""
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
        (Answers(), "the policy raised: "),
        (Explains(), "the policy raised: "),
        (Says(Verdict.GRANT), "it grants a job that cannot start now"),
        (Says(Verdict.REVOKE), "it ends or renews a lease that is not over"),
    ],
    ids=[
        "it raises",
        "it returns nothing",
        "it cannot say why",
        "it grants who runs",
        "it stops who may run",
    ],
)
def test_a_bad_policy_means_that_leases_stay_and_gates_are_kept(policy: Policy, note: str) -> None:
    turn = Turn()
    turn.see(running(1, BEGAN + 5), gated(2, gpus=8))
    turn.policy = policy
    done = turn.see(running(1, BEGAN + 5), gated(2, gpus=8, gate_until=BEGAN + 100))
    assert done.record is not None
    assert note in done.record.plan.note
    assert turn.acts() == ["close 2"]
    assert turn.standing.leases.phase.tolist() == [LeasePhase.RUNNING]


def test_a_policy_that_raised_is_quoted() -> None:
    done = Turn(Raises()).see(gated(1))
    assert done.record is not None
    assert "no such tenant" in done.record.plan.note


def test_a_late_plan_is_not_used() -> None:
    turn = Turn(plan_limit_seconds=5.0)
    turn.policy = Late(turn.clock, 6.0)
    done = turn.see(gated(1))
    assert done.record is not None
    assert done.record.plan.note == "the policy took 6.0 s (limit 5 s)"
    assert turn.acts() == []


def test_a_plan_in_time_is() -> None:
    turn = Turn(plan_limit_seconds=5.0)
    turn.policy = Late(turn.clock, 4.0)
    turn.see(gated(1))
    assert turn.acts() == ["open 1"]


def test_what_a_policy_remembers_comes_back_to_it_unless_its_plan_was_refused() -> None:
    turn = Turn(Says(Verdict.LEAVE, {"window": 1}))
    turn.see(gated(1))
    assert turn.standing.memory == {"window": 1}
    turn.policy = Says(Verdict.RENEW, {"window": 2})
    turn.see(gated(1))
    assert turn.standing.memory == {"window": 1}


# -- what comes of acts -------------------------------------------------------------------------------------------


def refuses(*verbs: Verb) -> Judge:
    """Slurm refuses these."""
    return lambda action: Result.REFUSED if action.verb in verbs else Result.DONE


def loses(*verbs: Verb) -> Judge:
    """The answers to these get lost."""
    return lambda action: Result.UNKNOWN if action.verb in verbs else Result.DONE


def test_a_job_whose_act_is_of_unknown_outcome_is_left_alone_for_a_while() -> None:
    turn = Turn(judge=loses(Verb.CLOSE))
    turn.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN))
    assert turn.acts() == ["close 2"]
    assert list(turn.standing.unsettled) == [pack(2)]
    turn.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN), after=10)
    assert turn.acts() == []
    turn.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN), after=16)
    assert turn.acts() == ["close 2"], "looked at again, and done again"


def test_it_is_not_planned_for_meanwhile_and_told_so() -> None:
    turn = Turn(judge=loses(Verb.CLOSE))
    turn.see(running(1, BEGAN, gpus=8), job(2, submit=BEGAN))
    done = turn.see(job(1, state=DONE, submit=BEGAN), job(2, submit=BEGAN))
    assert done.record is not None
    assert done.record.snapshot.jobs.blocked.tolist() == [Blocked.NOT_BLOCKED, Blocked.UNSETTLED]
    assert turn.acts() == []


def test_a_start_of_unknown_outcome_keeps_its_gpus_promised() -> None:
    turn = Turn(judge=loses(Verb.OPEN))
    turn.see(gated(1))
    turn.see(gated(1, gated=False, gate_until=0.0), gated(2, gpus=8))
    assert turn.standing.leases.phase.tolist() == [LeasePhase.GRANTED]
    assert turn.acts() == []


def test_a_refused_start_gives_the_promise_back_and_is_not_tried_again_at_once() -> None:
    turn = Turn(judge=refuses(Verb.OPEN))
    turn.see(gated(1))
    assert (turn.acts(), len(turn.standing.leases)) == (["open 1"], 0)
    turn.see(gated(1), after=1)
    assert turn.acts() == []
    turn.see(gated(1), after=10)
    assert turn.acts() == ["open 1"]


def test_a_job_that_slurm_does_not_start_rests_longer_each_time() -> None:
    turn, rests = Turn(), []
    for _ in range(4):
        while "open 1" not in turn.acts():
            turn.see(gated(1), after=5)
        opened = turn.clock.now()
        while len(turn.standing.leases):
            turn.see(gated(1, pinned=True, gated=False, gate_until=0.0), after=5)
        assert turn.clock.now() - opened == pytest.approx(TERMS.start_timeout, abs=6)
        rests.append(turn.standing.backoff[pack(1)][0] - turn.clock.now())
        assert turn.acts() == ["close 1"], "its pin is taken away and its gate set again"
    assert rests == [30.0, 60.0, 120.0, 240.0]


def test_a_job_that_rests_is_told_so_and_passed_over() -> None:
    turn = Turn()
    turn.see(gated(1, gpus=8))
    turn.see(gated(1, gpus=8, gated=False, pinned=True, gate_until=0.0), gated(2, gpus=8), after=61)
    assert turn.acts() == ["open 2", "close 1"]
    done = turn.see(gated(1, gpus=8), gated(2, gpus=8), after=1)
    assert done.record is not None
    assert done.record.snapshot.jobs.blocked.tolist()[0] == Blocked.BACKOFF


def test_a_job_that_slurm_will_not_requeue_has_another_lease() -> None:
    turn = Turn(judge=refuses(Verb.REQUEUE))
    boundary = BEGAN + TERMS.term
    turn.see(running(1, BEGAN + 5, gpus=8))
    turn.see(running(1, BEGAN + 5, gpus=8), gated(2, gpus=8), after=boundary - turn.clock.now())
    assert turn.acts() == ["ask 1"]
    turn.see(running(1, BEGAN + 5, gpus=8, acknowledged=1), gated(2, gpus=8), after=1)
    assert turn.acts() == ["requeue 1"]
    assert turn.standing.leases.end.tolist()[0] == boundary + TERMS.term


@pytest.mark.parametrize("verb", [Verb.ASK, Verb.REQUEUE])
def test_that_slurm_will_not_stop_a_job_is_told_and_what_was_promised_of_its_gpus_is_taken_back(
    verb: Verb,
) -> None:
    turn = Turn(judge=refuses(verb))
    runs, waits = running(1, BEGAN + 5, gpus=8), gated(2, gpus=8)
    turn.see(runs)
    done = turn.see(runs, waits, after=BEGAN + TERMS.term - turn.clock.now())
    if verb is Verb.REQUEUE:
        done = turn.see(replace(runs, acknowledged=1), waits, after=1)
    assert kinds(done)[-1] == ("stays", 1)
    assert done.record is not None
    (told,) = [event for event in done.record.events if event.kind == "stays"]
    assert told.detail == {"why": "because", "until": BEGAN + 2 * TERMS.term, "number": 2}
    assert kinds(turn.see(runs, waits, after=1)) == [("takenback", 2)]
    assert turn.standing.leases.key.tolist() == [pack(1)]


def test_no_more_is_done_than_the_guard_allows_and_the_rest_comes_next() -> None:
    turn = Turn(limits=Limits(closes=2))
    jobs = [running(9, BEGAN, gpus=8), *(job(base, submit=BEGAN) for base in range(1, 6))]
    done = turn.see(*jobs)
    assert turn.acts() == ["close 1", "close 2"]
    assert done.record is not None
    assert "3 of 5 acts wait" in done.record.guard


@pytest.mark.parametrize(("gate", "rests"), [(BEGAN + 25, [BEGAN + 25]), (float("inf"), [])])
def test_a_users_begin_time_is_remembered_when_our_gate_takes_its_place(
    gate: float, rests: list[float]
) -> None:
    """A hold leaves it as it is, so there is nothing to remember, least of all for ever."""
    turn = Turn()
    turn.see(gated(1, blocked=Blocked.OWN_BEGIN, gate_until=gate, pinned=True))
    assert turn.acts() == ["close 1"]
    assert [until for until, _ in turn.standing.backoff.values()] == rests


def test_who_is_changed_into_work_that_cannot_be_taken_back_loses_a_promise_beyond_the_own_share() -> None:
    turn = Turn()
    runs = running(1, BEGAN + 1, gpus=8, tenant="b")
    turn.see(runs)
    waits = [gated(number, tenant="a") for number in (2, 3)]
    after = turn.standing.leases.end.tolist()[0] - turn.clock.now()
    assert {("granted", 2), ("granted", 3)} <= set(kinds(turn.see(runs, *waits, after=after)))
    changed = [replace(job, requeueable=False) for job in waits]
    done = turn.see(runs, *changed, after=1)
    assert ("takenback", 3) in kinds(done)
    assert done.record is not None
    (event,) = [event for event in done.record.events if event.kind == "takenback"]
    assert event.detail["why"] == BEYOND
    assert (turn.standing.leases.key >> 23).tolist() == [1, 2]


# -- dry run ------------------------------------------------------------------------------------------------------


def test_a_dry_run_promises_nothing_and_stops_nobody() -> None:
    turn = Turn(dry_run=True, judge=lambda action: Result.REFUSED)
    turn.see(gated(1))
    assert len(turn.standing.leases) == 0
    turn.see(running(1, BEGAN + 15, gpus=8), after=10)
    ends = turn.standing.leases.end.tolist()[0]
    done = turn.see(running(1, BEGAN + 15, gpus=8), gated(2, gpus=8), after=ends - turn.clock.now())
    assert done.record is not None
    assert done.record.plan.verdict.tolist() == [Verdict.REVOKE, Verdict.GRANT], "it says what it would do"
    assert turn.standing.leases.phase.tolist() == [LeasePhase.RUNNING]
    assert done.record.dry_run


# -- what is told -------------------------------------------------------------------------------------------------


def test_the_life_of_a_lease_is_told_event_by_event() -> None:
    turn = Turn()
    assert kinds(turn.see(gated(1, gpus=8, submit=BEGAN + 5))) == [
        ("submitted", 1),
        ("granted", 1),
        ("opened", 1),
    ]
    runs = running(1, BEGAN + 11, gpus=8, submit=BEGAN + 5)
    assert kinds(turn.see(runs)) == [("started", 1)]
    after = turn.standing.leases.end.tolist()[0] - turn.clock.now()
    waits = gated(2, gpus=8, submit=BEGAN + 20, tenant="b")
    told = kinds(turn.see(runs, waits, after=after))
    assert told == [("submitted", 2), ("revoked", 1), ("granted", 2), ("asked", 1)]
    told = kinds(turn.see(replace(runs, acknowledged=1), waits, after=1))
    assert told == [("requeued", 1)]
    back = gated(1, gpus=8, submit=turn.clock.now(), restarts=1)
    assert kinds(turn.see(back, waits, after=1)) == [("stopped", 1), ("returned", 1), ("opened", 2)]


def test_only_what_was_done_is_told() -> None:
    turn = Turn(judge=refuses(Verb.OPEN))
    assert ("opened", 1) not in kinds(turn.see(gated(1)))


def test_an_event_names_tenant_gpus_and_reason() -> None:
    done = Turn().see(gated(1, gpus=4, tenant="vision"))
    assert done.record is not None
    (event,) = [event for event in done.record.events if event.kind == "opened"]
    assert isinstance(event, Event)
    assert (event.tenant, event.gpus, event.detail) == ("vision", 4, {"why": "granted", "nodes": ["n1"]})


def test_a_record_says_how_long_each_part_took() -> None:
    done = Turn().see(gated(1))
    assert done.record is not None
    assert set(done.record.seconds) == {"observe", "advance", "plan", "act"}
    assert (done.record.number, done.record.time) == (1, BEGAN + 10)


def test_a_ledger_that_was_settled_between_ticks_is_kept_with_the_next_one() -> None:
    turn = Turn()
    turn.see(gated(1))
    turn.standing = turn.standing._replace(amended=True)
    settled = turn.standing.ledger
    done = turn.see(gated(1))
    assert done.record is not None
    assert done.record.amended is settled
    assert not turn.standing.amended
    assert turn.see(gated(1)).record.amended is None  # type: ignore[union-attr]
