"""Every policy that is an order of jobs keeps to this, whatever its order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import Plan, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.check import objections
from slurm_fair.policy.orders.ordered import ordered
from tests.support.any_view import Draw, views
from tests.support.plan_rows import free_after, left_idle, rows_of, sites_of

some = settings(max_examples=400, deadline=None)


@st.composite
def asked(draw: Draw) -> tuple[View, dict[str, Any]]:
    """A view and anything that a policy may ask of it."""
    seen = draw(views())
    rows = np.flatnonzero(seen.waiting | seen.over | seen.revoking)
    order = np.array(draw(st.permutations(rows.tolist())), dtype=np.int64)[draw(st.integers(0, 2)) :]
    columns: dict[str, Any] = {"order": order, "preempt": draw(st.booleans())}
    count = len(seen.snapshot.jobs)
    numbers = st.lists(st.integers(-1, 1), min_size=count, max_size=count)
    match draw(st.integers(0, 3)):
        case 0:
            columns["blocking"] = True
        case 1:
            columns["lanes"] = np.array(draw(numbers), dtype=np.int64)
    if draw(st.booleans()):
        types = len(seen.snapshot.gpu_types)
        columns["on_type"] = np.minimum(np.array(draw(numbers), dtype=np.int64), types - 1)
    if draw(st.booleans()):
        columns["keep"] = np.array(draw(numbers), dtype=np.int64) > 0
    return seen, columns


@given(asked())
@some
def test_the_plan_can_be(case: tuple[View, dict[str, Any]]) -> None:
    seen, columns = case
    plan = ordered(seen, **columns)
    assert objections(plan, seen) == ""
    used = set(plan.places.node.tolist())
    for what in ("gpus", "cpus", "memory_mb"):
        free = free_after(seen, plan, what)
        assert all(free[node] >= 0 for node in used), what


@given(asked())
@some
def test_nobody_gets_what_the_order_does_not_say(case: tuple[View, dict[str, Any]]) -> None:
    seen, columns = case
    plan = ordered(seen, **columns)
    assert set(rows_of(plan, Verdict.GRANT)) <= set(columns["order"].tolist())
    revoked = set(rows_of(plan, Verdict.REVOKE))
    assert not revoked or columns["preempt"]
    if "keep" in columns:
        assert not revoked & set(np.flatnonzero(columns["keep"]).tolist())
    if "on_type" in columns:
        _on_the_chosen_type(seen, plan, columns["on_type"])


def _on_the_chosen_type(seen: View, plan: Plan, on_type: Any) -> None:
    for row in rows_of(plan, Verdict.GRANT):
        types = {int(seen.snapshot.nodes.gpu_type[node]) for node in sites_of(plan, row)}
        assert seen.snapshot.jobs.gpu_type[row] >= 0 or on_type[row] < 0 or types == {int(on_type[row])}


@given(asked())
@some
def test_a_running_job_gives_way_only_to_those_ahead_of_it(case: tuple[View, dict[str, Any]]) -> None:
    seen, columns = case
    if "on_type" in columns or (seen.spare_gpus < 0).any():
        return  # it may leave of itself, or for a promise that was made earlier
    plan = ordered(seen, **columns)
    rank = {row: place for place, row in enumerate(columns["order"].tolist())}
    granted = rows_of(plan, Verdict.GRANT)
    for row in rows_of(plan, Verdict.REVOKE):
        assert any(rank[other] < rank.get(row, len(rank)) for other in granted)


@given(asked())
@some
def test_no_gpus_are_left_that_a_listed_gang_could_use(case: tuple[View, dict[str, Any]]) -> None:
    seen, columns = case
    if not columns.keys() <= {"order", "preempt", "keep"} or seen.revoking[columns["order"]].any():
        return
    plan = ordered(seen, **columns)
    listed = set(columns["order"].tolist())
    assert not listed & set(left_idle(seen, plan))


@given(asked())
@some
def test_nobody_overtakes_in_a_lane_that_is_shut(case: tuple[View, dict[str, Any]]) -> None:
    seen, columns = case
    if not columns.get("blocking"):
        return
    plan = ordered(seen, **columns)
    jobs = seen.snapshot.jobs
    waits = [row for row in columns["order"].tolist() if seen.waiting[row]]
    able = [
        row for row in waits if plan.explanation.reasons[plan.explanation.reason[row]] not in NEVER_IN_THE_WAY
    ]
    verdicts = [plan.verdict[row] == Verdict.GRANT for row in able]
    assert verdicts == sorted(verdicts, reverse=True), (verdicts, jobs.gpus[able])


NEVER_IN_THE_WAY = ("no node of its partition can take its gang", "its array's own limit is reached")
