"""The parts of one look: what is worked out of them, and what they carry on."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from slurm_fair.config.sections import Config, ScopeSection, SlurmSection
from slurm_fair.slurm import sighting as module
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.sighting import Sighting
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import START
from tests.support.fake_slurm import PushedClock, World


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Sighting:
    """The parts of a look at two partitions with GPUs."""
    world = World(PushedClock(), {"n1": 4, "n2": 8, "n3": 0})
    world.machines["n2"].partition = "other"
    world.submit(2)
    config = Config(slurm=SlurmSection(requeue_delay=77.0))
    kept: list[Sighting] = []

    def keep(**parts: Any) -> Sighting:
        kept.append(Sighting(**parts))
        return kept[-1]

    monkeypatch.setattr("slurm_fair.slurm.cluster.Sighting", keep)
    SlurmCluster(FakeCommands(world), config.cluster, world.clock.now, MarksInHand(()), NoIntents()).observe(
        {}
    )
    (only,) = kept
    return only


def test_the_territory_is_that_of_the_scope(seen: Sighting) -> None:
    assert seen.territory.partitions == {"gpu", "other"}
    assert seen.territory.nodes == ("n1", "n2")
    inside = replace(seen.settings, scope=ScopeSection(partitions=("other", "no such partition")))
    narrowed = replace(seen, settings=inside).territory
    assert narrowed.partitions == {"other"}
    assert narrowed.nodes == ("n2",)


def test_a_partition_with_a_node_without_gpus_is_not_all_gpus(seen: Sighting) -> None:
    assert seen.territory.all_gpus == {"other"}


def test_the_keepers_go_by_the_look_its_marks_and_the_sites_delay(seen: Sighting) -> None:
    keepers = replace(seen, booted_at=START - 50).keepers
    assert (keepers.now, keepers.requeue_delay, keepers.booted_at) == (seen.time, 77.0, START - 50)
    assert keepers.queue is seen.queue
    assert keepers.details is seen.details
    assert keepers.marks is seen.marks


def test_what_nobody_named_is_quiet(seen: Sighting) -> None:
    needed = {field.name: getattr(seen, field.name) for field in fields(seen)}
    for name in ("gpu_weights", "booted_at", "lists_at_first"):
        del needed[name]
    bare = module.Sighting(**needed)
    assert (dict(bare.gpu_weights), bare.booted_at, dict(bare.lists_at_first)) == ({}, 0.0, {})
    assert bare.gpu_weights is not module.Sighting(**needed).gpu_weights
