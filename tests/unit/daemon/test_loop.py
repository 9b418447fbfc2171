"""The daemon's loop over a fake Slurm: when it looks, what it waits out, what it leaves alone."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.board.board import draw
from slurm_fair.cli.replay_tick import replayed, same_plan
from slurm_fair.daemon.parts import heartbeat_limit
from slurm_fair.deadman import overdue
from slurm_fair.errors import (
    JournalGone,
    NotTheOwner,
    SlurmTextError,
    SlurmUnreachable,
    StoreBusy,
    StoreError,
)
from slurm_fair.host.state_folder import Pause, last_beat, leave_pause
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import LeasePhase
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.notice import AnotherDaemon, OurNotice
from slurm_fair.store import fence, open_journal, open_reader
from tests.support.daemon_bench import Bench, bench_in, crowd, lines


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path / "s", gate="hold") as made:
        yield made


def fill_disk(bench: Bench) -> None:
    """No page of the journal is free, and none can be added."""
    db = bench.journal._db
    db.execute("CREATE TABLE filler (stuff BLOB)")
    db.execute(f"PRAGMA max_page_count = {bench.journal._all('PRAGMA page_count')[0][0]}")
    for size in (100_000, 4000, 1000):
        with suppress(sqlite3.OperationalError):
            for _ in range(1000):
                db.execute(f"INSERT INTO filler VALUES (zeroblob({size}))")


def phases(bench: Bench) -> set[LeasePhase]:
    return {LeasePhase(code) for code in bench.daemon.standing.leases.phase.tolist()}


# -- when it looks --------------------------------------------------------------------------------------------


def test_it_looks_at_the_next_interval_while_nothing_changes(bench: Bench) -> None:
    bench.daemon.once()
    assert bench.daemon.next_look(bench.now) == bench.now + 10.0


def test_it_looks_when_the_next_lease_is_renewed(bench: Bench) -> None:
    """A lease that is over is renewed at the next beat: a sixteenth of a renewed lease of 15 s."""
    crowd(bench)
    assert phases(bench) == {LeasePhase.RUNNING}
    (end,) = bench.daemon.standing.leases.end.tolist()
    bench.pass_time(end - bench.now - 3.0)
    due = bench.daemon.next_look(bench.now)
    assert end < due <= end + 15 / 16
    assert due % (15 / 16) == 0


@pytest.mark.parametrize(("last_look", "wait"), [(0.0, 0.12), (0.01, 0.12), (1.0, 2.0), (30.0, 10.0)])
def test_while_jobs_change_places_it_looks_often_but_never_without_a_breath(
    bench: Bench, last_look: float, wait: float
) -> None:
    crowd(bench)
    bench.run(60 - bench.now % 60 + 1.5)
    assert LeasePhase.REVOKING in phases(bench)
    bench.daemon.last_look_seconds = last_look
    leases = bench.daemon.standing.leases
    later = leases.with_columns(end=leases.end + 1e6, asked=leases.asked + 1e6)
    bench.daemon.standing = bench.daemon.standing._replace(leases=later)
    assert bench.daemon.next_look(bench.now) == pytest.approx(bench.now + wait)
    leave_pause(bench.places, Pause())
    assert bench.daemon.next_look(bench.now) == bench.now + 10.0, "a paused daemon has nothing to wait for"


# -- what goes wrong in a tick --------------------------------------------------------------------------------


def test_a_full_disk_is_waited_out_and_said_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    crowd(bench)
    fill_disk(bench)
    bench.world.submit(8, "c")
    while not bench.daemon.once().blind:  # a small act may still have found a place
        bench.pass_time(1)
    before = bench.acts()
    bench.world.submit(8, "d")
    bench.run(120)
    assert bench.acts() == before, "nothing is done that cannot be written down"
    beat = last_beat(bench.places)
    assert beat is not None
    assert "the disk is full" in beat.blind
    assert bench.now - beat.time <= 10 < bench.now - beat.seen, "it lives, and did not see"
    assert len(lines(caplog, "the disk is full")) <= 3
    bench.journal._db.execute("PRAGMA max_page_count = 1000000")
    bench.run(30)
    assert len(bench.acts()) > len(before)
    assert len(lines(caplog, "sees again after")) == 1
    found = last_beat(bench.places)
    assert found is not None
    assert found.blind == ""


def test_a_quota_that_is_used_up_is_waited_out_like_a_full_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite calls it a failed disk: whole ticks fail, while an act alone may still fit."""

    def fails(*args: object, **keywords: object) -> None:
        raise StoreError("disk I/O error")

    crowd(bench)
    with monkeypatch.context() as patched:
        patched.setattr(bench.journal, "append", fails)
        assert bench.daemon.once().blind
        before = bench.acts()
        patched.setattr(bench.journal, "need_room", fails)
        bench.world.submit(8, "d")
        bench.run(120)
        assert bench.acts() == before, "nothing is done that cannot be written down"
    bench.run(30)
    assert len(bench.acts()) > len(before)


