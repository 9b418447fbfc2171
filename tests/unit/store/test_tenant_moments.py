"""Each tenant's account at the instant of a tick."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.model import Aside, Blocked, JobState, Standing
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.store.tenant_moments import moments_of
from tests.support.accounts import Account, ledger
from tests.support.builders import job, snapshot

RUNNING = JobState.RUNNING


def test_a_tenant_holds_and_asks_for_what_its_jobs_do() -> None:
    jobs = [
        job(1, tenant="a", gpus=2, usual_gpus=4, state=RUNNING),
        job(2, tenant="a", gpus=3),
        job(3, tenant="b", gpus=5, blocked=Blocked.USER_HOLD),
    ]
    shown = snapshot(time=90.0, jobs=jobs, weights={"a": 2.0, "b": 1.0})
    books = ledger(shown, {"a": Account(had=10, owed=20), "b": Account(had=30, owed=40)})
    standing = Standing.new(0.0)._replace(ledger=books)
    assert moments_of(shown, standing) == [
        TenantMoment(90.0, "a", 2.0, 10.0, 20.0, 20.0, 2.0, 7.0),
        TenantMoment(90.0, "b", 1.0, 30.0, 40.0, 40.0, 0.0, 0.0),
    ]


def test_a_tenant_of_the_ledger_that_is_away_has_a_row() -> None:
    before = snapshot(time=90.0, jobs=[job(1, tenant="a", gpus=2)])
    standing = Standing.new(0.0)._replace(ledger=ledger(before, {"a": Account(had=10, owed=20)}))
    (away,) = moments_of(snapshot(time=90.0, jobs=[job(2, tenant="b")]), standing)
    assert away == TenantMoment(90.0, "a", 1.0, 10.0, 20.0, 20.0, 0.0, 0.0)


def test_jobs_that_are_left_alone_count() -> None:
    shown = snapshot(time=90.0, jobs=[job(1, tenant="a", gpus=2, state=RUNNING)])
    other = snapshot(jobs=[job(2, tenant="a", gpus=3, state=RUNNING)])
    with_it = replace(shown, aside=Aside(other.jobs, other.held, ("",)))
    standing = Standing.new(0.0)._replace(ledger=ledger(shown))
    assert [(moment.gpus, moment.demand) for moment in moments_of(with_it, standing)] == [(5.0, 5.0)]
