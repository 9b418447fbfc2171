"""A walk that could change nothing is left out, and the plan is the one of a policy that always walks."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from slurm_fair.model import Plan
from slurm_fair.policy import View
from slurm_fair_plugins import astraea
from slurm_fair_plugins.astraea import Astraea
from tests.support.any_view import views


@pytest.mark.parametrize("placement", ["consolidated", "relaxed"])
@given(view=views())
@settings(max_examples=300, deadline=None)
def test_a_plan_without_a_walk_is_the_plan_after_one(placement: str, view: View) -> None:
    policy = Astraea(placement=placement)
    short = policy.plan(view)
    with patch.object(astraea, "may_place", return_value=True):
        walked = policy.plan(view)
        np.testing.assert_array_equal(short.verdict, walked.verdict)
        np.testing.assert_array_equal(short.places.node, walked.places.node)
        np.testing.assert_array_equal(short.rank, walked.rank)
        assert said(short) == said(walked)


def said(plan: Plan) -> list[str]:
    """The reason of each row."""
    return [plan.explanation.reasons[reason] for reason in plan.explanation.reason.tolist()]
