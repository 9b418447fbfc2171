"""A gate that somebody moved: one of each tenant stays open for a lease."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Leases, LeaseTerms, label
from slurm_fair.reconcile import actions_for, follow
from slurm_fair.reconcile.moved_gates import stays_open
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, snapshot

TERMS = LeaseTerms(term=900.0, interval=10.0, aligned=False)
NOW = 5000.0


def opened(base: int, **columns: Any) -> JobSpec:
    """A waiting job whose gate somebody moved a moment ago."""
    return job(base, **({"gate_set": NOW - 60} | columns))


def left_open(*jobs: JobSpec, held: tuple[LeaseSpec, ...] = ()) -> list[int]:
    """Ids of the jobs whose gates stay open."""
    shown = snapshot(time=NOW, nodes={"n1": 8}, jobs=jobs).jobs
    return [int(key) >> 23 for key in shown.key[stays_open(shown, leases(*held), TERMS, NOW)]]


def by_a_move(base: int = 9, **columns: Any) -> tuple[JobSpec, LeaseSpec]:
    """A job that runs because its gate was moved, and its lease."""
    start = columns.pop("start", NOW - 30)
    runs = job(base, state=JobState.RUNNING, start=start, gate_set=NOW - 70)
    return runs, lease(base, {"n1": 1}, adopted=True, **({"granted": start, "end": start + 900.0} | columns))


def test_one_moved_gate_of_each_tenant_stays_open() -> None:
    assert left_open(opened(3), opened(4), opened(5, tenant="b")) == [3, 5]


def test_the_gate_that_was_set_first_is_the_one() -> None:
    assert left_open(opened(3), opened(4, gate_set=NOW - 80)) == [4]


def test_all_other_gates_are_set_again_at_once() -> None:
    shown = snapshot(time=NOW, nodes={"n1": 8}, jobs=[opened(3), opened(4), opened(5)])
    actions = actions_for(Leases.none(), shown, TERMS, {}, NOW)
    assert [f"{a.verb.value} {label(a.key)}" for a in actions] == ["close 4", "close 5"]


@pytest.mark.parametrize(
    "columns",
    [
        {"gate_set": 0.0},
        {"gate_set": NOW - 901},
        {"gated": True},
        {"pinned": True},
        {"blocked": Blocked.OWN_BEGIN},
        {"blocked": Blocked.USER_HOLD},
    ],
    ids=["never gated", "a lease ago", "gated", "with a list of ours", "waits for its own time", "held"],
)
def test_what_is_no_moved_gate(columns: dict[str, Any]) -> None:
    assert left_open(opened(3, **columns), opened(4)) == [4]


def test_the_gate_of_a_job_that_could_not_be_taken_back_is_set_again() -> None:
    """Each such job would stay, one more a lease, beyond its account's own share."""
    for stays in ({"checkpoints": False}, {"requeueable": False}):
        assert left_open(opened(3, **stays), opened(4)) == [4]
        assert left_open(opened(3, **stays, time_limit_seconds=900.0), opened(4)) == [3]
    assert left_open(opened(3, checkpoints=False, restartable=True), opened(4)) == [3]


def test_a_gate_that_we_opened_is_nobodys_move() -> None:
    ours = lease(3, {"n1": 1}, phase=LeasePhase.GRANTED, opened=NOW - 1)
    assert left_open(opened(3), opened(4), held=(ours,)) == [4]


def test_none_stays_open_while_a_job_of_its_tenant_runs_its_first_lease_by_a_move() -> None:
    runs, held = by_a_move()
    assert left_open(opened(3), opened(4, tenant="b"), runs, held=(held,)) == [4]
    for over in ({"renewals": 1}, {"end": NOW}):
        runs, held = by_a_move(**over)
        assert left_open(opened(3), runs, held=(held,)) == [3]


def test_a_job_whose_gate_ran_out_by_itself_was_not_moved() -> None:
    runs, held = by_a_move(start=NOW - 70 + 1800)
    assert left_open(opened(3), runs, held=(held,)) == [3]


def test_what_started_by_a_moved_gate_is_told_so() -> None:
    for start, told in ((NOW - 30, True), (NOW - 70 + 1800, None)):
        shown = snapshot(time=NOW + 1800, nodes={"n1": 8}, jobs=[by_a_move(start=start)[0]])
        _, (event,), _ = follow(Leases.none(), shown, TERMS)
        assert event.detail.get("moved") is told
