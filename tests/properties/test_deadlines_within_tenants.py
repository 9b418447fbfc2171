"""Deadlines under `fair` order a tenant's own jobs: no tenant gains by one, and no other tenant loses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.model import JobState, Leases, Plan, Told, Verdict
from slurm_fair.policy import Deadlines, View, contenders
from slurm_fair.policy.check import objections
from slurm_fair_plugins.fair import Fair
from slurm_fair_plugins.fair.siblings import Asking, changed_places
from slurm_fair_plugins.fair.worth import Objective, Worth
from tests.support.accounts import Account, view
from tests.support.any_view import TENANTS, views
from tests.support.builders import job, lease, leases, snapshot

NOW, HOUR = 10_000.0, 3600.0
AHEAD = (np.inf, np.inf, 60.0, 600.0, 2000.0, 9 * HOUR)
AIMS = Objective(1.0, 4.0, 1.0, 2.0, 1e4, 0.97, 1200.0, 1000.0, 0.95, 20.0, 0.2, 0.6)
many = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def with_drawn_deadlines(draw: st.DrawFn, seen: View) -> View:
    """The view in which some jobs have deadlines."""
    jobs = len(seen.snapshot.jobs)
    ahead = draw(st.lists(st.sampled_from(AHEAD), min_size=jobs, max_size=jobs))
    told = seen.snapshot.told or Told.nothing(jobs, len(seen.snapshot.gpu_types))
    told = told.with_columns(deadline=seen.now + np.array(ahead, dtype=np.float64))
    return replace(seen, snapshot=replace(seen.snapshot, told=told))


def without_deadlines(seen: View) -> View:
    told = seen.snapshot.told
    assert told is not None
    told = told.with_columns(deadline=np.full(len(seen.snapshot.jobs), np.inf))
    return replace(seen, snapshot=replace(seen.snapshot, told=told))


@st.composite
def any_view_with_deadlines(draw: st.DrawFn) -> View:
    return with_drawn_deadlines(draw, draw(views()))


@st.composite
def views_of_gangs_alike(draw: st.DrawFn) -> View:
    """Gangs of one GPU, or of a whole node; some run, and their leases are over."""
    gpus, size = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), 1
    if draw(st.booleans()):
        gpus, size = [4] * (len(gpus) + 1), 4
    places = [f"n{node}" for node, has in enumerate(gpus) for _ in range(has // size)]
    runs = draw(st.integers(0, len(places)))
    count = runs + draw(st.integers(1, 10))
    tenants = draw(st.lists(st.sampled_from(TENANTS), min_size=count, max_size=count))
    left = draw(st.lists(st.sampled_from((30.0, 600.0, HOUR, 5 * HOUR)), min_size=count, max_size=count))
    jobs = [
        job(1 + at, gpus=size, tenant=tenants[at], submit=at, on={places[at]: size}, state=JobState.RUNNING)
        if at < runs
        else job(1 + at, gpus=size, tenant=tenants[at], submit=at)
        for at in range(count)
    ]
    nodes = {f"n{node}": has for node, has in enumerate(gpus)}
    seen = snapshot(time=NOW, nodes=nodes, jobs=jobs)
    seen = replace(
        seen, told=Told.nothing(count, len(seen.gpu_types)).with_columns(left_seconds=np.array(left))
    )
    held = (
        leases(*(lease(1 + at, {places[at]: size}, end=NOW) for at in range(runs))) if runs else Leases.none()
    )
    owed = {name: Account(0.0, draw(st.sampled_from((0.0, 1e5)))) for name in TENANTS}
    return with_drawn_deadlines(draw, view(seen, held, owed))


def tenants_gpus(seen: View, plan: Plan) -> list[int]:
    """GPUs of each tenant once the plan is carried out."""
    jobs = seen.snapshot.jobs
    has = np.isin(plan.verdict, [Verdict.GRANT, Verdict.RENEW, Verdict.KEEP])
    gpus: list[int] = (
        np.bincount(jobs.tenant[has], jobs.gpus[has], len(seen.snapshot.tenants)).astype(int).tolist()
    )
    return gpus


@many
@given(seen=views_of_gangs_alike())
def test_where_gangs_are_alike_every_tenant_has_as_many_gpus_as_without_deadlines(seen: View) -> None:
    for settings_ in ({}, {"urgent": "any"}, {"solver": "always", "solver_gap": 0.0}):
        policy = Fair(**settings_)
        plans = [policy.plan(each) for each in (seen, without_deadlines(seen))]
        assert tenants_gpus(seen, plans[0]) == tenants_gpus(seen, plans[1])
        assert objections(plans[0], seen) == ""


@many
@given(seen=views_of_gangs_alike())
def test_where_gangs_are_alike_no_urgent_job_waits_or_stops_beside_a_sibling_that_runs(seen: View) -> None:
    plan, rows = Fair().plan(seen), contenders(seen)
    found = Deadlines.of(seen, rows, "tight")
    if found is None:
        return
    jobs, urgent = seen.snapshot.jobs, seen.flags(rows[found.urgent])
    has = np.isin(plan.verdict, [Verdict.GRANT, Verdict.RENEW])
    for row in (urgent & ~has).nonzero()[0]:
        siblings = (jobs.tenant == jobs.tenant[row]) & ~urgent
        assert not has[siblings].any()


@many
@given(seen=any_view_with_deadlines())
def test_up_to_no_place_does_a_tenant_ask_for_more_and_other_places_stay(seen: View) -> None:
    rows = contenders(seen)
    plain = Worth.of(seen, rows, 9, AIMS)
    changed = plain.with_deadlines(seen, Deadlines.of(seen, rows, "any"))
    tenant, gpus = seen.snapshot.jobs.tenant[rows], seen.weighed_gpus[rows].astype(float)
    for name in np.unique(tenant):
        mine = tenant == name
        for level in np.unique(plain.total):
            asked = [gpus[mine & (each.total >= level)].sum() for each in (plain, changed)]
            assert asked[1] <= asked[0] + 1e-6
    if changed.siblings is None:
        return
    assert sorted(changed.siblings.order.tolist()) == list(range(len(rows)))
    assert (np.diff(changed.total[changed.siblings.order]) <= 0).all()
    alone = ~np.isin(tenant, tenant[changed.deadlines.urgent]) if changed.deadlines is not None else None
    np.testing.assert_array_equal(changed.total[alone], plain.total[alone])
    policy = Fair(urgent="any")
    assert objections(policy.plan(seen), seen) == ""


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from((0.5, 1.0, 1.0, 2.0, 3.0, 8.0)), st.booleans(), st.booleans()
        ),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_the_urgent_ones_that_find_room_are_the_first_of_their_tenant(
    drawn: list[tuple[int, float, bool, bool]], priced: int
) -> None:
    tenant, gpus, urgent, takes_part = (np.array([each[at] for each in drawn]) for at in range(4))
    count = len(drawn)
    if not count:
        return
    asking = Asking(
        tenant, gpus, np.arange(count) < priced, urgent & takes_part, (np.arange(count) * 7 % 5).astype(float)
    )
    found = changed_places(asking, np.arange(count), takes_part)
    place = np.empty(count, dtype=int)
    place[found.order] = np.arange(count)
    for name in np.unique(tenant):
        mine = (tenant == name) & takes_part
        firsts, others = mine & found.first, mine & ~found.first
        if firsts.any() and others.any():
            assert place[firsts].max() < place[others].min()
        room = gpus[mine & asking.priced].sum()
        has_price = mine & asking.priced[found.taken]
        assert gpus[has_price].sum() <= room + 1e-6
    np.testing.assert_array_equal(found.taken[~takes_part], np.flatnonzero(~takes_part))
