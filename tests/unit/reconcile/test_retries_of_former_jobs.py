"""After `slurmctld -c` ids come again: the next bearer of an id does not inherit the rests of the one before."""

from __future__ import annotations

import pytest

from slurm_fair.model import Blocked, Retries, Snapshot, Standing
from slurm_fair.model.ids import pack
from slurm_fair.reconcile.retries import without_rests_of_others
from slurm_fair.tick.prepared import prepare
from tests.support.accounts import ledger
from tests.support.builders import JobSpec, job, snapshot
from tests.support.fake_cluster import rules_for

KEY = pack(7)
NODES = {"n1": 8, "n2": 8}


def rested(seen: Snapshot, key: int = KEY) -> Standing:
    """The standing after a look that showed these jobs, one of which had failed in every way."""
    failed = Retries({key: (5000.0, 6)})
    return Standing.new(0.0)._replace(
        ledger=ledger(seen), backoff=failed, unmoved=failed, unshut=failed, shunned={key: ("n1",)}
    )


def seen_at(time: float, *jobs: JobSpec) -> Snapshot:
    return snapshot(time=time, nodes=NODES, jobs=jobs)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ([job(7, submit=50.0)], job(7, submit=50.0), True),
        ([job(7, submit=50.0)], job(7, submit=105.0), False),
        ([job(7, submit=50.0)], job(7, submit=105.0, restarts=1), True),
        ([job(7, submit=50.0)], job(7, submit=40.0), True),
        ([], job(7, submit=105.0), False),
        ([], job(7, submit=50.0), True),
    ],
    ids=["as it was", "another", "requeued", "state went back", "another after its end", "not listed once"],
)
def test_only_the_job_that_failed_rests(before: list[JobSpec], now: JobSpec, same: bool) -> None:
    after = without_rests_of_others(rested(seen_at(100.0, *before)), seen_at(110.0, now).jobs)
    kept = (after.backoff.due, after.unmoved.due, after.unshut.due, after.shunned)
    assert [bool(rests) for rests in kept] == [same] * 4


@pytest.mark.parametrize(("submit", "same"), [(50.0, True), (105.0, False)])
def test_what_was_tried_on_a_whole_array_is_as_old_as_its_tasks(submit: float, same: bool) -> None:
    standing = rested(seen_at(100.0, job(7, task=1, submit=50.0)))
    now = seen_at(110.0, job(6, submit=9.0), job(7, task=3, submit=submit), job(8, submit=105.0)).jobs
    assert bool(without_rests_of_others(standing, now).backoff) is same


def test_an_act_of_unknown_outcome_stays_unknown_and_the_rests_of_other_jobs_stay() -> None:
    standing = rested(seen_at(100.0, job(7, submit=50.0)))
    more = standing.backoff.until({pack(9): 6000.0})
    standing = standing._replace(unsettled={KEY: 99.0}, backoff=more)
    after = without_rests_of_others(standing, seen_at(110.0, job(7, submit=105.0)).jobs)
    assert (after.unsettled, list(after.backoff.due)) == ({KEY: 99.0}, [pack(9)])


def test_a_look_plans_the_next_bearer_of_an_id_at_once() -> None:
    standing = rested(seen_at(100.0, job(7, gpus=1, submit=50.0)))
    ready = prepare(standing, seen_at(110.0, job(7, gpus=1, submit=105.0)), rules_for())
    assert ready.view.snapshot.jobs.blocked.tolist() == [Blocked.NOT_BLOCKED]
    assert not len(ready.view.snapshot.barred.row)
