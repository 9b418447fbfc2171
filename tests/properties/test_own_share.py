"""Work that cannot be taken back is granted only within its tenant's own share, whatever the policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import Blocked
from slurm_fair.policy import View, load
from slurm_fair.policy.own_share import bound, bound_gpus, within_own_share
from slurm_fair.policy.reach import without_the_impossible, without_the_kept_out
from tests.support.any_view import TENANTS, views
from tests.support.every_policy import EVERY

COUNTS_SECONDS = LedgerSettings().counts_seconds


@st.composite
def views_with_work_that_stays(draw: st.DrawFn) -> View:
    """Some jobs cannot save, some may not be requeued; some end within a term."""
    seen = draw(views())
    jobs = seen.snapshot.jobs
    saves, again, short = (
        np.array(draw(st.lists(st.booleans(), min_size=len(jobs), max_size=len(jobs))), dtype=bool)
        for _ in range(3)
    )
    limit = np.where(short, seen.terms.term, np.inf)
    jobs = jobs.with_columns(
        checkpoints=jobs.checkpoints & saves, requeueable=jobs.requeueable & again, time_limit_seconds=limit
    )
    return replace(seen, snapshot=replace(seen.snapshot, jobs=jobs), counts_seconds=COUNTS_SECONDS)


def gpus_after(seen: View, granted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each tenant's GPUs of such work before the plan, those granted to it now, and to how many of its jobs."""
    jobs, tenants = seen.snapshot.jobs, len(seen.snapshot.tenants)
    stays = bound(jobs, seen.terms.term)
    new = granted[stays[granted]]
    tenant = jobs.tenant[new]
    return (
        bound_gpus(seen, stays),
        np.bincount(tenant, jobs.gpus[new], tenants),
        np.bincount(tenant, minlength=tenants),
    )


@pytest.mark.parametrize("part", range(4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seen=views_with_work_that_stays())
def test_no_policy_grants_such_work_beyond_its_tenants_share(seen: View, part: int) -> None:
    share = seen.tenant_quota
    for name in EVERY[part::4]:
        note(name)
        policy = load(name, {})
        shown = replace(seen, snapshot=without_the_impossible(seen.snapshot, seen.leases, policy))
        shown = within_own_share(without_the_kept_out(shown, policy))
        held, more, count = gpus_after(shown, policy.plan(shown).granted)
        fits = held + more <= share + 1e-6
        assert np.all(fits | (more == 0) | ((held == 0) & (count == 1))), (held, more, share)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(seen=views_with_work_that_stays())
def test_the_rule_touches_nothing_else_and_always_lets_somebody_start(seen: View) -> None:
    shown = within_own_share(seen)
    before, after = seen.snapshot.jobs, shown.snapshot.jobs
    changed = (before.blocked != after.blocked).nonzero()[0]
    assert set(after.blocked[changed]) <= {Blocked.OWN_SHARE}
    assert not before.revocable[changed].any()
    assert (before.time_limit_seconds[changed] > seen.terms.term).all()
    stays = bound(before, seen.terms.term)
    held = bound_gpus(seen, stays)
    for tenant in range(len(TENANTS)):
        waits = seen.waiting_rows[stays[seen.waiting_rows] & (before.tenant[seen.waiting_rows] == tenant)]
        if waits.size and not held[tenant]:
            assert (after.blocked[waits] == Blocked.NOT_BLOCKED).any()
        one = after.blocked[waits] != Blocked.NOT_BLOCKED
        assert held[tenant] + before.gpus[waits].sum() > seen.tenant_quota[tenant] or not one.any()
