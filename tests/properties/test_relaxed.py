"""Relaxed placement: no gang waits while enough GPUs are free for it, and a plan is as sound as ever."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np
from hypothesis import given, note, settings

from slurm_fair.model import Plan, Verdict
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.conservation import LESS
from tests.properties.test_policies import (
    EVERY,
    free_after,
    rows_of,
    runs_on,
    sites_of,
    views,
)

RELAXED: dict[str, object] = {"placement": "relaxed"}


def _has_placement(name: str) -> bool:
    return "placement" in {field.name for field in fields(cast(Any, type(load(name, {}))))}


PLACING = tuple(name for name in EVERY if _has_placement(name))
CONSERVING = tuple(name for name in PLACING if name not in LESS)


def planned(name: str, seen: View) -> Plan:
    """The plan with relaxed placement."""
    return load(name, RELAXED).plan(seen)


@settings(max_examples=100, deadline=None)
@given(seen=views())
def test_a_relaxed_plan_is_sound(seen: View) -> None:
    jobs, nodes = seen.snapshot.jobs, seen.snapshot.nodes
    for name in PLACING:
        note(name)
        plan = planned(name, seen)
        assert objections(plan, seen) == ""
        for row in rows_of(plan, Verdict.GRANT):
            sites = sites_of(plan, row)
            each = jobs.gpus_per_node[row]
            assert sum(sites.values()) == jobs.gpus[row]
            assert jobs.nodes[row] <= len(sites) or each
            assert len(sites) <= (jobs.most_nodes[row] or len(sites))
            assert not each or set(sites.values()) == {each}
            assert len({int(nodes.gpu_type[node]) for node in sites}) == 1


@settings(max_examples=200, deadline=None)
@given(seen=views())
def test_no_gang_waits_while_enough_gpus_are_free_for_it(seen: View) -> None:
    for name in CONSERVING:
        note(name)
        plan = planned(name, seen)
        for row in rows_of(plan, Verdict.WAIT):
            assert not _could_be_spread(seen, plan, row), row


def _could_be_spread(seen: View, plan: Plan, row: int) -> bool:
    """Whether the free GPUs of some type, on nodes with CPUs and memory for it, are enough for a gang."""
    jobs, nodes, members = seen.snapshot.jobs, seen.snapshot.nodes, seen.snapshot.partitions.members
    named = {*seen.snapshot.wanted.row.tolist(), *seen.snapshot.barred.row.tolist()}
    if jobs.gpus_per_node[row] or jobs.array_limit[row] or row in named:
        return False
    least = max(int(jobs.nodes[row]), 1)
    free = {what: np.array(free_after(seen, plan, what)) for what in ("gpus", "cpus", "memory_mb")}
    able = nodes.usable & members[jobs.partition[row]] & (free["gpus"] > 0)
    able &= (free["cpus"] >= -(-jobs.cpus[row] // least)) & (
        free["memory_mb"] >= -(-jobs.memory_mb[row] // least)
    )
    # Slurm may lay a gang of no fixed split over its nodes in its own way: what is left there is not to be had.
    able[plan.places.node] = False
    for kind in range(len(seen.snapshot.gpu_types)):
        if jobs.gpu_type[row] not in (-1, kind) or not runs_on(seen, row, kind):
            continue
        here = np.sort(free["gpus"][able & (nodes.gpu_type == kind)])[::-1]
        most = int(jobs.most_nodes[row]) or len(here)
        fixed = jobs.most_nodes[row] and jobs.most_nodes[row] <= least
        enough = here[:most].sum() >= jobs.gpus[row] and min(len(here), int(jobs.gpus[row])) >= least
        if enough and not fixed:
            return True
    return False
