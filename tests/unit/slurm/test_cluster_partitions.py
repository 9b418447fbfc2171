"""Jobs that name several partitions, or features of nodes, are planned like the others."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Snapshot
from slurm_fair.policy.packing.gang import Pools
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World

FEATURES = {"n1": ("a", "x"), "n2": ("b", "x"), "n3": ("a", "y"), "n4": ("b", "y")}


def look(*wishes: tuple[str, str], gpus: int = 4, nodes: int = 1, **scope: Any) -> Snapshot:
    """A look at jobs that wait with (partitions, constraint); n1 and n2 are `gpu`, n3 and n4 `big`."""
    world = World(PushedClock(), dict.fromkeys(FEATURES, 4))
    for name, features in FEATURES.items():
        world.machines[name].features = features
        world.machines[name].partition = "gpu" if name in ("n1", "n2") else "big"
    for partition, constraint in wishes:
        job = world.submit(gpus, partition=partition, begin=world.clock.now() + 500, nodes=nodes)
        world.records[job].constraint = constraint
    cluster = SlurmCluster(
        FakeCommands(world),
        from_tree({"scope": scope}, "t").cluster,
        world.clock.now,
        MarksInHand(),
        NoIntents(),
    )
    found = cluster.observe({})
    assert isinstance(found, Snapshot), found
    return found


def ways(seen: Snapshot) -> list[list[str]]:
    """For the first job: the nodes among which each of its ways lies."""
    pools = Pools.of(seen)
    (gangs,) = Shapes.of(pools, seen, seen.jobs.key[:1] * 0).ways(seen.jobs.key[:1] * 0)
    return sorted(
        [name for name, there in zip(seen.nodes.names, pools.nodes[gang.pool], strict=True) if there]
        for gang in gangs
    )


@pytest.mark.parametrize(
    ("partition", "constraint", "where"),
    [
        ("gpu", "", ["n1 n2"]),
        ("gpu", "a", ["n1"]),
        ("gpu,big", "", ["n1 n2", "n3 n4"]),
        ("gpu,big", "x", ["n1 n2"]),
        ("gpu,big", "a", ["n1", "n3"]),
        ("big", "[a|b]", ["n3", "n4"]),
    ],
)
def test_a_gang_lies_within_one_partition_on_nodes_of_its_features(
    partition: str, constraint: str, where: list[str]
) -> None:
    seen = look((partition, constraint))
    assert not seen.left_alone
    assert ways(seen) == [each.split() for each in where]


def test_two_nodes_of_two_partitions_are_no_place_for_a_gang() -> None:
    seen = look(("gpu,big", "a"), gpus=8, nodes=2)
    pools = Pools.of(seen)
    shapes = Shapes.of(pools, seen, seen.jobs.key * 0)
    assert not shapes.fitting(pools, seen.nodes.capacity).any()
    seen = look(("gpu,big", "x"), gpus=8, nodes=2)
    assert (
        Shapes.of(Pools.of(seen), seen, seen.jobs.key * 0).fitting(Pools.of(seen), seen.nodes.capacity).all()
    )


def test_jobs_that_mean_the_same_nodes_share_a_row() -> None:
    seen = look(("gpu", "a"), ("gpu", "a&x"), ("gpu", "x"), ("gpu", ""), ("gpu", "none"))
    assert len(seen.partitions.names) == 3
    assert seen.jobs.partition[0] == seen.jobs.partition[1]
    assert seen.jobs.partition[2] == seen.jobs.partition[3]


def test_of_several_partitions_one_that_is_managed_is_enough() -> None:
    seen = look(("gpu,big", ""), partitions=["gpu"])
    assert ways(seen) == [["n1", "n2"]]
