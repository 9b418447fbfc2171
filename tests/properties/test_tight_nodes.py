"""Plans hold where CPUs and memory are short, and elastic jobs take more of them the larger they are."""

from __future__ import annotations

from hypothesis import given, note, settings

from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.conservation import broken
from tests.support.every_policy import EVERY
from tests.support.plan_rows import left_idle
from tests.support.tight_views import tight_views


@settings(max_examples=150, deadline=None)
@given(seen=tight_views())
def test_nothing_is_given_twice_and_nobody_waits_beside_what_would_do(seen: View) -> None:
    for name in EVERY:
        note(name)
        plan = load(name, {}).plan(seen)
        assert objections(plan, seen) == ""
        assert broken(name, seen.snapshot, plan, left_idle(seen, plan)) == []
