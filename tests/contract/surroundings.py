"""Promises about dependencies, excluded nodes, reservations, interactive jobs and shares.

The virtual cluster has none of these; the fake and a real Slurm have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import pytest

from slurm_fair.config.sections import TenantsSection
from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blocked, JobState, Result, Verb, parse_label
from slurm_fair.slurm.cluster import SlurmCluster
from tests.contract.stages import (
    FakeStage,
    Job,
    Promises,
    RealStage,
    Stage,
    act,
    look,
    nodes_of,
    row_of,
    running,
    until,
    until_state,
)
from tests.support.fake_cluster import FakeCluster

SURROUNDINGS = Promises()
promise, whatever_the_gate = SURROUNDINGS.promise, SURROUNDINGS.whatever_the_gate
TERM = from_tree({}, "contract").lease.term


class Around(Protocol):
    """The acts of users and admins beside submitting jobs."""

    def depend(self, label: str, on: str) -> None: ...
    def exclude(self, label: str, nodes: tuple[str, ...]) -> None: ...
    def interactive(self, gpus: int) -> str: ...
    def reserve(self, node: str, starts_in: float) -> None: ...
    def open_to_all(self) -> None: ...
    def share(self, shares: Mapping[str, int]) -> None: ...
    def anew(self, weights: Mapping[str, float]) -> None: ...


class RealAround:
    """These acts by Slurm's commands."""

    def __init__(self, stage: RealStage) -> None:
        self._stage, self._run = stage, stage.lab.run

    def depend(self, label: str, on: str) -> None:
        """It starts after another one has completed."""
        self._run("scontrol", "update", f"jobid={label}", f"dependency=afterok:{on}")

    def exclude(self, label: str, nodes: tuple[str, ...]) -> None:
        """It does not want these."""
        self._run("scontrol", "update", f"jobid={label}", f"excnodelist={','.join(nodes)}")

    def interactive(self, gpus: int) -> str:
        """An allocation without a batch script."""
        words = ("--no-shell", "-A", "vision", "-p", "gpu", "-N1", f"--gpus={gpus}", "-J", "interactive")
        self._run("salloc", *words)
        return self._run("squeue", "-h", "-n", "interactive", "-o", "%A").stdout.strip()

    def reserve(self, node: str, starts_in: float) -> None:
        """A reservation for ten minutes."""
        self._run(
            "scontrol", "create", "reservation", "reservationname=contract", f"starttime=now+{starts_in:.0f}",
            "duration=10", f"nodes={node}", "users=root",
        )  # fmt: skip

    def open_to_all(self) -> None:
        """No reservation any more."""
        self._run("scontrol", "delete", "reservationname=contract")

    def share(self, shares: Mapping[str, int]) -> None:
        """sacctmgr; slurmctld hears of it a moment later."""
        for account, count in shares.items():
            self._run(
                "sacctmgr", "-i", "modify", "account", account, "set", f"fairshare={count}", check=False
            )
        told = {f"{account}||{count}" for account, count in shares.items()}
        words = ("sshare", "-a", "-P", "-n", "-o", "Account,User,RawShares")
        until(
            self._stage,
            lambda: told <= {line.strip() for line in self._run(*words).stdout.splitlines()},
            "slurmctld knows the shares",
        )

    def anew(self, weights: Mapping[str, float]) -> None:
        """An adapter that has asked nothing yet, with these weights in its configuration."""
        stage = self._stage
        config = replace(stage.config, tenants=TenantsSection(weights=weights))
        stage.cluster = SlurmCluster(stage.commands, config.cluster, time.time, stage.journal, stage.journal)


class FakeAround:
    """In the fake's world."""

    def __init__(self, stage: FakeStage) -> None:
        self._stage, self._world = stage, stage.world

    def depend(self, label: str, on: str) -> None:
        """It starts after another one has ended."""
        self._world.record(int(label)).after = self._world.record(int(on))

    def exclude(self, label: str, nodes: tuple[str, ...]) -> None:
        """It does not want these."""
        self._world.record(int(label)).excluded = nodes

    def interactive(self, gpus: int) -> str:
        """A job without a batch script."""
        label = self._stage.submit(Job(gpus=gpus, gated=False, stamped=False))
        self._world.record(int(label)).interactive = True
        self._stage.wait(1.0)
        return label

    def reserve(self, node: str, starts_in: float) -> None:
        """A reservation for ten minutes."""
        start = self._stage.now() + starts_in
        self._world.reserved[node] = (start, start + 600)

    def open_to_all(self) -> None:
        """No reservation any more."""
        self._world.reserved.clear()

    def share(self, shares: Mapping[str, int]) -> None:
        """The shares that sacctmgr sets."""
        self._world.weights = {account: float(count) for account, count in shares.items()}

    def anew(self, weights: Mapping[str, float]) -> None:
        """An adapter that has asked nothing yet, with these weights in its configuration."""
        stage = self._stage
        config = replace(stage.config, tenants=TenantsSection(weights=weights))
        stage.cluster = FakeCluster(stage.commands, config, stage.journal)


