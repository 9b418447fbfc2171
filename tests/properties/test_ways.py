"""A gang lies wholly on nodes of one way of its job: one partition of several, one option of its constraint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.any_view import views
from tests.support.every_policy import EVERY


@st.composite
def views_with_ways(draw: st.DrawFn) -> View:
    """Jobs of each partition may lie on one of up to three sets of nodes, which may overlap."""
    seen = draw(views())
    nodes, partitions = len(seen.snapshot.nodes), seen.snapshot.partitions
    sets = st.lists(st.booleans(), min_size=nodes, max_size=nodes)
    ways = tuple(np.array(draw(st.lists(sets, min_size=1, max_size=3)), dtype=bool) for _ in partitions.names)
    members = np.array([way.any(axis=0) for way in ways], dtype=bool)
    partitions = replace(partitions, members=members, ways=ways)
    return replace(seen, snapshot=replace(seen.snapshot, partitions=partitions))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(seen=views_with_ways())
def test_no_policy_lays_a_gang_over_nodes_of_two_ways(seen: View) -> None:
    jobs, partitions = seen.snapshot.jobs, seen.snapshot.partitions
    for name in EVERY:
        note(name)
        plan = load(name, {}).plan(seen)
        assert objections(plan, seen) == ""
        for row in plan.granted.tolist():
            on = plan.places.nodes_of(row)
            assert any(way[on].all() for way in partitions.ways_of(jobs.partition[row])), (row, on)
