"""A gate that we, a dead-man or a requeue took away is nobody's move."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slurm_fair import deadman
from slurm_fair.errors import StoreBusy
from slurm_fair.host.state_folder import Pause, leave_pause
from slurm_fair.model import Action, Snapshot, Verb
from slurm_fair.model.ids import pack
from slurm_fair.reconcile.moved_gates import stays_open
from slurm_fair.store import SqliteJournal
from tests.support.daemon_bench import Bench, bench_in
from tests.support.fake_slurm import Work


def told_moved(bench: Bench) -> list[bool]:
    """For each adoption, if it blames somebody."""
    return [bool(event.detail.get("moved")) for event in bench.journal.events(kinds=("adopted",))]


def seen(bench: Bench) -> Snapshot:
    """A look of the daemon's own adapter."""
    assert bench.daemon.adapter is not None
    shown = bench.daemon.adapter.observe({})
    assert isinstance(shown, Snapshot)
    return shown


def gates_left_open(bench: Bench) -> int:
    """Jobs whose gates stay open as moved ones."""
    leases, terms = bench.daemon.standing.leases, bench.daemon.rules.terms
    return int(np.count_nonzero(stays_open(seen(bench).jobs, leases, terms, bench.now)))


def test_what_a_dead_man_freed_was_moved_by_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadman, "commands_of", lambda *_: bench.apart())
    bench.world.submit(8, "a", work=Work(100.0))
    bench.run(20)
    for tenant in ("b", "b", "c", "c", "c"):
        bench.world.submit(2, tenant)
    bench.run(20)
    bench.pass_time(50)
    assert deadman.take_over(bench.config, bench.places, bench.world.clock) == 5
    bench.pass_time(60)
    bench.restart()
    bench.daemon.once()
    assert told_moved(bench) == [False] * 4
    assert gates_left_open(bench) == 0


def test_what_a_dead_man_frees_in_a_pause_was_moved_by_nobody(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadman, "commands_of", lambda *_: bench.apart())
    bench.world.submit(8, "a", work=Work(100.0))
    bench.run(20)
    job = bench.world.submit(2, "b")
    bench.run(20)
    leave_pause(bench.places, Pause("the storage is upgraded", "ann", bench.now))
    bench.run(50)
    assert deadman.free_all(bench.config, bench.places, bench.world.clock).freed == 1
    bench.places.paused.unlink()
    bench.run(70)
    assert bench.world.record(job).state == "RUNNING"
    assert told_moved(bench) == []
    assert gates_left_open(bench) == 0


def test_who_moves_a_gate_while_we_look_is_told_so(bench: Bench) -> None:
    hog = bench.world.submit(6, "a", work=Work(1e9))
    bench.run(20)
    job = bench.world.submit(4, "b")
    bench.run(20)
    bench.world.move_begin(job, bench.now)
    assert gates_left_open(bench) == 1
    bench.world.finish(hog)
    bench.pass_time(2)
    bench.daemon.once()
    assert told_moved(bench) == [True]


@pytest.mark.parametrize("trouble", ["the disk is full", "paused"])
def test_a_job_that_we_opened_in_a_tick_that_was_lost_was_moved_by_nobody(
    bench: Bench, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(5)
    job = bench.world.submit(8, "b", gate_seconds=1200)
    bench.world.submit(4, "b")
    append = SqliteJournal.append

    def full(*_: object) -> None:
        monkeypatch.setattr(SqliteJournal, "append", append)
        raise StoreBusy("journal.db: the disk is full")

    def watch(when: str, said: tuple[str, ...]) -> None:
        if when == "after" and any("starttime=now" in line for line in said):
            leave_pause(bench.places, Pause("x", "ann", bench.now))

    if trouble == "paused":
        bench.commands.watch = watch
    else:
        monkeypatch.setattr(SqliteJournal, "append", full)
    bench.daemon.once()
    bench.commands.watch = lambda *_: None
    bench.places.paused.unlink(missing_ok=True)
    bench.pass_time(2)
    bench.daemon.once()
    assert bench.world.record(job).state == "RUNNING"
    assert told_moved(bench) == [False]


@pytest.mark.parametrize("seconds", [5, 130])
def test_a_job_whose_requeue_delay_ends_while_we_are_away_gets_a_gate(tmp_path: Path, seconds: int) -> None:
    with bench_in(tmp_path / "s", lease={"term": 600.0}) as bench:
        base = bench.world.submit(8, "a")
        bench.pass_time(3)  # it was there before us
        bench.run(20)
        submit = float(seen(bench).jobs.submit[0])
        assert bench.daemon.adapter is not None
        act = Action(Verb.REQUEUE, pack(base), base, submit, 0, why="no answer within its grace")
        bench.daemon.adapter.actuate([act])
        bench.world.submit(8, "b", work=Work(1e9, checkpoints=False), stamped=False)
        bench.pass_time(seconds)
        bench.restart()
        bench.daemon.once()
        assert bench.world.records[base].eligible > bench.now + 600
