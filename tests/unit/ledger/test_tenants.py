"""Tenants that a ledger does not have yet get rows, and every row that points to a tenant follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.model import ClosedRuns, Ledger
from tests.support.accounts import Account, ledger
from tests.support.builders import job, snapshot


def known() -> Ledger:
    """The tenants b and d, with one job each; the jobs' rows are 0 and 1."""
    shown = snapshot(jobs=[job(1, tenant="b"), job(2, tenant="d")], weights={"b": 2.0, "d": 4.0})
    return ledger(shown, tenants={"b": Account(had=10, owed=20), "d": Account(had=30, owed=40)})


def test_new_tenants_stand_in_the_order_of_names_and_had_and_were_owed_nothing() -> None:
    wider, rows = with_tenants(known(), ("c", "d", "a"), np.array([3.0, 9.0, 1.0]))
    assert wider.tenants.names == ("a", "b", "c", "d")
    assert wider.tenants.weight.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert wider.tenants.had.tolist() == [0, 10, 0, 30]
    assert wider.tenants.owed_quota.tolist() == wider.tenants.owed_demand.tolist() == [0, 20, 0, 40]
    assert wider.tenants.last_job.tolist() == [-np.inf, 0, -np.inf, 0]
    assert rows.tolist() == [2, 3, 0]


def test_jobs_and_closed_runs_stay_those_of_their_tenants() -> None:
    nothing = np.zeros(1)
    numbers = nothing.astype(np.int64)
    closed = ClosedRuns(numbers, nothing, nothing, nothing, numbers, numbers + 1, nothing, nothing)
    before = replace(known(), closed=closed)
    wider, _ = with_tenants(before, ("a", "b", "c", "d"), np.ones(4))
    assert [wider.tenants.names[row] for row in wider.jobs.tenant] == ["b", "d"]
    assert [wider.tenants.names[row] for row in wider.closed.tenant] == ["d"]


def test_where_all_are_known_the_ledger_is_the_same() -> None:
    before = known()
    for names in (("b", "d"), ("d", "b"), ("d",)):
        after, rows = with_tenants(before, names, np.zeros(len(names)))
        assert after is before
        assert [before.tenants.names[row] for row in rows] == list(names)
