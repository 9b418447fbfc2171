"""Some jobs stand in the line for a tenant's own share, and others are free of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import Aside, Blocked, JobState, LeasePhase
from slurm_fair.policy import View
from slurm_fair.policy.own_share import promised_beyond, within_own_share
from tests.support.accounts import Account, view
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, snapshot

HOUR = 3600.0


def plain(base: int, gpus: int = 1, tenant: str = "a", **more: object) -> JobSpec:
    """A job that cannot save."""
    return job(base, gpus=gpus, tenant=tenant, checkpoints=False, **more)


def blocked(
    *jobs: JobSpec, held: tuple[LeaseSpec, ...] = (), aside: tuple[JobSpec, ...] = (), gpus: int = 8
) -> list[int]:
    """Ids of the jobs that have to wait for their tenant's share; a and b are alike."""
    seen = snapshot(time=HOUR, nodes={"n1": gpus}, jobs=jobs, weights={"a": 1.0, "b": 1.0})
    if aside:
        others = snapshot(time=HOUR, nodes={"n1": gpus}, jobs=aside, weights={"a": 1.0, "b": 1.0})
        seen = replace(
            seen,
            nodes=seen.nodes.with_columns(gpus_others=others.held.per_node(1)),
            aside=Aside(others.jobs, others.held, others.reasons),
        )
    shown = view(seen, leases(*held), {"a": Account(), "b": Account()}, {})
    after = within_own_share(_remembered(shown)).snapshot.jobs
    return [int(key) >> 23 for key in after.key[after.blocked == Blocked.OWN_SHARE]]


def _remembered(shown: View) -> View:
    tenants = shown.ledger.tenants
    last = np.full(len(tenants.names), HOUR)
    ledger = replace(shown.ledger, tenants=tenants.with_columns(last_job=last))
    return replace(shown, ledger=ledger, counts_seconds=LedgerSettings().counts_seconds)


def test_the_oldest_start_within_the_share_and_nobody_overtakes_a_gang() -> None:
    assert blocked(*(plain(number) for number in range(1, 7))) == [5, 6]
    assert blocked(plain(1, 3), plain(2, 2), plain(3, 1)) == [2, 3]
    assert blocked(plain(9, 3, submit=5.0), plain(7, 3, submit=9.0)) == [7]


def test_what_can_be_taken_back_and_other_tenants_are_free() -> None:
    assert blocked(*(plain(number) for number in range(1, 5)), job(5, gpus=8), plain(6, 4, "b")) == []


@pytest.mark.parametrize(
    "what",
    [{"checkpoints": False}, {"requeueable": False}],
    ids=["cannot save", "may not be requeued"],
)
def test_either_is_enough(what: dict[str, bool]) -> None:
    assert blocked(job(1, gpus=4, tenant="a", **what), job(2, gpus=1, tenant="a", **what)) == [2]


def test_a_job_that_ends_within_a_term_is_free_of_it() -> None:
    short: dict[str, Any] = {"time_limit_seconds": 900.0}
    long: dict[str, Any] = {"time_limit_seconds": 901.0}
    assert blocked(*(plain(n, 2, **short) for n in range(1, 9))) == []
    assert blocked(*(plain(n, 2, **long) for n in range(1, 4))) == [3]


def test_one_gang_bigger_than_the_share_starts_where_its_tenant_holds_nothing() -> None:
    assert blocked(plain(1, 8), plain(2, 1)) == [2]
    runs = plain(3, 1, state=JobState.RUNNING, on={"n1": 1})
    assert blocked(plain(4, 8), runs, held=(lease(3, {"n1": 1}),)) == [4]
    other = job(3, gpus=1, tenant="a", state=JobState.RUNNING, on={"n1": 1})
    assert blocked(plain(4, 8), other, held=(lease(3, {"n1": 1}),)) == []


def test_what_is_promised_or_left_alone_counts_as_held() -> None:
    waits = [plain(2, 2), plain(3, 1)]
    promised = lease(1, {"n1": 2}, phase=LeasePhase.GRANTED)
    assert blocked(plain(1, 2), *waits, held=(promised,)) == [3]
    srun = plain(70, 2, state=JobState.RUNNING, on={"n1": 2})
    assert blocked(*waits, aside=(srun,)) == [3]
    assert blocked(*waits, aside=(replace(srun, tenant="b", user="b"),)) == []


def test_a_job_that_the_site_may_requeue_is_free() -> None:
    assert blocked(*(plain(number, 4, restartable=True) for number in range(1, 5))) == []
    assert blocked(*(plain(n, 4, restartable=True, requeueable=False) for n in range(1, 3))) == [2]


def test_tasks_for_which_their_array_has_no_room_stand_behind() -> None:
    tasks = [plain(1, 2, task=number, array_limit=1, record=1) for number in range(3)]
    assert blocked(*tasks, plain(2, 2)) == [1, 1]


def taken_back(*held: LeaseSpec, jobs: tuple[JobSpec, ...]) -> list[int]:
    """Ids of the jobs whose promises are beyond the share."""
    seen = snapshot(time=HOUR, nodes={"n1": 8}, jobs=jobs, weights={"a": 1.0, "b": 1.0})
    shown = _remembered(view(seen, leases(*held), {"a": Account(), "b": Account()}, {}))
    return [int(key) >> 23 for key in shown.leases.key[promised_beyond(shown)]]


def grant(base: int, gpus: int = 1, granted: float = 100.0, opened: float = 0.0) -> LeaseSpec:
    return lease(base, {"n1": gpus}, phase=LeasePhase.GRANTED, granted=granted, opened=opened)


def test_a_promise_is_taken_back_where_its_job_was_changed_and_is_beyond_the_share_now() -> None:
    runs = plain(9, 4, state=JobState.RUNNING, on={"n1": 4})
    held = lease(9, {"n1": 4})
    assert taken_back(held, grant(1), jobs=(runs, job(1, tenant="a"))) == []
    assert taken_back(held, grant(1), jobs=(runs, plain(1))) == [1]
    assert taken_back(held, grant(1), jobs=(runs, job(1, tenant="a", requeueable=False))) == [1]
    assert taken_back(held, grant(1), jobs=(runs, plain(1, time_limit_seconds=900.0))) == []
    assert taken_back(held, grant(1), jobs=(runs, plain(1, tenant="b"))) == []


def test_the_latest_promises_go_first_and_as_many_as_it_takes() -> None:
    jobs = tuple(plain(n, 2) for n in (1, 2, 3))
    held = (grant(1, 2, 300.0), grant(2, 2, 100.0), grant(3, 2, 200.0))
    assert taken_back(*held, jobs=jobs) == [1]


def test_a_promise_behind_an_open_gate_and_the_only_gang_of_a_tenant_stay() -> None:
    runs = plain(9, 4, state=JobState.RUNNING, on={"n1": 4})
    assert taken_back(lease(9, {"n1": 4}), grant(1, opened=200.0), jobs=(runs, plain(1))) == []
    assert taken_back(grant(1, 8), jobs=(plain(1, 8),)) == []
