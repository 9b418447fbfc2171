"""Every policy says by what number one waiting job goes before another, and its order is that of the numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings

from slurm_fair.model import JobState
from slurm_fair.model.columns import Ints
from slurm_fair.policy import View, load, names
from slurm_fair.policy.decided import Decided, decided
from slurm_fair_plugins.rounds import InRounds
from tests.support.accounts import Account, view
from tests.support.any_view import views
from tests.support.builders import job, snapshot

# A round takes in turn whose gang fits; a quota leaves out tasks over their array's limit.
NOT_BY_NUMBER_ALONE = {"yarn-cs", *(name for name in names() if isinstance(load(name, {}), InRounds))}
SETTINGS: list[tuple[str, Mapping[str, object]]] = [(name, {}) for name in names()] + [
    ("gandiva-fair", {"split": "equal"})
]


def asked(name: str, options: Mapping[str, object], seen: View) -> tuple[Decided, Ints]:
    """A policy's account of its plan, and the waiting jobs in its order."""
    policy = load(name, options)
    plan = policy.plan(seen)
    np.testing.assert_array_equal(plan.rank, plan.explanation.rank)
    waits = (plan.explanation.rank >= 0) & (seen.snapshot.jobs.state == JobState.WAITING)
    rows = waits.nonzero()[0]
    return decided(policy, plan, seen), rows[np.argsort(plan.explanation.rank[rows])]


@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_each_policy_tells_a_number_of_every_job_in_line(name: str, options: Mapping[str, object]) -> None:
    jobs = [
        job(n, gpus=2, tenant="a" if n % 2 else "b", submit=100.0 * n, time_limit_seconds=3600.0)
        for n in range(1, 5)
    ]
    accounts = {"a": Account(7200.0, 14400.0), "b": Account(14400.0, 14400.0)}
    told, order = asked(name, options, view(snapshot(nodes={"n1": 8}, jobs=jobs), None, accounts))
    assert len(order) == len(jobs)
    assert told.by
    assert told.then
    assert np.isfinite(told.numbers[order]).all()


@pytest.mark.parametrize("name", sorted(set(names()) - NOT_BY_NUMBER_ALONE))
@settings(max_examples=60, deadline=None)
@given(seen=views())
def test_the_order_is_that_of_the_numbers(name: str, seen: View) -> None:
    told, order = asked(name, {}, seen)
    numbers = told.numbers[order]
    known = np.isfinite(numbers)
    assert known.all() or not known[known.argmin() :].any(), "those that are not known come last"
    steps = np.diff(numbers[known])
    assert ((steps <= 1e-9) if told.highest_first else (steps >= -1e-9)).all(), numbers
