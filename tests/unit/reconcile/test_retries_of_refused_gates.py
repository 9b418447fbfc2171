"""A gate that Slurm refuses is not tried at each look."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import (
    Action,
    Blocked,
    Event,
    LeasePhase,
    LeaseTerms,
    Outcome,
    Result,
    Retries,
    Standing,
    Verb,
)
from slurm_fair.model.ids import pack
from slurm_fair.reconcile import actions_for
from slurm_fair.reconcile.retries import backoff_after, resting_after, still_resting, without_refused
from tests.support.builders import JobSpec, job, lease, leases, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0)
CLOSE = Action(Verb.CLOSE, pack(1), 1, 0.0, 0)
REFUSED, DONE = Outcome(CLOSE, Result.REFUSED, "Access/permission denied"), Outcome(CLOSE, Result.DONE)


def after(standing: Standing, outcome: Outcome, now: float) -> Standing:
    """The standing after one act at a look."""
    return resting_after(standing, [outcome], snapshot(time=now, nodes={"n1": 8}, jobs=[]), TERMS)


def test_a_refused_gate_is_tried_once_more_at_once_and_then_later_and_later() -> None:
    standing, now, tries = Standing.new(0.0), 0.0, []
    while now < 1000:
        standing = still_resting(standing, now)
        if without_refused((CLOSE,), standing, now):
            tries.append(now)
            standing = after(standing, REFUSED, now)
        now += 10
    assert tries == [0, 10, 40, 100, 220, 460, 940]


@pytest.mark.parametrize(("gated", "rests"), [(False, {pack(1): 500.0}), (True, {})])
def test_a_gate_that_takes_the_place_of_a_begin_time_leaves_a_rest_until_then_and_a_renewed_one_none(
    gated: bool, rests: dict[int, float]
) -> None:
    waits = job(1, blocked=Blocked.OWN_BEGIN, gated=gated, gate_until=500.0)
    seen = snapshot(time=480.0, nodes={"n1": 8}, jobs=[waits])
    standing = resting_after(Standing.new(480.0), [DONE], seen, TERMS)
    assert {key: due[0] for key, due in standing.backoff.due.items()} == rests


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.REQUEUE])
def test_an_act_that_is_refused_for_months_never_ends_the_daemon(verb: Verb) -> None:
    refused = REFUSED._replace(action=CLOSE._replace(verb=verb))
    standing, now = Standing.new(0.0), 0.0
    for _ in range(1200):
        standing = after(still_resting(standing, now), refused, now)
        (rest,) = {**standing.unshut.due, **standing.unmoved.due}.values()
        assert rest[0] <= now + 3600
        now = max(rest[0], now + 10)


def test_a_start_that_fails_for_months_never_ends_the_daemon() -> None:
    assert (
        backoff_after(Retries({1: (0.0, 1100)}), [Event(5.0, "takenback", 1, "a", 1, {})], 5.0).due[1][0]
        == 3605.0
    )


def test_a_gate_that_came_to_stand_is_no_longer_counted() -> None:
    standing = after(after(Standing.new(0.0), REFUSED, 0.0), REFUSED, 10.0)
    assert without_refused((CLOSE,), standing, 20.0) == ()
    standing = after(standing, DONE, 45.0)
    assert without_refused((CLOSE,), standing, 46.0) == (CLOSE,)


def test_other_acts_on_the_job_do_not_rest_nor_does_a_refusal_that_passes() -> None:
    standing = after(after(Standing.new(0.0), REFUSED, 0.0), REFUSED, 10.0)
    assert without_refused((CLOSE._replace(verb=Verb.OPEN),), standing, 20.0) != ()
    passing = REFUSED._replace(later=True)
    standing = after(after(Standing.new(0.0), passing, 0.0), passing, 10.0)
    assert without_refused((CLOSE,), standing, 20.0) == (CLOSE,)


NOW = 10_000.0


def gated(base: int, left: float) -> JobSpec:
    """A job behind a gate of ours that opens so soon."""
    return job(base, gated=True, gate_until=NOW + left, gate_set=NOW - 900)


@pytest.mark.parametrize(
    ("switching", "closed"), [(False, [1, 2, 3, 4]), (True, [1, 2, 4])], ids=["calm", "switching"]
)
def test_while_jobs_change_places_renewals_that_have_time_wait(switching: bool, closed: list[int]) -> None:
    jobs = [job(1), gated(2, 15.0), gated(3, 800.0), gated(4, 400.0), job(9, gpus=1)]
    seen = snapshot(time=NOW, nodes={"n1": 8}, jobs=jobs)
    phase = LeasePhase.GRANTED if switching else LeasePhase.RUNNING
    promised = leases(lease(9, {"n1": 1}, phase=phase, opened=NOW - 1))
    actions = actions_for(promised, seen, TERMS, {}, NOW)
    assert sorted(a.record for a in actions if a.verb is Verb.CLOSE and a.record != 9) == closed


def test_while_jobs_change_places_only_some_hundred_gates_are_renewed_at_a_look() -> None:
    jobs = [gated(base, 300.0) for base in range(1, 1001)]
    seen = snapshot(time=NOW, nodes={"n1": 8}, jobs=[*jobs, job(2000, gpus=1)])
    promised = leases(lease(2000, {"n1": 1}, phase=LeasePhase.GRANTED, opened=NOW - 1))
    closed = [a for a in actions_for(promised, seen, TERMS, {}, NOW) if a.verb is Verb.CLOSE]
    assert len(closed) == 400


@pytest.mark.parametrize("held", ["USER_HOLD", "ADMIN_HOLD", "SLURM_HOLD"])
def test_the_begin_time_of_a_held_job_is_left_as_it_is_and_its_node_list_of_ours_is_not(held: str) -> None:
    blocked = getattr(Blocked, held)
    plain, pinned = job(1, blocked=blocked), job(2, blocked=blocked, pinned=True)
    seen = snapshot(time=NOW, nodes={"n1": 8}, jobs=[plain, pinned])
    actions = actions_for(leases(), seen, TERMS, {}, NOW)
    assert [a.record for a in actions] == [2]
    assert np.all([a.verb is Verb.CLOSE for a in actions])


@pytest.mark.parametrize("phase", [LeasePhase.RUNNING, LeasePhase.GRANTED])
def test_the_hold_of_a_submission_gives_way_to_a_begin_time_at_the_first_look(phase: LeasePhase) -> None:
    as_submitted = job(1, gated=True, gate_until=np.inf, gate_set=0.0)
    seen = snapshot(time=NOW, nodes={"n1": 8}, jobs=[as_submitted, job(9)])
    promised = leases(lease(9, {"n1": 1}, phase=phase, opened=NOW - 1))
    actions = actions_for(promised, seen, TERMS, {}, NOW)
    assert [a.record for a in actions if a.verb is Verb.CLOSE and a.record != 9] == [1]
