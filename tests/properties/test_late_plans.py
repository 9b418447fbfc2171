"""A plan for one view, carried over to another: of any two clusters, and of one that has not changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from slurm_fair.model import Verdict
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from slurm_fair.policy.late import carried_over
from slurm_fair.policy.protocol import QuickPolicy
from tests.support.any_view import views
from tests.support.solving_policies import plain

some = settings(max_examples=200, deadline=None)


@some
@given(view=views())
def test_on_a_cluster_that_has_not_changed_it_is_the_same_plan(view: View) -> None:
    plan = plain(view)
    late = carried_over(plan, view, view, "late")
    assert objections(late, view) == ""
    for name in ("row", "node", "gpus"):
        assert np.array_equal(getattr(late.places, name), getattr(plan.places, name))
    assert np.array_equal(late.granted, plan.granted)
    assert np.array_equal(late.renewed, plan.renewed)
    assert np.array_equal(late.revoked, plan.revoked)
    assert (late.memory, late.note) == (plan.memory, "late")


@some
@given(then=views(), now=views())
def test_on_any_other_cluster_it_grants_only_who_waits_on_gpus_that_are_there(then: View, now: View) -> None:
    now = replace(now, now=max(then.now, now.now))
    late = carried_over(plain(then), then, now, "late")
    assert now.waiting[late.granted].all()
    assert set(late.granted.tolist()) == set(late.places.row.tolist())
    assert now.over[late.revoked].all()
    assert not now.only_renewable[late.revoked].any()
    assert now.flags(now.decided_rows)[late.renewed].all()
    nodes = len(now.snapshot.nodes.names)
    back = now.lease_places.take((late.verdict == Verdict.REVOKE)[now.lease_places.row])
    assert (late.places.per_node(nodes) <= now.free_gpus + back.per_node(nodes)).all()
    assert len(late.explanation) == len(late.verdict)


@pytest.mark.parametrize("name", ["allox", "gavel", "gavel-ftf", "mst", "ossp"])
def test_a_quick_plan_can_be_carried_out(name: str) -> None:
    policy = load(name, {})
    assert isinstance(policy, QuickPolicy)
    quick = policy.quick_plan

    @settings(max_examples=80, deadline=None)
    @given(view=views())
    def check(view: View) -> None:
        assert objections(quick(view), view) == ""

    check()
