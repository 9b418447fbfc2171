"""Gates of jobs with a deadline: no longer than half of the time in which they must start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Action, Blocked, LeaseTerms, Snapshot, Told
from slurm_fair.reconcile import actions_for
from slurm_fair.reconcile.gate_lengths import gate_lengths
from tests.support.builders import JobSpec, job, leases, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0, grace=60.0)
NOW = 5000.0


def dated(ahead: float, *jobs: JobSpec, now: float = NOW) -> Snapshot:
    """Jobs whose deadline is so many seconds ahead; inf = they have none."""
    shown = snapshot(time=now, nodes={"n1": 8}, jobs=jobs)
    told = Told.nothing(len(jobs), len(shown.gpu_types))
    return replace(shown, told=told.with_columns(deadline=np.full(len(jobs), now + ahead)))


def due(ahead: float, **columns: Any) -> tuple[Action, ...]:
    """The acts on one job of 600 s with such a deadline."""
    one = job(1, **({"gpus": 4, "submit": NOW - 60, "time_limit_seconds": 600.0} | columns))
    return actions_for(leases(), dated(ahead, one), TERMS, {}, NOW)


def behind(seconds: float) -> dict[str, Any]:
    """Columns of a job behind a gate of ours that opens then."""
    return {"gated": True, "gate_until": NOW + seconds, "gate_set": NOW - 60}


@pytest.mark.parametrize(
    ("ahead", "limit", "seconds"),
    [
        (math.inf, 600, 1800),
        (900, 600, 150),
        (4200, 600, 1800),
        (4198, 600, 1799),
        (620, 600, 40),  # four looks
        (600, 600, 1800),  # Slurm starts it no more
        (-50, 600, 1800),
        (300, math.inf, 150),  # nobody says how long it takes
        (math.inf, math.inf, 1800),
    ],
)
def test_a_gate_holds_for_half_of_the_time_in_which_the_job_must_start(
    ahead: float, limit: float, seconds: float
) -> None:
    shown = dated(ahead, job(1, time_limit_seconds=limit))
    assert gate_lengths(shown, TERMS, NOW).tolist() == [seconds]


@pytest.mark.parametrize(
    ("ahead", "limit", "seconds"),
    [(900, 1200, 300), (1500, 1200, 600), (300, 1200, 1800), (900, math.inf, 300)],
)
def test_of_a_job_with_a_least_time_that_much_must_fit(ahead: float, limit: float, seconds: float) -> None:
    shown = dated(ahead, job(1, time_limit_seconds=limit))
    assert shown.told is not None
    shown = replace(shown, told=shown.told.with_columns(must_fit_seconds=np.array([300.0])))
    assert gate_lengths(shown, TERMS, NOW).tolist() == [seconds]


@pytest.mark.parametrize(
    ("left", "seconds"), [(100, 50), (80, 40), (50, 40), (40, 30), (30, 20), (29, 40), (20, 40), (5, 40)]
)
def test_a_gate_ends_a_look_before_the_last_start_while_two_looks_come_before_that(
    left: float, seconds: float
) -> None:
    assert gate_lengths(dated(600 + left, job(1, time_limit_seconds=600.0)), TERMS, NOW).tolist() == [seconds]


def test_without_any_deadline_all_gates_hold_for_two_terms() -> None:
    assert gate_lengths(snapshot(jobs=[job(1), job(2)]), TERMS, NOW).tolist() == [1800, 1800]


def test_a_short_gate_of_a_submission_is_not_made_longer_at_the_first_look() -> None:
    assert due(900, **behind(150)) == ()


def test_it_is_renewed_for_half_of_what_is_left_when_half_of_that_is_over() -> None:
    assert due(800, **behind(50)) == ()
    (action,) = due(800, **behind(49))
    assert action.until == NOW + 100


@pytest.mark.parametrize("seconds", [1800.0, 9000.0])
def test_a_gate_of_ours_that_ends_too_late_is_shortened(seconds: float) -> None:
    (action,) = due(900, **behind(seconds))
    assert action.until == NOW + 150
    assert due(900, **behind(152)) == ()  # whole seconds


def test_a_begin_time_of_its_owner_is_not_shortened() -> None:
    assert due(900, blocked=Blocked.OWN_BEGIN, gate_until=NOW + 800) == ()


@pytest.mark.parametrize("ahead", [620, 700, 900, 3000, 20_000])
def test_a_gate_of_a_controller_that_looks_never_opens_by_itself_and_always_in_time(ahead: int) -> None:
    latest, until, now, acts = NOW + ahead - 600, 0.0, NOW, 0
    while now < latest:
        gate = {"gated": until > now, "gate_until": max(until, 0.0), "gate_set": NOW if until else 0.0}
        one = job(1, gpus=4, submit=NOW - 60, time_limit_seconds=600.0, **gate)
        for action in actions_for(leases(), dated(NOW + ahead - now, one, now=now), TERMS, {}, now):
            until, acts = action.until, acts + 1
        assert until > now + TERMS.interval
        assert until <= max(now + (latest - now) / 2, now + 4 * TERMS.interval) + 1
        assert until <= latest - TERMS.interval or latest - now < 3 * TERMS.interval
        now += TERMS.interval
    assert acts <= 2 + ahead / TERMS.term + 3 * math.log2(ahead)


def test_an_array_with_a_deadline_has_one_short_gate() -> None:
    tasks = [job(5, task=at, gpus=1, submit=1.0, time_limit_seconds=600.0) for at in (1, 2)]
    (action,) = actions_for(leases(), dated(900, *tasks), TERMS, {}, NOW)
    assert (action.whole_record, action.until) == (True, NOW + 150)
