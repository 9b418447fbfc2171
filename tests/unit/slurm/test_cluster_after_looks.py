"""Acts know from the looks before them of lifted holds, strays, slurmctld's start, and where answers lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import deadman
from slurm_fair.config.tree import from_tree
from slurm_fair.errors import StoreBusy
from slurm_fair.host.state_folder import Places
from slurm_fair.model import Action, Blind, Blocked, Result, Snapshot, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.fail_open import NoIntents, liberate
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.reading.answers import Answers
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.readers import Readers
from slurm_fair.store import open_journal, open_reader
from tests.support.builders import job, snapshot
from tests.support.fake_commands import FakeCommands, Trouble
from tests.support.fake_jobs import START, USER, Record
from tests.support.fake_slurm import PushedClock, World

GATE, BOOT = START + 600, int(START + 100)


class Booted(FakeCommands):
    """A slurmctld that says when it started, unless `boot` is 0."""

    boot = BOOT

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The fake's own, and BOOT_TIME."""
        said = super().run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)
        if argv != ("scontrol", "show", "config"):
            return said
        if not self.boot:
            return CommandResult(argv, 1, "", "Unable to contact slurm controller", 0.01)
        return CommandResult(argv, 0, f"BOOT_TIME = {self.boot}\n{said.out}", "", 0.01)


class Asked(Booted):
    """Remembers what it was asked."""

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        self.asked = [*getattr(self, "asked", []), " ".join(argv)]
        return super().run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)


def test_after_a_clock_was_set_back_all_is_asked_again() -> None:
    world = World(PushedClock(), {"n1": 4})
    world.submit(1)
    commands = Asked(world)
    config = from_tree({"lease": {"term": 300, "interval": 10}}, "here")
    cluster = SlurmCluster(commands, config.cluster, world.clock.now, MarksInHand(), NoIntents())
    cluster.observe({})
    world.clock.advance(-3600)
    commands.asked = []
    cluster.observe({})
    for word in ("sshare", "reservation", "config"):
        assert any(word in said for said in commands.asked), (word, commands.asked)


class Scene:
    """A job behind a gate on full nodes, the daemon's cluster, and a mark."""

    def __init__(self, mark: Mapping[str, Any], scope: Mapping[str, Any] | None = None) -> None:
        self.world = World(PushedClock(), {"n1": 4})
        self.world.take("n1", 4)
        self.job = self.world.submit(1, begin=GATE, stamped=False)
        known = {"pinned": False, "set_at": START, "submit": self.record.submit, **mark}
        marks = MarksInHand((Mark(pack(self.job), self.job, False, restarts=0, **known),))
        config = from_tree({"lease": {"term": 300, "interval": 10}, "scope": dict(scope or {})}, "here")
        self.commands = Booted(self.world)
        self.cluster = SlurmCluster(self.commands, config.cluster, self.world.clock.now, marks, NoIntents())

    @property
    def record(self) -> Record:
        """The job as slurmctld has it."""
        return self.world.records[self.job]

    def look(self) -> Snapshot:
        seen = self.cluster.observe({})
        assert isinstance(seen, Snapshot), seen
        return seen


def test_a_hold_that_comes_after_ours_was_seen_lifted_is_its_users() -> None:
    scene = Scene({"gate_until": math.inf, "gate_before": GATE})
    assert scene.look().jobs.gated.tolist() == [True]
    scene.world.hold(scene.job)
    assert scene.record.held == USER
    assert scene.look().jobs.blocked.tolist() == [Blocked.USER_HOLD]


def test_a_list_that_came_back_with_slurmctlds_last_state_is_taken_away() -> None:
    scene = Scene({"gate_until": GATE, "pin": "n1"})
    scene.record.wanted = ("n1",)
    scene.world.clock.sleep_until(BOOT + 10)
    assert scene.look().jobs.pinned.tolist() == [True]
    free = Action(Verb.FREE, pack(scene.job), scene.job, scene.record.submit, 0)
    assert [outcome.result for outcome in scene.cluster.actuate([free])] == [Result.DONE]
    assert not scene.record.wanted


def test_a_list_that_came_back_with_an_open_gate_is_taken_away() -> None:
    """A power cut of the machine of slurmctld and daemon: nobody of ours looked meanwhile."""
    scene = Scene({"gate_until": GATE, "pin": "n1", "set_at": BOOT - 5.0})
    scene.record.wanted, scene.record.eligible = ("n1",), BOOT - 20.0
    for seconds in (10, 20, 60):
        scene.world.clock.sleep_until(BOOT + seconds)
        jobs = scene.look().jobs
        assert (jobs.pinned.tolist(), jobs.gate_set.tolist()) == ([True], [0.0])
    assert liberate(scene.commands, scene.cluster.marks.all(), scene.world.clock.now).freed == 1
    assert not scene.record.wanted


def test_a_list_that_came_back_when_slurmctld_was_killed_in_an_act_is_taken_away() -> None:
    scene = Scene({"gate_until": GATE, "pin": "n1", "set_at": START + 10.0})
    scene.commands.boot = int(START)
    scene.world.clock.sleep_until(START + 50)
    scene.look()
    scene.commands.trouble = Trouble(late_replies=1, late_by=1e9)
    close = Action(Verb.CLOSE, pack(scene.job), scene.job, scene.record.submit, 0, until=GATE + 600)
    assert [outcome.result for outcome in scene.cluster.actuate([close])] != [Result.DONE]
    scene.commands.trouble = Trouble()
    scene.commands.boot, scene.record.wanted = BOOT, ("n1",)
    scene.world.clock.sleep_until(BOOT + 10)
    assert scene.look().jobs.pinned.tolist() == [True]


