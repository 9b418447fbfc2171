"""A job that can never start changes nothing for anybody else, whatever keeps it back and whoever plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, note, settings
from hypothesis import strategies as st

from slurm_fair.model import Blocked, JobState, JobTable, Placement, Plan, Snapshot, Told
from slurm_fair.model.ids import pack
from slurm_fair.policy import View, load
from slurm_fair.policy.reach import without_the_impossible, without_the_kept_out
from slurm_fair.sim import NodeEvent, Outage
from tests.support.any_view import TENANTS, Draw, views
from tests.support.every_policy import EVERY
from tests.support.simulated import Arrival, Rounds, arrival, arrivals, simulated

KEEPS_BACK = [
    code for code in Blocked if code not in (Blocked.NOT_BLOCKED, Blocked.UNSETTLED, Blocked.REQUEUED)
]


@dataclass(frozen=True)
class Stuck:
    """A waiting job that nothing can start."""

    columns: Mapping[str, Any]
    wanted: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    tenant: int = 0
    why: str = field(default="", compare=False)


def _ways_to_be_stuck(seen: View) -> Iterator[Stuck]:
    """All that this cluster offers."""
    nodes, jobs, partition = (
        seen.snapshot.nodes,
        seen.snapshot.jobs,
        seen.snapshot.partitions.names.index("p"),
    )
    members = seen.snapshot.partitions.members[partition]
    for node in np.flatnonzero(members & ~nodes.usable)[:1].tolist():
        yield Stuck({"gpus": 1}, wanted=(node,), why="names a node that takes no work")
    usable = tuple(np.flatnonzero(members & nodes.usable).tolist())
    yield Stuck({"gpus": 1}, barred=usable, why="excludes all nodes that take work")
    yield Stuck({"gpus": int(nodes.gpus.sum()) + 1}, why="a gang bigger than the cluster")
    count = int(members.sum()) + 1
    yield Stuck({"gpus": count, "nodes": count}, why="more nodes than there are")
    if not nodes.usable[members].all():
        whole = int(members.sum())
        yield Stuck({"gpus": whole, "nodes": whole}, why="more nodes than take work")
    for kind in range(len(seen.snapshot.gpu_types)):
        if not (members & nodes.usable & (nodes.gpu_type == kind)).any():
            yield Stuck({"gpus": 1, "gpu_type": kind}, why="its GPU type is out")
    yield Stuck({"gpus": 1, "cpus": 10_000}, why="more CPUs than a node has")
    yield Stuck({"gpus": 1, "memory_mb": 10**9}, why="more memory than a node has")
    for why in KEEPS_BACK:
        yield Stuck({"gpus": 1, "blocked": why}, why=why.name)
    plain = (
        (seen.leased | jobs.holds_gpus) & ~jobs.checkpoints & (jobs.state != JobState.ENDING) & ~seen.revoking
    )
    held = seen.holdings
    for node in held.node[plain[held.row]].tolist():
        if members[node] and nodes.capacity[node]:
            gpus = int(nodes.capacity[node])
            yield Stuck({"gpus": gpus}, wanted=(node,), why="needs GPUs of a job that is never asked")


@st.composite
def stuck_jobs(draw: Draw) -> tuple[View, View, str]:
    """A view without and with such a job."""
    seen = draw(views())
    assume("p" in seen.snapshot.partitions.names)
    present = [row for row, name in enumerate(seen.snapshot.tenants.names) if name in TENANTS]
    assume(present)
    one = draw(st.sampled_from(list(_ways_to_be_stuck(seen))))
    return seen, _with(seen, replace(one, tenant=draw(st.sampled_from(present)))), one.why


def _with(seen: View, one: Stuck) -> View:
    """The last job of the queue is this one."""
    snap, row = seen.snapshot, len(seen.snapshot.jobs)
    name = snap.tenants.names[one.tenant]
    users = snap.users if name in snap.users else (*snap.users, name)
    quiet = {
        "key": pack(99), "record": 99, "tenant": one.tenant, "user": users.index(name),
        "partition": snap.partitions.names.index("p"), "gpu_type": -1, "nodes": 1, "time_limit_seconds": np.inf,
        "checkpoints": True, "requeueable": True, "weight": 1.0, "state": JobState.WAITING,
    }  # fmt: skip
    shown = replace(
        snap,
        jobs=_with_row(snap.jobs, quiet | dict(one.columns)),
        users=users,
        told=None if snap.told is None else _with_silence(snap.told, len(snap.gpu_types)),
        reasons=(*snap.reasons, ""),
        wanted=snap.wanted.plus(Placement.of([(row, node, 0) for node in one.wanted])),
        barred=snap.barred.plus(Placement.of([(row, node, 0) for node in one.barred])),
    )
    return View(shown, seen.ledger, seen.leases, seen.terms, seen.now)


def _with_row(jobs: JobTable, values: Mapping[str, Any]) -> JobTable:
    columns = jobs._arrays()
    return JobTable(
        **{name: np.append(of, values.get(name, 0)).astype(of.dtype) for name, of in columns.items()}
    )


def _with_silence(told: Told, types: int) -> Told:
    """The view with one more job of which nobody said anything."""
    new = Told.nothing(1, types)
    names = [*told._arrays(), "rate", "spread_rate"]
    return told.with_columns(
        **{name: np.concatenate((getattr(told, name), getattr(new, name))) for name in names}
    )


def as_a_tick_shows_it(name: str, seen: View) -> tuple[Snapshot, Plan]:
    """The policy's plan once the jobs that cannot start are out of it."""
    policy = load(name, {})
    shown = replace(seen, snapshot=without_the_impossible(seen.snapshot, seen.leases, policy))
    shown = without_the_kept_out(shown, policy)
    return shown.snapshot, policy.plan(shown)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=stuck_jobs())
