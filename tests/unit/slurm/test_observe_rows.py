"""Slurm's answers reach a snapshot: the living row of a job, weights, reservations to come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blocked, JobState, Snapshot
from slurm_fair.model.ids import pack
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.reread import look
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import START, Machine
from tests.support.fake_slurm import PushedClock, World

TERM = 300.0


class Reserving(FakeCommands):
    """A Slurm with reservations that are to come."""

    reservations = ""

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The fake's own, but for reservations."""
        if argv == ("scontrol", "-o", "show", "reservation") and self.reservations:
            return CommandResult(argv, 0, self.reservations, "", 0.01)
        return super().run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)


@pytest.fixture
def world() -> World:
    return World(PushedClock(), {"n1": 4, "n2": 4})


def seen(world: World, weights: dict[str, float] | None = None, reservations: str = "") -> Snapshot:
    tree = {"lease": {"term": TERM, "interval": 10}, "tenants": {"weights": weights or {}}}
    commands = Reserving(world)
    commands.reservations = reservations
    cluster = SlurmCluster(
        commands, from_tree(tree, "t").cluster, world.clock.now, MarksInHand(), NoIntents()
    )
    found = cluster.observe({})
    assert isinstance(found, Snapshot), found
    return found


def with_a_finished_row(world: World, numbers: Iterable[int]) -> int:
    """The task of an array, which waits, and rows of it that are over, under these record numbers."""
    job = world.submit(1, begin=world.clock.now() + 500, tasks=[2])
    for number in numbers:
        world.records[number] = replace(
            world.records[job], number=number, state="CANCELLED", end=world.clock.now(), gpus=3
        )
    return job


@pytest.mark.parametrize(
    ("row", "is_a_job"),
    [
        ({}, False),
        ({"State": "CANCELLED"}, True),
        ({"State": "NODE_FAIL"}, True),
        ({"EndTime": str(int(START) + 1)}, True),
        ({"NodeList": "n1"}, True),
        ({"RestartCnt": "1"}, True),
        ({"State": "PENDING"}, True),
    ],
)
def test_a_submission_that_slurm_refused_is_no_job(world: World, row: dict[str, str], is_a_job: bool) -> None:
    now = str(int(START))
    failed = {
        "State": "FAILED",
        "Reason": "BadConstraints",
        "SubmitTime": now,
        "StartTime": now,
        "EndTime": now,
    }
    world.records[world.submit(4)].raw = {**failed, **row}
    assert len(seen(world).jobs) == is_a_job


@pytest.mark.parametrize("numbers", [[0], [50], [0, 50]], ids=["before", "after", "both"])
def test_a_finished_row_gives_way_to_the_living_one_wherever_it_is_listed(
    world: World, numbers: list[int]
) -> None:
    job = with_a_finished_row(world, numbers)
    jobs = seen(world).jobs
    assert (jobs.key.tolist(), jobs.state.tolist()) == ([pack(job, 2)], [JobState.WAITING])
    assert jobs.gpus.tolist() == [1]
    rows = look(Queue(FakeCommands(world)), [(pack(job, 2), False)])
    assert not isinstance(rows, str)
    assert rows[pack(job, 2), False].state is JobState.WAITING


def test_weights_of_the_configuration_reach_the_snapshot_before_those_of_slurm(world: World) -> None:
    world.weights = {"a": 1.0, "b": 3.0}
    for tenant in ("a", "b"):
        world.submit(1, tenant)
    weights = dict(zip((found := seen(world)).tenants.names, found.tenants.weight, strict=True))
    assert weights["b"] / weights["a"] == pytest.approx(3.0)
    found = seen(world, {"a": 5.0, "b": 1.0})
    weights = dict(zip(found.tenants.names, found.tenants.weight, strict=True))
    assert weights["a"] / weights["b"] == pytest.approx(5.0)


def test_a_tenant_without_shares_weighs_what_the_others_do_on_the_mean(world: World) -> None:
    world.weights = {"a": 1.0, "b": 3.0}
    for tenant in ("a", "b", "new"):
        world.submit(1, tenant)
    found = seen(world)
    weights = dict(zip(found.tenants.names, found.tenants.weight, strict=True))
    assert weights["new"] == pytest.approx(np.mean([weights["a"], weights["b"]]))


@pytest.mark.parametrize(
    ("starts_in", "ends_in", "usable"),
    [(TERM - 10, TERM + 500, False), (TERM + 10, TERM + 500, True), (-100, 50, False), (-100, -1, True)],
    ids=["within the lease", "behind it", "now", "over"],
)
def test_a_node_that_is_reserved_within_a_lease_takes_no_new_work(
    world: World, starts_in: float, ends_in: float, usable: bool
) -> None:
    now = world.clock.now()
    line = f"ReservationName=maint StartTime={now + starts_in:.0f} EndTime={now + ends_in:.0f} Nodes=n2\n"
    nodes = seen(world, reservations=line).nodes
    assert nodes.usable.tolist() == [True, usable]
    assert nodes.why[1] == ("" if usable else "reservation maint")


class Behind(FakeCommands):
    """sinfo does not know yet of a job that squeue shows."""

    def _used(self, machine: Machine) -> int:
        return 0


def test_others_never_hold_less_than_nothing(world: World) -> None:
    world.submit(3)
    world.clock.advance(5)
    config = from_tree({"lease": {"term": TERM, "interval": 10}}, "t")
    cluster = SlurmCluster(Behind(world), config.cluster, world.clock.now, MarksInHand(), NoIntents())
    found = cluster.observe({})
    assert isinstance(found, Snapshot), found
    assert found.held.gpus.tolist() == [3]
    for others in (found.nodes.gpus_others, found.nodes.cpus_others, found.nodes.memory_others_mb):
        assert others.tolist() == [0, 0]


def test_a_waiting_job_whose_row_its_user_spoils_is_blocked(world: World) -> None:
    job = world.submit(1, begin=world.clock.now() + 500)
    config = from_tree({"lease": {"term": TERM, "interval": 10}}, "t")
    cluster = SlurmCluster(FakeCommands(world), config.cluster, world.clock.now, MarksInHand(), NoIntents())
    blocked = []
    for raw in ({}, {"tres-per-job": "gres:gpu:1\x1f1"}, {}):
        world.records[job].raw = raw
        found = cluster.observe({})
        assert isinstance(found, Snapshot), found
        blocked += found.jobs.blocked.tolist()
    assert blocked == [Blocked.OWN_BEGIN, Blocked.SHAPE, Blocked.OWN_BEGIN]
