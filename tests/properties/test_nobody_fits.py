"""A walk whose end is known before is left out, and the plan is the one of a policy that always walks."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from slurm_fair.model import Blocked, Plan
from slurm_fair.policy import View
from slurm_fair_plugins.astraea import Astraea
from slurm_fair_plugins.astraea import round as astraea
from tests.support.any_view import views


@pytest.mark.parametrize("placement", ["consolidated", "relaxed"])
@given(view=views())
@settings(max_examples=300, deadline=None)
def test_a_plan_without_a_walk_is_the_plan_after_one(placement: str, view: View) -> None:
    check(Astraea(placement=placement), view)


@pytest.mark.parametrize("placement", ["consolidated", "relaxed"])
@given(view=views())
@settings(max_examples=300, deadline=None)
def test_the_only_job_that_waits_gets_what_the_walk_would_give_it(placement: str, view: View) -> None:
    for row in view.waiting_rows.tolist():
        check(Astraea(placement=placement), with_one_waiting(view, row))


def with_one_waiting(view: View, row: int) -> View:
    """The view in which all others that wait are held by their users."""
    jobs = view.snapshot.jobs
    blocked = jobs.blocked.copy()
    blocked[view.waiting_rows] = Blocked.USER_HOLD
    blocked[row] = Blocked.NOT_BLOCKED
    return replace(view, snapshot=replace(view.snapshot, jobs=jobs.with_columns(blocked=blocked)))


def check(policy: Astraea, view: View) -> None:
    """The policy plans for a view what it plans if it is not let off the walk."""
    short = policy.plan(view)
    with (
        patch.object(astraea, "may_place", return_value=True),
        patch.object(astraea, "placed_alone", return_value=None),
    ):
        walked = policy.plan(view)
        for name in ("row", "node", "gpus"):
            np.testing.assert_array_equal(getattr(short.places, name), getattr(walked.places, name))
        np.testing.assert_array_equal(short.verdict, walked.verdict)
        np.testing.assert_array_equal(short.rank, walked.rank)
        assert said(short) == said(walked)


def said(plan: Plan) -> list[str]:
    """The reason of each row."""
    return [plan.explanation.reasons[reason] for reason in plan.explanation.reason.tolist()]