def killed(seconds: float = 1.0) -> Scene:
    """A slurmctld that was looked at a moment ago, was killed, and is back with a list that we had taken away."""
    scene = Scene({"gate_until": GATE, "pin": "n1", "set_at": BOOT + 20.0})
    scene.world.clock.sleep_until(BOOT + 30)
    assert scene.look().jobs.pinned.tolist() == [False]
    scene.world.clock.sleep_until(BOOT + 30 + seconds)
    scene.commands.boot, scene.record.wanted = int(BOOT + 30), ("n1",)
    return scene


def test_a_list_that_came_back_a_moment_after_a_look_is_taken_away() -> None:
    scene = killed()
    assert scene.look().jobs.pinned.tolist() == [True]


def test_an_act_asks_when_slurmctld_started_before_it_takes_a_list_for_the_users() -> None:
    scene = killed()
    free = Action(Verb.FREE, pack(scene.job), scene.job, scene.record.submit, 0)
    assert [outcome.result for outcome in scene.cluster.actuate([free])] == [Result.DONE]
    assert not scene.record.wanted


def test_nothing_is_believed_of_a_list_while_nobody_says_when_slurmctld_started() -> None:
    scene = killed()
    scene.commands.boot = 0
    free = Action(Verb.FREE, pack(scene.job), scene.job, scene.record.submit, 0)
    assert [outcome.result for outcome in scene.cluster.actuate([free])] == [Result.REFUSED]
    blind = scene.cluster.observe({})
    assert isinstance(blind, Blind)
    assert "a node list is in doubt" in blind.reason


def test_fail_open_asks_when_slurmctld_started_too() -> None:
    scene = killed()
    assert liberate(scene.commands, scene.cluster.marks.all(), scene.world.clock.now).freed == 1
    assert not scene.record.wanted


def test_the_start_of_slurmctld_is_asked_anew_after_a_blind_look() -> None:
    scene = Scene({"gate_until": GATE})
    scene.commands = scene.cluster._commands = Asked(scene.world)
    scene.look()
    for down, asked in ((False, 0), (True, 0), (False, 1)):
        scene.commands.asked = []
        scene.commands.trouble = Trouble(dead=down)
        scene.cluster.observe({})
        assert sum("show config" in said for said in scene.commands.asked) == asked


def test_a_look_says_what_is_to_be_freed() -> None:
    scene = Scene({"gate_until": GATE}, scope={"accounts": ["others"]})
    (free,) = scene.look().to_free
    assert (free.verb, free.record, free.why) == (Verb.FREE, scene.job, "it is not managed")
    assert scene.record.eligible == GATE, "a look does nothing"
    assert [outcome.result for outcome in scene.cluster.actuate([free])] == [Result.DONE]
    assert scene.record.eligible <= scene.world.clock.now() + 2


def test_a_marked_job_that_asks_for_no_gpu_any_more_is_to_be_freed() -> None:
    scene = Scene({"gate_until": GATE})
    scene.record.raw = {"tres-alloc": "cpu=1,mem=1G,node=1", "tres-per-job": "N/A"}
    (free,) = scene.look().to_free
    assert (free.verb, free.record) == (Verb.FREE, scene.job)
    other = Scene({"gate_until": GATE, "submit": START - 500})
    other.record.raw = scene.record.raw
    assert other.look().to_free == (), "the mark is of an earlier bearer of its id"


def test_a_whole_node_that_was_asked_for_behind_our_hold_has_a_gate_of_ours() -> None:
    scene = Scene({"gate_until": GATE})
    alone = scene.world.submit(1, hold=True)
    scene.world.records[alone].raw = {
        "OverSubscribe": "NO", "tres-alloc": "cpu=1,mem=1G,node=1", "tres-per-job": "N/A",
    }  # fmt: skip
    jobs = scene.look().jobs
    assert jobs.gated[jobs.record == alone].tolist() == [True]


def test_the_dead_man_waits_for_a_journal_that_an_admins_shell_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stamps alone would not tell it of gates that were set later."""
    noted = Mark(pack(7), 7, False, START, 0, GATE, False, START)
    with open_journal(tmp_path / "journal.db") as journal:
        journal.set_marks([noted])
    refusals = iter(range(3))

    def busy_first(path: Path) -> Any:
        if next(refusals, None) is not None:
            raise StoreBusy("the journal is locked")
        return open_reader(path)

    monkeypatch.setattr("slurm_fair.deadman.open_reader", busy_first)
    assert deadman._marks(Places(tmp_path)) == ((noted,), False)
    refusals = iter(range(100))
    assert deadman._marks(Places(tmp_path)) == ((), True)


class Unasked(Readers):
    """Readers of folders in which nobody may look."""

    def _read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a folder was read")


@pytest.mark.parametrize("reports", ["none", "comment"])
def test_no_folder_is_read_where_answers_are_not_looked_for_in_files(reports: str) -> None:
    commands = FakeCommands(World(PushedClock(), {"n1": 4}))
    shown = snapshot(time=START, jobs=[job(1)])
    answers = Answers(commands, JobDetails(commands), Unasked())
    assert answers.of(shown, {0: START - 10}, reports) == {}
    with pytest.raises(AssertionError, match="a folder was read"):
        answers.of(shown, {0: START - 10}, "file")