def test_a_job_that_can_never_start_changes_no_plan(case: tuple[View, View, str]) -> None:
    without, beside, why = case
    note(why)
    for name in EVERY:
        note(name)
        _, one = as_a_tick_shows_it(name, without)
        shown, two = as_a_tick_shows_it(name, beside)
        if not (why.startswith("needs GPUs") and shown.jobs.blocked[-1] == 0):
            assert shown.jobs.blocked[-1] != Blocked.NOT_BLOCKED
        else:
            continue  # leases of this policy never end
        np.testing.assert_array_equal(one.verdict, two.verdict[:-1])
        assert [tuple(each) for each in zip(*_places(one), strict=True)] == [
            tuple(each) for each in zip(*_places(two), strict=True)
        ]
        assert json.dumps(one.memory, sort_keys=True) == json.dumps(two.memory, sort_keys=True)


def _places(plan: Plan) -> tuple[list[int], list[int], list[int]]:
    return plan.places.row.tolist(), plan.places.node.tolist(), plan.places.gpus.tolist()


GONE = (Outage(0.0, "n3", NodeEvent.DOWN),)
ENOUGH_SECONDS = 40_000.0


@pytest.mark.parametrize("policy", EVERY)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    jobs=arrivals(1200, seconds=(5, 1500)),
    tenant=st.sampled_from("ab"),
    aligned=st.booleans(),
)
# At 300 s both tenants are owed the same, but for the last digit of sums over other looks.
@example(jobs=[arrival(293.0, gpus=4, seconds=5.0, tenant="b")], tenant="a", aligned=False)
def test_a_job_that_can_never_start_changes_nobodys_leases_in_a_simulation(
    policy: str, jobs: list[Arrival], tenant: str, aligned: bool
) -> None:
    """A gang of three nodes, one of which never comes back, waits beside the others from the beginning."""
    stuck = arrival(0.0, gpus=12, nodes=3, seconds=60.0, tenant=tenant)
    first = arrival(0.0, gpus=4, seconds=1000.0, tenant="a"), arrival(0.0, gpus=4, seconds=1000.0, tenant="b")
    others = [*first, *(replace(one, gpus=min(one.gpus, 4)) for one in jobs)]
    assert _story(policy, others, 0, aligned) == _story(policy, [*first, stuck, *others[2:]], 1, aligned)


def _story(policy: str, jobs: list[Arrival], stuck: int, aligned: bool) -> list[tuple[Any, ...]]:
    """The start, the end and the number of stops of each job that could run."""
    how = Rounds(lease=300.0, aligned=aligned)
    result = simulated(
        jobs,
        policy,
        gpus=12,
        gpus_per_node=4,
        how=how,
        outages=GONE,
        until=ENOUGH_SECONDS,
        weights={"a": 1.0, "b": 2.0},
    )
    outcomes = result.outcomes
    table = zip(
        outcomes.submit.tolist(),
        outcomes.gpus.tolist(),
        outcomes.start.tolist(),
        outcomes.end.tolist(),
        outcomes.preemptions.tolist(),
        strict=True,
    )
    told = [row for row in table if row[1] <= 4]
    assert len(told) == len(jobs) - stuck
    assert all(row[3] > 0 for row in told)
    return told
