"""A gate that the submit hook set anew is known by the comment, which is asked again where a begin time is new."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blocked, JobTable, Snapshot
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import START
from tests.support.fake_slurm import PushedClock, World

AHEAD = float(int(START) + 600)
STAMP = "slurm_fair:v1,signal=USR2"


class Counting(FakeCommands):
    """Counts how often comments are asked."""

    asked = 0

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        self.asked += any("%k" in word for word in argv)
        return super().run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)


class Scene:
    """A cluster, one job that waits, and looks at it."""

    def __init__(self, begin: float, comment: str) -> None:
        self.world = World(PushedClock(), {"n1": 4})
        self.number = self.world.submit(1, begin=begin)
        self.change(begin, comment)
        self.commands = Counting(self.world)
        settings = from_tree({"lease": {"term": 300, "interval": 10}}, "t").cluster
        clock = self.world.clock.now
        self.cluster = SlurmCluster(self.commands, settings, clock, MarksInHand(), NoIntents())

    def look(self) -> JobTable:
        found = self.cluster.observe({})
        assert isinstance(found, Snapshot), found
        return found.jobs

    def change(self, eligible: float, comment: str) -> None:
        """The hook's answer to its owner's change."""
        records = self.world.records
        records[self.number] = replace(records[self.number], eligible=eligible, comment=comment)


@pytest.fixture
def scene() -> Scene:
    """A job that its owner wants to begin later."""
    return Scene(AHEAD, f"{STAMP},begin=uts{AHEAD:.0f}")


def test_a_gate_that_the_hook_set_at_a_change_is_ours(scene: Scene) -> None:
    jobs = scene.look()
    assert (jobs.gated.tolist(), jobs.blocked.tolist()) == ([False], [Blocked.OWN_BEGIN])
    scene.change(AHEAD + 100, f"{STAMP},gate=uts{AHEAD + 100:.0f}")
    jobs = scene.look()
    assert (jobs.gated.tolist(), jobs.blocked.tolist()) == ([True], [Blocked.NOT_BLOCKED])


def test_a_begin_time_of_its_owners_own_stays_so(scene: Scene) -> None:
    scene.look()
    scene.change(AHEAD + 100, f"{STAMP},begin=uts{AHEAD + 100:.0f}")
    assert scene.look().blocked.tolist() == [Blocked.OWN_BEGIN]


def test_comments_are_asked_once_and_again_only_for_a_new_begin_time(scene: Scene) -> None:
    for _ in range(3):
        scene.look()
    assert scene.commands.asked == 1
    scene.change(AHEAD + 50, STAMP)
    for _ in range(3):
        scene.look()
    assert scene.commands.asked == 2
