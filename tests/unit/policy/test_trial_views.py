"""Views made of other views: copies, permuted rows, strangers in the ledger, fewer jobs, no node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase, Told
from slurm_fair.model.ids import labels
from slurm_fair.policy import Pools, View
from slurm_fair.policy.check import objections
from slurm_fair.policy.trial_views import Kept, only, parts_of, turned, with_strangers, without_nodes
from tests.support.accounts import Account, view
from tests.support.builders import job, lease, leases, snapshot
from tests.support.strange_policies import Plain

NOW = 5000.0
SHOWN = snapshot(
    time=NOW,
    nodes={"n1": 8, "n2": 8},
    jobs=[
        job(1, gpus=4, tenant="b", state=JobState.RUNNING, start=10, on={"n1": 4}, submit=5.0),
        job(2, gpus=2, tenant="a", submit=7.0, barred=("n2",)),
        job(5, gpus=3, tenant="b", submit=6.0),
        job(9, gpus=1, tenant="a", state=JobState.RUNNING, start=20, on={"n2": 1}, submit=8.0),
    ],
)
HELD = leases(
    lease(1, {"n1": 4}, end=NOW),
    lease(5, {"n2": 3}, phase=LeasePhase.GRANTED),
    lease(9, {"n2": 1}, end=NOW + 1),
)
HAD = {
    "1": Account(10.0, 100.0),
    "2": Account(20.0, 100.0),
    "5": Account(50.0, 100.0),
    "9": Account(90.0, 100.0),
}


def seen(memory: Mapping[str, Any] | None = None) -> View:
    """Four jobs, three leases, and what each job has had."""
    told = Told.nothing(4, 1).with_columns(left_seconds=np.array([1.0, 2.0, 5.0, 9.0]))
    shown = view(replace(SHOWN, told=told), HELD, {"a": Account(7.0, 8.0), "b": Account(9.0, 8.0)}, HAD)
    return replace(shown, memory=memory or {})


def of_jobs(shown: View) -> dict[float, tuple[Any, ...]]:
    """All that is known of each job, by its submission: that is how it is told apart here."""
    jobs, told = shown.snapshot.jobs, shown.told_alone
    tenants = [shown.snapshot.tenants.names[at] for at in jobs.tenant.tolist()]
    sites = shown.lease_places.sites
    barred = set(shown.snapshot.barred.row.tolist())
    return {
        jobs.submit.item(row): (
            jobs.gpus.item(row),
            tenants[row],
            shown.had_gpu_seconds.item(row),
            told.left_seconds.item(row),
            shown.over.item(row),
            shown.promised.item(row),
            sites.get(row, []),
            row in barred,
        )
        for row in range(len(jobs))
    }


# --- a view that is kept


def test_a_kept_view_stays_as_it_was_whatever_is_written_into_its_copies() -> None:
    first = seen({"owed": [1.0]})
    kept = Kept.of(first)
    for shown in (first, kept.view()):
        shown.snapshot.jobs.weight[:] = 7.0
        shown.memory["owed"].append(2.0)
    again = kept.view()
    assert again.snapshot.jobs.weight.tolist() == [1.0] * 4
    assert again.memory == {"owed": [1.0]}
    assert of_jobs(again) == of_jobs(seen())


def test_a_memory_that_cannot_be_written_is_kept_as_it_is() -> None:
    memory = {"how": lambda: 1}
    assert Kept.of(seen(memory)).view().memory is memory


def test_what_goes_by_names_of_other_views_is_left_out() -> None:
    shown = replace(seen(), reserved=("something",), fading=object())  # type: ignore[arg-type]
    again = Kept.of(shown).view()
    assert (again.reserved, again.fading) == ((), None)


# --- the parts of a view

WRITES: dict[str, Callable[[View], object]] = {
    "snapshot": lambda shown: shown.snapshot.jobs.cpus.fill(3),
    "ledger": lambda shown: shown.ledger.jobs.had.fill(3.0),
    "leases": lambda shown: shown.leases.end.fill(3.0),
    "memory": lambda shown: shown.memory["list"].append(3.0),
}


@pytest.mark.parametrize("part", WRITES)
def test_the_part_into_which_somebody_wrote_is_told_from_the_others(part: str) -> None:
    shown = Kept.of(seen({"list": []})).view()
    before = parts_of(shown)
    WRITES[part](shown)
    after = parts_of(shown)
    assert [name for name in before if before[name] != after[name]] == [part]


def test_what_is_only_worked_out_from_a_view_changes_none_of_its_parts() -> None:
    shown = seen({"list": [1]})
    before = parts_of(shown)
    Pools.of(shown.snapshot)
    Plain().plan(shown)
    assert parts_of(shown) == before


# --- rows in the opposite order


def test_turned_the_same_jobs_stand_in_opposite_rows_with_all_that_is_theirs() -> None:
    other, was = turned(seen({"old": 1}))
    assert was.tolist() == [3, 2, 1, 0]
    assert labels(other.snapshot.jobs.key) == labels(SHOWN.jobs.key), "rows are in order of keys"
    assert other.snapshot.jobs.submit.tolist() == [8.0, 6.0, 7.0, 5.0]
    assert of_jobs(other) == of_jobs(seen())
    assert other.memory == {}


def test_turned_tables_are_in_order_of_keys() -> None:
    other, _ = turned(seen())
    for key in (other.snapshot.jobs.key, other.ledger.jobs.key, other.leases.key):
        assert (np.diff(key) > 0).all()


def test_turned_twice_it_is_the_same_view_again() -> None:
    once, twice = seen(), turned(turned(seen())[0])[0]
    for one, two in (
        (once.snapshot.jobs, twice.snapshot.jobs),
        (once.ledger.jobs, twice.ledger.jobs),
        (once.leases, twice.leases),
    ):
        for name in one._columns:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert once.lease_places.sites == twice.lease_places.sites


@pytest.mark.parametrize("rows", [[], [2]])
def test_none_and_one_can_be_turned(rows: list[int]) -> None:
    few = only(seen(), np.array(rows, dtype=np.int64))
    other, was = turned(few)
    assert was.tolist() == list(range(len(rows)))
    assert of_jobs(other) == of_jobs(few)


def test_jobs_that_the_snapshot_does_not_show_keep_their_keys() -> None:
    all_of_them, few = seen(), only(seen(), np.array([0, 2]))
    other, _ = turned(replace(few, ledger=all_of_them.ledger, leases=all_of_them.leases))
    assert set(other.ledger.jobs.key.tolist()) == set(all_of_them.ledger.jobs.key.tolist())
    assert set(other.leases.key.tolist()) == set(all_of_them.leases.key.tolist())


# --- strangers


def test_a_stranger_stands_before_all_jobs_and_tenants_and_changes_nothing_of_theirs() -> None:
    shown = seen()
    wider = with_strangers(shown)
    assert len(wider.ledger.jobs.key) == 5
    assert wider.ledger.jobs.key.min() < shown.ledger.jobs.key.min()
    assert wider.account_row.tolist() == [1, 2, 3, 4]
    assert wider.ledger.tenants.names == ("", *shown.ledger.tenants.names)
    assert of_jobs(wider) == of_jobs(shown)
    tenants = [wider.ledger.tenants.names[at] for at in wider.ledger.jobs.tenant.tolist()]
    assert tenants == ["", "b", "a", "b", "a"]
    for name in ("had", "owed_quota", "owed_demand"):
        one, two = (getattr(each.tenant_sums, name)[each.tenant_account].tolist() for each in (shown, wider))
        assert one == two
    assert wider.tenant_quota.tolist() == shown.tenant_quota.tolist()


# --- fewer jobs


def test_of_some_jobs_there_are_only_these_their_leases_and_their_accounts() -> None:
    few = only(seen(), np.array([0, 2]))
    assert (
        labels(few.snapshot.jobs.key) == labels(few.leases.key) == labels(few.ledger.jobs.key) == ["1", "5"]
    )
    assert of_jobs(few) == {submit: of_jobs(seen())[submit] for submit in (5.0, 6.0)}
    assert objections(Plain().plan(few), few) == ""


def test_of_no_jobs_the_nodes_are_left() -> None:
    empty = only(seen(), np.zeros(0, dtype=np.int64))
    assert (len(empty.snapshot.jobs), len(empty.leases), len(empty.ledger.jobs.key)) == (0, 0, 0)
    assert empty.snapshot.total_gpus == 16
    assert empty.free_gpus.tolist() == [8, 8]


# --- no node


def test_without_nodes_those_who_wait_still_wait() -> None:
    bare = without_nodes(seen())
    assert len(bare.snapshot.nodes.names) == 0
    assert labels(bare.snapshot.jobs.key) == ["2"]
    assert (len(bare.leases), len(bare.snapshot.barred), bare.snapshot.total_gpus) == (0, 0, 0)
    plan = Plain().plan(bare)
    assert objections(plan, bare) == ""
    assert len(plan.places) == 0
