"""Leases after a plan, and after what came of its acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import (
    Action,
    Explanation,
    JobState,
    LeasePhase,
    Leases,
    LeaseTerms,
    Outcome,
    Placement,
    Plan,
    Result,
    Snapshot,
    Verb,
    Verdict,
)
from slurm_fair.model.ids import pack
from slurm_fair.reconcile import apply_outcomes, apply_plan, follow
from slurm_fair.sim.loop.renewals import renewals_until, renewed_until
from tests.support.builders import job, lease, leases, lying, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0, grace=60.0)
NOW = 4500.0
RUNNING, WAITING = JobState.RUNNING, JobState.WAITING
SHOWN = snapshot(
    time=NOW,
    nodes={"n1": 8, "n2": 8},
    jobs=[
        job(1, gpus=4, state=RUNNING, start=3600, on={"n1": 4}),
        job(2, gpus=2),
        job(3, gpus=4, tenant="b"),
    ],
)
HELD = leases(lease(1, {"n1": 4}, start=3600, granted=3600, end=4500, renewals=3))


def plan(
    shown: Snapshot, verdicts: Mapping[int, Verdict], places: Mapping[int, Mapping[str, int]] = {}
) -> Plan:
    """A plan by job ids; the others wait."""
    rows = {key >> 23: row for row, key in enumerate(shown.jobs.key.tolist())}
    names = shown.nodes.names
    verdict = np.zeros(len(rows), dtype=np.int8)
    for base, said in verdicts.items():
        verdict[rows[base]] = said
    triples = [(rows[base], names.index(n), g) for base, on in places.items() for n, g in on.items()]
    nothing = np.zeros(len(rows), dtype=np.int64)
    why = Explanation(nothing, nothing - 1, np.full(len(nothing), np.nan), ("because",))
    return Plan(verdict, Placement.of(triples), why)


def columns(table: Leases | Placement, *names: str) -> list[Any]:
    return [getattr(table, name).tolist() for name in names]


def test_a_renewed_lease_lasts_until_the_next_boundary_and_counts() -> None:
    after, (event,) = apply_plan(HELD, plan(SHOWN, {1: Verdict.RENEW}), SHOWN, TERMS, NOW)
    assert columns(after, "end", "renewals", "granted", "phase") == [
        [5400.0],
        [4],
        [NOW],
        [LeasePhase.RUNNING],
    ]
    assert (event.kind, event.detail) == ("renewed", {"until": 5400.0, "number": 5, "why": "because"})


def test_a_lease_that_is_renewed_while_nobody_waits_has_no_reason() -> None:
    """A simulation renews it without a look, and knows no reason either."""
    alone = plan(SHOWN, {1: Verdict.RENEW})
    verdict = np.where(alone.verdict == Verdict.WAIT, np.int8(Verdict.LEAVE), alone.verdict)
    (event,) = apply_plan(HELD, replace(alone, verdict=verdict), SHOWN, TERMS, NOW)[1]
    assert event.detail == {"until": 5400.0, "number": 5}


def test_reasons_are_left_out_where_nobody_wants_them() -> None:
    every = plan(SHOWN, {1: Verdict.RENEW, 2: Verdict.GRANT})
    told = apply_plan(HELD, every, SHOWN, TERMS, NOW)[1]
    assert [event.detail.get("why") for event in told] == ["because", "because"]
    told = apply_plan(HELD, every, SHOWN, TERMS, NOW, tell_why=False)[1]
    assert [event.detail.get("why") for event in told] == [None, None]


@pytest.mark.parametrize(("min_runtime", "end"), [(0.0, NOW + 900), (1200.0, NOW + 1200)])
def test_a_renewed_rolling_lease_lasts_a_term_from_now_or_the_least_run_time(
    min_runtime: float, end: float
) -> None:
    rolling = replace(TERMS, aligned=False, min_runtime=min_runtime)
    after, (event,) = apply_plan(HELD, plan(SHOWN, {1: Verdict.RENEW}), SHOWN, rolling, NOW)
    assert columns(after, "end", "renewals", "granted") == [[end], [4], [NOW]]
    assert event.detail == {"until": end, "number": 5, "why": "because"}


@pytest.mark.parametrize(("aligned", "end"), [(False, NOW + 300), (True, 5400.0)])
def test_a_renewal_may_be_shorter_than_a_term_where_leases_roll(aligned: bool, end: float) -> None:
    terms = replace(TERMS, aligned=aligned, renewal=300.0)
    after, _ = apply_plan(HELD, plan(SHOWN, {1: Verdict.RENEW, 2: Verdict.GRANT}), SHOWN, terms, NOW)
    assert columns(after, "end") == [[end, 5400.0 if aligned else NOW + 900]]


RENEWED_UNTIL = {
    "the end itself is left to a look": (True, 4500.0, 4500.0, []),
    "aligned, two ends": (True, 5401.0, 6300.0, [(4500.0, 5400.0, 5), (5400.0, 6300.0, 6)]),
    "rolling, one end": (False, 5400.0, 5400.0, [(4500.0, 5400.0, 5)]),
}


@pytest.mark.parametrize(
    ("aligned", "until", "end", "told"), RENEWED_UNTIL.values(), ids=RENEWED_UNTIL.keys()
)
def test_leases_that_only_go_on_are_renewed_at_each_of_their_ends(
    aligned: bool, until: float, end: float, told: list[tuple[float, float, int]]
) -> None:
    terms = replace(TERMS, aligned=aligned)
    after, events = renewed_until(HELD, terms, until), renewals_until(HELD, SHOWN, terms, until)
    last = told[-1][0] if told else 3600.0
    assert columns(after, "end", "granted", "renewals") == [[end], [last], [3 + len(told)]]
    assert [(e.time, e.detail["until"], e.detail["number"]) for e in events] == told
    assert {(e.kind, e.key >> 23, e.gpus) for e in events} <= {("renewed", 1, 4)}


def test_a_revoked_lease_is_being_given_back_and_keeps_its_end() -> None:
    after, (event,) = apply_plan(HELD, plan(SHOWN, {1: Verdict.REVOKE}), SHOWN, TERMS, NOW)
    assert columns(after, "phase", "end", "asked") == [[LeasePhase.REVOKING], [4500.0], [0.0]]
    assert (event.kind, event.detail["why"]) == ("revoked", "because")


@pytest.mark.parametrize("verdict", [Verdict.KEEP, Verdict.LEAVE, Verdict.WAIT])
def test_any_other_verdict_changes_nothing(verdict: Verdict) -> None:
    after, events = apply_plan(HELD, plan(SHOWN, {1: verdict}), SHOWN, TERMS, NOW)
    assert columns(after, "phase", "end", "renewals") == columns(HELD, "phase", "end", "renewals")
    assert events == ()


def test_a_granted_job_has_a_promise_of_its_gang_where_the_plan_says() -> None:
    made = plan(SHOWN, {3: Verdict.GRANT}, {3: {"n1": 2, "n2": 2}})
    after, (event,) = apply_plan(HELD, made, SHOWN, TERMS, NOW)
    assert [key >> 23 for key in after.key.tolist()] == [1, 3]
    assert columns(after, "phase", "gpus", "opened") == [
        [LeasePhase.RUNNING, LeasePhase.GRANTED],
        [4, 4],
        [0.0, 0.0],
    ]
    assert after.promises.nodes_of(pack(3)).tolist() == [0, 1]
    assert (event.kind, event.tenant, event.detail["nodes"]) == ("granted", "b", ["n1", "n2"])


def test_a_grant_takes_its_place_among_leases_of_earlier_and_later_jobs() -> None:
    held = leases(lease(1, {"n1": 4}, granted=3600), lease(3, {"n2": 4}, granted=3600))
    after, (event,) = apply_plan(held, plan(SHOWN, {2: Verdict.GRANT}, {2: {"n1": 2}}), SHOWN, TERMS, NOW)
    assert [key >> 23 for key in after.key.tolist()] == [1, 2, 3]
    assert after.granted.tolist() == [3600, NOW, 3600]
    assert columns(after.promises, "row", "node") == [[pack(2)], [0]]
    assert event.detail["nodes"] == ["n1"]


def test_grants_and_renewals_of_one_plan_are_told_apart() -> None:
    made = plan(SHOWN, {1: Verdict.RENEW, 2: Verdict.GRANT, 3: Verdict.GRANT}, {2: {"n1": 2}, 3: {"n2": 4}})
    after, events = apply_plan(HELD, made, SHOWN, TERMS, NOW)
    assert [(e.kind, e.key >> 23) for e in events] == [("renewed", 1), ("granted", 2), ("granted", 3)]
    assert columns(after.promises, "row", "node") == [[pack(2), pack(3)], [0, 1]]


def test_a_plan_for_an_empty_queue_changes_nothing() -> None:
    empty = snapshot(time=NOW, nodes={"n1": 8})
    after, events = apply_plan(Leases.none(), plan(empty, {}), empty, TERMS, NOW)
    assert (len(after), len(events)) == (0, 0)


# -- what came of the acts ------------------------------------------------------------------------------------


def outcome(verb: Verb, result: Result, base: int = 1, **more: Any) -> Outcome:
    """The outcome of an act on a job."""
    return Outcome(Action(verb, pack(base), base, 0.0, 0, **more), result)


def settled(phase: LeasePhase, verb: Verb, result: Result, **more: Any) -> Leases:
    """One lease after one outcome at 4510."""
    before = leases(lease(1, {"n1": 4}, phase=phase, end=4500.0, asked=4400.0))
    return apply_outcomes(before, [outcome(verb, result, **more)], TERMS, 4510.0)


@pytest.mark.parametrize(
    ("result", "opened"), [(Result.DONE, [4510.0]), (Result.UNKNOWN, [4510.0]), (Result.REFUSED, [])]
)
def test_an_open_gate_is_noted_a_doubtful_one_too_and_a_refused_one_ends_the_promise(
    result: Result, opened: list[float]
) -> None:
    assert settled(LeasePhase.GRANTED, Verb.OPEN, result).opened.tolist() == opened


@pytest.mark.parametrize(
    ("verb", "result", "phase", "asked", "end"),
    [
        (Verb.ASK, Result.DONE, LeasePhase.REVOKING, 4510.0, 4500.0),
        (Verb.ASK, Result.UNKNOWN, LeasePhase.REVOKING, 4400.0, 4500.0),
        (Verb.ASK, Result.REFUSED, LeasePhase.RUNNING, 0.0, 5400.0),
        (Verb.REQUEUE, Result.DONE, LeasePhase.REVOKING, 4400.0, 4500.0),
        (Verb.REQUEUE, Result.UNKNOWN, LeasePhase.REVOKING, 4400.0, 4500.0),
        (Verb.REQUEUE, Result.REFUSED, LeasePhase.RUNNING, 0.0, 5400.0),
    ],
)
def test_a_job_that_slurm_will_not_stop_has_another_lease(
    verb: Verb, result: Result, phase: LeasePhase, asked: float, end: float
) -> None:
    after = settled(LeasePhase.REVOKING, verb, result)
    assert columns(after, "phase", "asked", "end") == [[phase], [asked], [end]]
    anew = result is Result.REFUSED
    assert (after.granted.tolist() == [4510.0], after.renewals.tolist()) == (anew, [int(anew)])


def test_what_slurm_refuses_only_for_now_leaves_the_lease_as_it_is() -> None:
    before = leases(lease(1, {"n1": 4}, phase=LeasePhase.REVOKING, end=4500.0, asked=4400.0))
    busy = Outcome(outcome(Verb.REQUEUE, Result.REFUSED).action, Result.REFUSED, "slow down", later=True)
    after = apply_outcomes(before, [busy], TERMS, 4510.0)
    assert columns(after, "phase", "asked", "end") == [[LeasePhase.REVOKING], [4400.0], [4500.0]]


@pytest.mark.parametrize("result", list(Result))
def test_what_becomes_of_a_gate_does_not_touch_leases(result: Result) -> None:
    after = settled(LeasePhase.RUNNING, Verb.CLOSE, result)
    assert columns(after, "phase", "asked", "opened", "end") == [
        [LeasePhase.RUNNING],
        [4400.0],
        [0.0],
        [4500.0],
    ]


def test_an_act_on_a_whole_array_is_not_one_on_its_first_task() -> None:
    before = leases(lease(1, {"n1": 4}, phase=LeasePhase.GRANTED))
    after = apply_outcomes(before, [outcome(Verb.OPEN, Result.REFUSED, whole_record=True)], TERMS, NOW)
    assert len(after) == 1


def test_an_outcome_for_a_job_without_a_lease_is_nobodys() -> None:
    assert len(apply_outcomes(HELD, [outcome(Verb.OPEN, Result.REFUSED, base=99)], TERMS, NOW)) == 1


def test_leases_lie_where_the_look_and_the_promises_say_whenever_somebody_asks() -> None:
    """One ran on, one was granted before it in the queue, one was refused its start, one waits on."""
    promised = {"phase": LeasePhase.GRANTED, "granted": 4400.0}
    held = leases(
        lease(1, {"n1": 4}, start=3600), lease(3, {"n2": 2}, **promised), lease(4, {"n2": 2}, **promised)
    )
    shown = snapshot(
        time=NOW,
        nodes={"n0": 8, "n1": 8, "n2": 8},
        jobs=[job(1, gpus=4, state=RUNNING, start=3600, on={"n1": 4}), *[job(n, gpus=2) for n in (2, 3, 4)]],
    )
    followed, _, _ = follow(held, shown, TERMS)
    after, _ = apply_plan(followed, plan(shown, {2: Verdict.GRANT}, {2: {"n0": 2}}), shown, TERMS, NOW)
    after = apply_outcomes(after, [outcome(Verb.OPEN, Result.REFUSED, base=3)], TERMS, NOW)
    assert [key >> 23 for key in after.key.tolist()] == [1, 2, 4]
    assert columns(lying(after, shown), "row", "node", "gpus") == [[0, 1, 2], [1, 0, 2], [4, 2, 2]]
    assert columns(lying(followed, shown), "row", "node", "gpus") == [[0, 1, 2], [1, 2, 2], [4, 2, 2]]
