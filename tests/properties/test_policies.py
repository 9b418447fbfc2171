"""Every policy keeps to this, whatever it decides: each registered one passes before it has a test of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import cast

import numpy as np
import pytest
from hypothesis import given, note, settings

from slurm_fair.model import Blocked, JobState, LeasePhase, Plan, Snapshot, Verdict
from slurm_fair.policy import View, load, names
from slurm_fair.policy.check import objections
from tests.support.any_view import NOW, views
from tests.support.conservation import LESS, broken
from tests.support.every_policy import EVERY, MOVE_JOBS
from tests.support.plan_rows import (
    _held_or_promised,
    free_after,
    has_a_size,
    left_idle,
    rows_of,
    sites_of,
)

some = settings(max_examples=150, deadline=None)
Check = Callable[[str, View], None]


def every_policy(check: Check) -> Callable[[], None]:
    """The check on every policy with the same view: to draw one costs far more than to plan it."""
    return only(EVERY)(check)


def only(policies: Iterable[str]) -> Callable[[Check], Callable[[], None]]:
    """The same as `every_policy`, for some of them."""
    which = tuple(policies)

    def checked(check: Check) -> Callable[[], None]:
        @some
        @given(seen=views())
        def test(seen: View) -> None:
            for name in which:
                note(name)
                check(name, seen)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return cast(Callable[[], None], test)

    return checked


@pytest.mark.parametrize("name", names())
def test_every_registered_policy_loads(name: str) -> None:
    assert callable(load(name, {}).plan)


def planned(name: str, seen: View) -> tuple[Snapshot, Plan]:
    """The plan of the policy with its default settings."""
    return seen.snapshot, load(name, {}).plan(seen)


@every_policy
def test_no_node_is_given_more_than_it_has(name: str, seen: View) -> None:
    _, plan = planned(name, seen)
    used = set(plan.places.node.tolist())
    for what in ("gpus", "cpus", "memory_mb"):
        free = free_after(seen, plan, what)
        assert all(free[node] >= 0 for node in used), what


@every_policy
def test_the_controller_has_no_objection(name: str, seen: View) -> None:
    _, plan = planned(name, seen)
    assert objections(plan, seen) == ""


@every_policy
def test_gangs_are_whole_and_lie_as_they_asked(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    assert sorted(set(plan.places.row.tolist())) == rows_of(plan, Verdict.GRANT)
    for row in rows_of(plan, Verdict.GRANT):
        sites = sites_of(plan, row)
        each = snap.jobs.gpus_per_node[row]
        assert has_a_size(snap, row, sum(sites.values()))
        assert min(sites.values()) > 0
        if sum(sites.values()) == snap.jobs.gpus[row]:
            assert len(sites) >= snap.jobs.nodes[row] or each
            assert len(sites) <= (snap.jobs.most_nodes[row] or len(sites))
            assert not each or set(sites.values()) == {each}
        assert not each or len(set(sites.values())) == 1
        assert len({int(snap.nodes.gpu_type[node]) for node in sites}) == 1


@every_policy
def test_only_nodes_that_the_job_may_use(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    for row in rows_of(plan, Verdict.GRANT):
        nodes = list(sites_of(plan, row))
        assert snap.nodes.usable[nodes].all()
        assert snap.partitions.members[snap.jobs.partition[row], nodes].all()
        assert snap.jobs.gpu_type[row] in (-1, *snap.nodes.gpu_type[nodes])
        assert set(snap.wanted.nodes_of(row).tolist()) <= set(nodes)
        assert not set(snap.barred.nodes_of(row).tolist()) & set(nodes)


@every_policy
def test_every_job_has_the_verdict_that_its_state_allows(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    ends = {int(key): (int(p), float(e)) for key, p, e in zip(*_lease_columns(seen), strict=True)}
    assert len(plan.verdict) == len(snap.jobs)
    for row in range(len(snap.jobs)):
        state, blocked = JobState(snap.jobs.state[row]), Blocked(snap.jobs.blocked[row])
        allowed = _allowed(state, blocked, ends.get(int(snap.jobs.key[row])))
        assert Verdict(plan.verdict[row]) in allowed, (state, blocked)
        stops = snap.jobs.checkpoints[row] and snap.jobs.requeueable[row]
        assert stops or plan.verdict[row] != Verdict.REVOKE
        assert plan.explanation.reasons[plan.explanation.reason[row]]


def _lease_columns(seen: View) -> tuple[list[int], list[int], list[float]]:
    return seen.leases.key.tolist(), seen.leases.phase.tolist(), seen.leases.end.tolist()


def _allowed(state: JobState, blocked: Blocked, held: tuple[int, float] | None) -> set[Verdict]:
    if held is None:
        return (
            {Verdict.GRANT, Verdict.WAIT}
            if (state, blocked) == (JobState.WAITING, Blocked.NOT_BLOCKED)
            else {Verdict.LEAVE}
        )
    phase, end = held
    if phase == LeasePhase.REVOKING or state not in (JobState.RUNNING, JobState.WAITING):
        return {Verdict.LEAVE}
    over = phase == LeasePhase.RUNNING and end <= NOW
    return {Verdict.RENEW, Verdict.REVOKE} if over else {Verdict.KEEP}


@every_policy
def test_the_same_view_gives_the_same_plan(name: str, seen: View) -> None:
    _, one = planned(name, seen)
    again = View(seen.snapshot, seen.ledger, seen.leases, seen.terms, seen.now)
    _, two = planned(name, again)
    np.testing.assert_array_equal(one.verdict, two.verdict)
    for column in ("reason", "rank", "score"):
        np.testing.assert_array_equal(getattr(one.explanation, column), getattr(two.explanation, column))
    for column in ("row", "node", "gpus"):
        np.testing.assert_array_equal(getattr(one.places, column), getattr(two.places, column))
    assert one.explanation.reasons == two.explanation.reasons


@every_policy
def test_no_gpus_are_idle_while_a_gang_waits_that_fits_them(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    assert broken(name, snap, plan, left_idle(seen, plan)) == []


def test_whoever_promises_less_is_a_policy_and_says_why() -> None:
    assert set(LESS) <= set(EVERY)
    assert all(len(less.why.split()) > 5 for less in LESS.values())


@only(name for name in EVERY if name not in MOVE_JOBS)
def test_nobody_stops_when_nobody_takes_its_gpus(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    given_away = set(plan.places.node.tolist()) | {
        node for row, node, _ in _held_or_promised(seen) if plan.verdict[row] == Verdict.KEEP
    }
    for row in rows_of(plan, Verdict.REVOKE):
        assert set(snap.held.nodes_of(row).tolist()) & given_away


@every_policy
def test_an_arrays_own_limit_holds(name: str, seen: View) -> None:
    snap, plan = planned(name, seen)
    tasks = [row for row in rows_of(plan, Verdict.GRANT) if snap.jobs.array_limit[row]]
    assert len(tasks) <= snap.jobs.array_limit.max(initial=0)


@every_policy
def test_ranks_are_places_in_one_order(name: str, seen: View) -> None:
    _, plan = planned(name, seen)
    ranks = sorted(plan.explanation.rank[plan.explanation.rank >= 0].tolist())
    assert ranks == list(range(len(ranks)))


@every_policy
def test_memory_is_plain_data_and_can_be_given_back(name: str, seen: View) -> None:
    _, one = planned(name, seen)
    kept = json.loads(json.dumps(dict(one.memory)))
    again = View(seen.snapshot, seen.ledger, seen.leases, seen.terms, seen.now, memory=kept)
    _, two = planned(name, again)
    assert objections(two, again) == ""
