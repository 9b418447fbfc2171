"""The daemon forgets some things when it has failed open, and must not forget others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_fair.daemon.loop import Daemon
from slurm_fair.host.state_folder import Places
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.store import open_journal
from tests.support.fake_cluster import fake_config
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import RUNNING, PushedClock, Work, World


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_fair.slurm.fail_open.time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture
def world() -> World:
    """One node, where a job that leaves takes for ever."""
    return World(PushedClock(), {"n1": 8})


@pytest.fixture
def daemon(world: World, tmp_path: Path) -> Iterator[Daemon]:
    """Over a journal of its own and the fake Slurm."""
    tmp_path.chmod(0o700)
    journal = open_journal(tmp_path / "journal.db")
    made = Daemon.build(fake_config(), Places(tmp_path), world.clock, journal, dry_run=False)
    made.commands = FakeCommands(world)
    made.beat()
    yield made
    journal.close()


def started(world: World, leaves_in: float = 1e9) -> int:
    """A job that was opened on n1 and runs."""
    number = world.submit(2, work=Work(leaves_in=leaves_in), node_list=("n1",))
    world.clock.advance(2)
    assert world.record(number).state == RUNNING
    return number


def mark(number: int, world: World) -> Mark:
    """The mark of a job that we opened on n1."""
    record = world.record(number)
    return Mark(pack(number), number, False, record.submit, record.restarts, 0.0, True, 1.0, pin="n1")


def test_while_a_job_is_left_nothing_is_forgotten_so_that_the_dead_man_goes_on(
    daemon: Daemon, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    number = started(world)
    marks = (mark(number, world),)
    daemon.journal.set_marks(marks)
    world.requeue(world.record(number), hold=False)
    daemon.fail_open()
    assert f"could not free job {number}: it is still completing" in caplog.text
    assert daemon.journal.marks() == marks
    assert daemon.places.heartbeat.exists()


def test_a_node_list_of_ours_on_a_running_job_is_all_that_is_remembered(
    daemon: Daemon, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    number, gated = started(world), world.submit(1, gate_seconds=600)
    waits = Mark(
        pack(gated), gated, False, world.record(gated).submit, 0, world.record(gated).eligible, False, 1.0
    )
    daemon.journal.set_marks([mark(number, world), waits])
    daemon.fail_open()
    assert "failed open: 1 jobs freed" in caplog.text
    assert f"running jobs keep a node list of ours until they end (job {number}: n1)" in caplog.text
    assert [(kept.record, kept.pinned) for kept in daemon.journal.marks()] == [(number, True)]
    assert not daemon.places.heartbeat.exists()
