"""Relaxed placement: no gang waits while enough GPUs are free for it, and a plan is as sound as ever."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from slurm_fair.model import Plan, Standing, TickRecord, Verdict
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from slurm_fair.sim import Costs
from tests.support.accounts import view
from tests.support.any_view import NOW, Draw, views
from tests.support.builders import job, leases, node, snapshot
from tests.support.conservation import LESS, keeps_gpus_unsaid, kept_for_movers
from tests.support.every_policy import EVERY
from tests.support.plan_rows import free_after, has_a_size, rows_of, runs_on, sites_of
from tests.support.simulated import Rounds, arrival, simulated
from tests.support.witness import gangs_are_whole, one_lease_each

RELAXED: dict[str, object] = {"placement": "relaxed"}


def _has_placement(name: str) -> bool:
    return "placement" in {field.name for field in fields(cast(Any, type(load(name, {}))))}


PLACING = tuple(name for name in EVERY if _has_placement(name))
CONSERVING = tuple(name for name in PLACING if name not in LESS)


@st.composite
def full(draw: Draw) -> View:
    """Nodes of which most is taken, and gangs that would hardly fit one of them."""
    kinds, parts = st.sampled_from(("x", "x", "y")), st.integers(0, 4)
    nodes = {
        f"n{i}": node(4, gpus_others=draw(parts), gpu_type=draw(kinds), cpus=16, cpus_others=draw(parts))
        for i in range(draw(st.integers(2, 6)))
    }
    jobs = [
        job(
            base,
            gpus=draw(st.integers(1, 8)),
            nodes=draw(st.sampled_from((1, 1, 1, 2))),
            most_nodes=draw(st.sampled_from((0, 0, 0, 2, 3))),
            gpu_type=draw(st.sampled_from(("", "", "x"))),
            cpus=draw(st.sampled_from((1, 1, 14))),
            tenant=draw(st.sampled_from(("a", "b"))),
        )
        for base in range(1, 1 + draw(st.integers(1, 4)))
    ]
    return view(snapshot(time=NOW, nodes=nodes, jobs=jobs, weights={"a": 1.0, "b": 2.0}), leases())


def planned(name: str, seen: View) -> Plan:
    """The plan with relaxed placement."""
    return load(name, RELAXED).plan(seen)


@settings(max_examples=100, deadline=None)
@given(seen=full() | views())
def test_a_relaxed_plan_is_sound(seen: View) -> None:
    jobs, nodes = seen.snapshot.jobs, seen.snapshot.nodes
    for name in PLACING:
        note(name)
        plan = planned(name, seen)
        assert objections(plan, seen) == ""
        for row in rows_of(plan, Verdict.GRANT):
            sites = sites_of(plan, row)
            each = jobs.gpus_per_node[row]
            apart = not each and jobs.nodes[row] <= 1 and len(sites) > 1
            given = sum(sites.values())
            # With what Slurm may give it instead of its place.
            assert has_a_size(seen.snapshot, row, given) or (apart and given > jobs.gpus[row])
            assert jobs.nodes[row] <= len(sites) or each
            assert len(sites) <= (jobs.most_nodes[row] or len(sites))
            assert not each or set(sites.values()) == {each}
            assert len({int(nodes.gpu_type[node]) for node in sites}) == 1


@settings(max_examples=200, deadline=None)
@given(seen=full() | views())
def test_no_gang_waits_while_enough_gpus_are_free_for_it(seen: View) -> None:
    for name in CONSERVING:
        note(name)
        plan = planned(name, seen)
        if keeps_gpus_unsaid(plan):
            continue
        for row in rows_of(plan, Verdict.WAIT):
            assert not _could_be_spread(seen, plan, row), row


def _could_be_spread(seen: View, plan: Plan, row: int) -> bool:
    """True where the free GPUs of some type, on nodes with CPUs and memory for it, are enough for a gang."""
    jobs, nodes, members = seen.snapshot.jobs, seen.snapshot.nodes, seen.snapshot.partitions.members
    named = {*seen.snapshot.wanted.row.tolist(), *seen.snapshot.barred.row.tolist()}
    if jobs.gpus_per_node[row] or jobs.array_limit[row] or row in named or jobs.nodes[row] > 1:
        return False
    free = {what: np.array(free_after(seen, plan, what)) for what in ("gpus", "cpus", "memory_mb")}
    for amounts, kept in zip(free.values(), kept_for_movers(seen.snapshot, plan), strict=True):
        amounts -= kept
    able = nodes.usable & members[jobs.partition[row]] & (free["gpus"] > 0)
    able &= (free["cpus"] >= jobs.cpus[row]) & (free["memory_mb"] >= jobs.memory_mb[row])
    # Slurm may lay a gang over its nodes in its own way: what is left there is not to be had.
    apart = np.bincount(plan.places.row, minlength=len(jobs)) > 1
    able[plan.places.node[apart[plan.places.row]]] = False
    for kind in range(len(seen.snapshot.gpu_types)):
        if jobs.gpu_type[row] in (-1, kind) and runs_on(seen, row, kind):
            here = np.sort(free["gpus"][able & (nodes.gpu_type == kind)])[::-1]
            if here[: int(jobs.most_nodes[row]) or len(here)].sum() >= jobs.gpus[row]:
                return True
    return False


def _sound(tick: TickRecord, standing: Standing) -> None:
    """At every look, whatever is promised: what came free on a spread gang's nodes while it was promised them may
    go to it when it starts, and who was promised that then waits for another place.
    """
    gangs_are_whole(tick.snapshot)
    one_lease_each(tick.snapshot, standing.leases)


@settings(max_examples=20, deadline=None)
@given(
    gangs=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 8), st.integers(1, 30)), min_size=1, max_size=10
    ),
    aligned=st.booleans(),
    checkpoint=st.sampled_from((0.0, 5.0)),
)
def test_spread_gangs_finish_within_the_machines(
    gangs: list[tuple[int, int, int]], aligned: bool, checkpoint: float
) -> None:
    jobs = [
        arrival(60.0 * at, gpus=gpus, seconds=60.0 * minutes, tenant="ab"[at % 2], sensitivity=1.5)
        for at, gpus, minutes in gangs
    ]
    how = Rounds(lease=300.0, aligned=aligned, costs=Costs(checkpoint=checkpoint, restart=20.0))
    for name in ("astraea", "las", "gandiva-fair", "gavel", "slurm"):
        note(name)
        result = simulated(jobs, name, gpus_per_node=4, how=how, settings=RELAXED, listen=_sound)
        assert result.outcomes.completed.all()