def around(stage: Stage) -> Around:
    """The surroundings of the fake or of a real Slurm."""
    if isinstance(stage, RealStage):
        return RealAround(stage)
    assert isinstance(stage, FakeStage)
    return FakeAround(stage)


@contextmanager
def reserved(stage: Stage, node: str, starts_in: float) -> Iterator[None]:
    """A reservation that begins so soon, and an adapter that has not asked for reservations yet."""
    around(stage).reserve(node, starts_in)
    around(stage).anew({})
    try:
        yield
    finally:
        around(stage).open_to_all()


@promise
def a_job_that_depends_on_another_is_not_planned_until_that_one_is_over(stage: Stage) -> None:
    first = running(stage)
    label = stage.submit(Job())
    around(stage).depend(label, on=first)

    def blocked() -> Blocked:
        snapshot = look(stage)
        return Blocked(int(snapshot.jobs.blocked[row_of(snapshot, label)]))

    until(stage, lambda: blocked() == Blocked.DEPENDENCY, "it is blocked")
    # Slurm never looks again at the dependency of a held job: a closed one waits behind a begin time.
    assert act(stage, Verb.CLOSE, label, until=stage.now() + 300).result is Result.DONE
    assert blocked() == Blocked.DEPENDENCY
    stage.finish(first)
    until(stage, lambda: blocked() == Blocked.NOT_BLOCKED, "its dependency is over")
    assert act(stage, Verb.OPEN, label, nodes=("n2",)).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    assert nodes_of(stage, label) == {"n2"}


@whatever_the_gate
def nodes_that_a_user_excluded_are_barred_for_the_job_and_for_no_other(stage: Stage) -> None:
    label, other = stage.submit(Job()), stage.submit(Job())
    around(stage).exclude(label, ("n1", "n3"))
    snapshot = look(stage)
    barred = snapshot.barred.nodes_of(row_of(snapshot, label)).tolist()
    assert sorted(snapshot.nodes.names[node] for node in barred) == ["n1", "n3"]
    assert snapshot.barred.nodes_of(row_of(snapshot, other)).tolist() == []


@whatever_the_gate
def a_node_is_no_capacity_when_a_reservation_of_it_begins_within_a_lease(stage: Stage) -> None:
    with reserved(stage, "n2", TERM / 2):
        nodes = look(stage).nodes
        at = nodes.names.index("n2")
        assert nodes.capacity[at] == 0
        assert "reservation" in nodes.why[at]
        assert nodes.capacity[nodes.names.index("n1")] == 8


@whatever_the_gate
def a_reservation_that_begins_later_than_a_lease_from_now_takes_nothing_yet(stage: Stage) -> None:
    with reserved(stage, "n2", 2 * TERM):
        nodes = look(stage).nodes
        assert nodes.capacity[nodes.names.index("n2")] == 8


@whatever_the_gate
def an_interactive_job_is_left_alone_and_its_gpus_are_no_capacity(stage: Stage) -> None:
    label = around(stage).interactive(3)
    snapshot = look(stage)
    assert parse_label(label) not in snapshot.jobs.key.tolist()
    reasons = [alone.reason for alone in snapshot.left_alone if alone.label == label]
    assert len(reasons) == 1
    assert "interactive" in reasons[0]
    assert snapshot.nodes.gpus_others.sum() == 3


@promise
def a_job_that_is_not_managed_is_to_be_freed_of_our_gate_and_then_of_nothing(stage: Stage) -> None:
    label = stage.submit(Job(partition="other"))
    snapshot = look(stage)
    assert parse_label(label) not in snapshot.jobs.key.tolist()
    assert [(act.verb, act.key) for act in snapshot.to_free] == [(Verb.FREE, parse_label(label))]
    assert [outcome.result for outcome in stage.cluster.actuate(snapshot.to_free)] == [Result.DONE]
    assert stage.priority(label) > 0
    assert look(stage).to_free == ()


@whatever_the_gate
def tenants_weigh_what_their_shares_in_slurm_say(stage: Stage) -> None:
    weights = weights_with(stage, {"vision": 3, "nlp": 1}, {})
    assert weights["vision"] / weights["nlp"] == pytest.approx(3)


@whatever_the_gate
def a_weight_of_the_configuration_takes_the_place_of_the_tenants_shares(stage: Stage) -> None:
    weights = weights_with(stage, {"vision": 2, "nlp": 1}, {"nlp": 6.0})
    assert weights["nlp"] / weights["vision"] == pytest.approx(3)


def weights_with(stage: Stage, shares: Mapping[str, int], given: Mapping[str, float]) -> dict[str, float]:
    """Weights of tenants with these shares in Slurm and these weights in the configuration."""
    around(stage).share(shares)
    around(stage).anew(given)
    try:
        tenants = look(stage).tenants
        return dict(zip(tenants.names, tenants.weight.tolist(), strict=True))
    finally:
        around(stage).share({"vision": 1, "nlp": 1})
