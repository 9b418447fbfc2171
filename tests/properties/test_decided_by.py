"""The number that is told of each job is the one by which it came to its place in the order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from slurm_fair.model import Ledger, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.orders.two_phase import decided_by
from slurm_fair_plugins.astraea import Astraea
from tests.support.accounts import Account, view
from tests.support.any_view import views
from tests.support.builders import job, snapshot


@pytest.mark.parametrize("share", ["quota", "demand"])
@settings(max_examples=300, deadline=None)
@given(seen=views())
def test_who_goes_before_a_job_has_no_greater_number(share: str, seen: View) -> None:
    books = seen.ledger
    tenants = books.tenants.with_columns(owed_demand=books.tenants.owed_quota * 0.5)
    seen = replace(seen, ledger=Ledger(books.time, books.began, books.total_gpus, tenants, books.jobs))
    plan = Astraea(choose_share=share).plan(seen)  # type: ignore[arg-type]
    numbers = decided_by(plan, seen, share)
    kept = np.where(plan.verdict == Verdict.RENEW, Verdict.KEEP, plan.verdict).astype(plan.verdict.dtype)
    between_beats = decided_by(replace(plan, verdict=kept, why=plan.explanation), seen, share)
    assert np.array_equal(between_beats, numbers, equal_nan=True)
    assert (np.isnan(numbers) == (plan.explanation.rank < 0)).all()
    in_order = numbers[np.argsort(plan.explanation.rank)][int((plan.explanation.rank < 0).sum()) :]
    assert (np.diff(in_order[np.isfinite(in_order)]) >= -1e-9).all(), in_order


def test_it_is_the_share_by_quota_that_decides_and_not_the_jobs_own() -> None:
    """Tenant a has had half of its quota, b all of it; b's job alone has had nothing."""
    jobs = [job(1, gpus=8, tenant="a"), job(2, gpus=8, tenant="b"), job(3, gpus=8, tenant="a")]
    accounts = {"a": Account(7200.0, 14400.0), "b": Account(14400.0, 14400.0)}
    seen = view(snapshot(nodes={"n1": 8}, jobs=jobs), None, accounts, {"1": Account(9.0, 3.0)})
    plan = Astraea().plan(seen)
    assert decided_by(plan, seen).tolist() == pytest.approx([1.0, 1.0, 0.5])