def test_a_journal_that_a_shell_holds_locked_is_waited_out(bench: Bench) -> None:
    crowd(bench)
    shell = sqlite3.connect(bench.places.journal, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    assert "holds the journal locked" in bench.daemon.once().blind
    shell.execute("ROLLBACK")
    shell.close()
    assert bench.daemon.once().blind == ""


def test_a_heartbeat_that_cannot_be_left_means_that_nothing_is_done(bench: Bench) -> None:
    crowd(bench)
    before = bench.acts()
    bench.places.heartbeat.unlink()
    bench.places.heartbeat.mkdir()
    bench.run(100)
    assert bench.acts() == before
    bench.places.heartbeat.rmdir()
    bench.run(90)
    assert len(bench.acts()) > len(before)


def test_a_daemon_whose_notice_cannot_be_read_is_blind_and_lives(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the dead-man would take each outage of Slurm for the death of its daemon, and fence it."""
    crowd(bench)
    bench.daemon.notice = OurNotice(bench.daemon.commands, bench.places.directory, 60.0)

    def away(self: OurNotice, now: float) -> None:
        raise SlurmUnreachable("whether another daemon acts cannot be seen")

    monkeypatch.setattr(OurNotice, "hold", away)
    bench.run(300)
    beat = last_beat(bench.places)
    assert beat is not None
    assert bench.now - beat.time <= 10 < bench.now - beat.seen, "it lives, and did not see"
    assert beat.blind == "whether another daemon acts cannot be seen"


def test_a_daemon_whose_commands_of_slurm_are_all_slow_is_not_taken_for_dead(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they may take longer than the dead-man waits, and no one of them does."""
    crowd(bench)
    bench.run(20)
    run, calls = bench.commands.run, []

    def slow(*argv: str, **more: Any) -> CommandResult:
        bench.pass_time(20)
        assert not overdue(bench.places, bench.now)
        calls.append(argv)
        return run(*argv, **more)

    monkeypatch.setattr(bench.commands, "run", slow)
    began = bench.now
    bench.daemon.once()
    assert bench.now - began > heartbeat_limit(bench.config), "else nothing was shown"
    bench.pass_time(heartbeat_limit(bench.config) + 1)
    fence(bench.places.journal)
    with pytest.raises(NotTheOwner):
        bench.daemon.once()
    assert overdue(bench.places, bench.now), "a fenced daemon does not seem to live"


def test_a_shadow_does_not_let_the_daemon_before_it_seem_to_live(bench: Bench) -> None:
    crowd(bench)
    bench.run(20)
    before = last_beat(bench.places)
    bench.restart(dry_run=True)
    bench.run(60)
    assert last_beat(bench.places) == before


def test_a_daemon_that_has_ended_leaves_no_heartbeat_by_its_last_commands(bench: Bench) -> None:
    crowd(bench)
    bench.run(20)
    bench.places.heartbeat.unlink()
    bench.pass_time(5)
    bench.daemon.cluster.observe({})
    assert last_beat(bench.places) is None


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_journal_that_vanishes_is_noticed_at_the_next_look_and_nothing_is_done(
    bench: Bench, caplog: pytest.LogCaptureFixture, suffix: str, how: str
) -> None:
    crowd(bench)
    before, ticks = bench.acts(), bench.journal.tick_numbers()
    place = bench.places.journal.with_name(f"journal.db{suffix}")
    place.rename(place.with_name("elsewhere"))
    if how == "replaced":
        place.write_bytes(b"")
    bench.run(130)
    assert bench.acts() == before
    assert len(lines(caplog, "was removed or replaced")) == 1, "said once"
    assert bench.daemon.rescued is not None
    assert str(bench.daemon.rescued) in lines(caplog, "was removed or replaced")[0]
    with pytest.raises(JournalGone):
        bench.daemon.may_act()
    with open_reader(bench.daemon.rescued) as saved:
        assert saved.tick_numbers() == ticks
        assert saved.marks() == bench.journal.marks()
    place.unlink(missing_ok=True)
    place.with_name("elsewhere").rename(place)
    bench.run(70)
    assert len(bench.acts()) > len(before), "put back, it goes on"


def test_what_was_saved_of_a_removed_journal_is_one_to_start_with(bench: Bench) -> None:
    crowd(bench)
    had = bench.daemon.standing.ledger.tenants.had.tolist()
    bench.places.journal.unlink()
    bench.daemon.once()
    assert bench.daemon.rescued is not None
    bench.journal.close()
    for suffix in ("-wal", "-shm"):
        bench.places.journal.with_name(f"journal.db{suffix}").unlink(missing_ok=True)
    bench.daemon.rescued.rename(bench.places.journal)
    bench.journal = open_journal(bench.places.journal)
    standing = bench.journal.latest()
    assert standing is not None
    assert standing.ledger.tenants.had.tolist() == had


def test_held_jobs_are_freed_by_the_daemon_when_nobody_can_see_whether_it_lives(holding: Bench) -> None:
    crowd(holding)
    for place in list(holding.places.directory.iterdir()):
        place.unlink()
    holding.places.directory.rmdir()
    for tenant in ("a", "b"):
        holding.world.submit(8, tenant, hold=True)
    holding.run(30)
    assert [record.held for record in holding.world.living()].count("JobHeldUser") == 2
    holding.run(60)
    assert not any(record.held for record in holding.world.living())


def test_a_shadow_frees_nobody_however_long_it_is_blind(tmp_path: Path) -> None:
    """It leaves no heartbeat either, and what waits is held by the daemon that acts."""
    with bench_in(tmp_path / "s", gate="hold", dry_run=True) as shadow:
        for tenant in ("a", "b"):
            shadow.world.submit(8, tenant, hold=True)
        shadow.run(20)
        for place in list(shadow.places.directory.iterdir()):
            place.unlink()
        shadow.run(1000)
        assert shadow.daemon.blind
        assert [record.held for record in shadow.world.living()] == ["JobHeldUser"] * 2


# -- beside the ticks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["prune", "publish", "history", "history text", "bug"])
def test_what_fails_beside_the_ticks_never_ends_the_daemon(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    def fails(problem: Exception) -> Callable[..., None]:
        def act(*_: object, **__: object) -> None:
            raise problem

        return act

    crowd(bench)
    if what == "prune":
        monkeypatch.setattr(bench.journal, "forget", fails(StoreBusy("the disk is full")))
    elif what == "publish":
        monkeypatch.setattr(bench.daemon.publisher, "publish", fails(StoreError("no folder")))
    elif what == "bug":
        monkeypatch.setattr(bench.daemon.publisher, "publish_health", fails(ValueError("a bug")))
    else:
        bench.books.says = fails(SlurmTextError("sacct: odd") if what == "history text" else OSError("odd"))  # type: ignore[assignment]
    bench.daemon.pruned_at = bench.daemon.accounting._asked = 0.0
    ticks = bench.daemon.standing.tick
    bench.run(100)
    assert bench.daemon.standing.tick > ticks + 5
    assert [record for record in caplog.records if record.levelno >= logging.WARNING]
    if what in ("prune", "publish"):
        assert len(lines(caplog, "failed: ")) == 1, "said once"


def test_a_fenced_daemon_ends(bench: Bench) -> None:
    crowd(bench)
    fence(bench.places.journal, by="the dead-man")
    with pytest.raises(NotTheOwner):
        bench.run(20)


def test_a_daemon_that_gives_way_to_another_leaves_its_dead_man_nothing_to_free(bench: Bench) -> None:
    class Rival:
        def hold(self, now: float) -> None:
            raise AnotherDaemon("stop that one first")

    crowd(bench)
    bench.run(20)
    assert bench.places.heartbeat.exists()
    bench.daemon.notice = Rival()  # type: ignore[assignment]
    with pytest.raises(AnotherDaemon):
        bench.daemon.once()
    assert not bench.places.heartbeat.exists()


def test_a_daemon_that_is_fenced_in_the_middle_of_a_tick_neither_acts_nor_seems_to_live(bench: Bench) -> None:
    crowd(bench)
    left = bench.places.heartbeat.read_bytes()
    fence(bench.places.journal, by="the dead-man")
    bench.pass_time(5)
    with pytest.raises(NotTheOwner):
        bench.daemon.may_act()
    assert bench.places.heartbeat.read_bytes() == left


# -- the profiler ---------------------------------------------------------------------------------------------


def test_a_fault_of_the_profiler_is_said_once_and_jobs_start_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ArithmeticError("no turn")

    with monkeypatch.context() as patched:
        patched.setattr("slurm_fair.tick.decision.with_turns", broken)
        crowd(bench)
        bench.run(40)
    said = "the profiler raised ArithmeticError('no turn'): this look goes without its turns"
    assert phases(bench) == {LeasePhase.RUNNING}
    (line,) = lines(caplog, "the profiler raised")
    assert line.endswith(f": {said}")
    *_, last = bench.journal.ticks()
    assert (last.plan.note, last.plan.fault) == ("", line)
    assert draw(last, bench.daemon.standing).note == line
    assert bench.daemon.tally.tally.failed == 0, "the plans are the policy's own"
    again, _ = replayed(bench.journal, last.number, LedgerSettings())
    assert same_plan(again, last.plan)
    bench.daemon.once()
    *_, last = bench.journal.ticks()
    assert last.plan.fault == ""
