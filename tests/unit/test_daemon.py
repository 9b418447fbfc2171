"""The daemon's loop over a fake Slurm: when it looks, what it waits out, what it leaves alone."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.daemon import Paused
from slurm_fair.errors import ConfigError, JournalGone, NotTheOwner, SlurmTextError, StoreBusy, StoreError
from slurm_fair.ledger import settle
from slurm_fair.model import Blind, LeasePhase
from slurm_fair.places import Pause, last_beat, leave_pause
from slurm_fair.store import fence, open_journal, open_reader
from tests.daemon_bench import Bench, bench_in, changed, run_table


@pytest.fixture(params=["begin", "hold"])
def gate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path / "s") as made:
        yield made


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path / "s", gate="hold") as made:
        yield made


def crowd(bench: Bench) -> None:
    """A job on every GPU and two that wait behind gates."""
    held = bench.config.slurm.gate == "hold"
    for tenant in ("a", "b", "b"):
        bench.world.submit(8, tenant, hold=held, gate_seconds=0.0 if held else 600.0)
    bench.run(20)


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


def lines(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if word in record.getMessage()]


# -- when it looks --------------------------------------------------------------------------------------------


def test_it_looks_at_the_next_interval_while_nothing_changes(bench: Bench) -> None:
    bench.daemon.once()
    assert bench.daemon.next_look(bench.now) == bench.now + 10.0


def test_it_looks_when_the_next_lease_ends(bench: Bench) -> None:
    crowd(bench)
    assert phases(bench) == {LeasePhase.RUNNING}
    (end,) = bench.daemon.standing.leases.end.tolist()
    bench.pass_time(end - bench.now - 3.0)
    assert bench.daemon.next_look(bench.now) == end


@pytest.mark.parametrize(("last_tick", "wait"), [(0.0, 0.12), (0.01, 0.12), (1.0, 2.0), (30.0, 10.0)])
def test_while_jobs_change_places_it_looks_often_but_never_without_a_breath(
    bench: Bench, last_tick: float, wait: float
) -> None:
    crowd(bench)
    bench.run(60 - bench.now % 60 + 0.5)
    assert LeasePhase.REVOKING in phases(bench)
    bench.daemon.last_tick_seconds = last_tick
    bench.daemon.standing = bench.daemon.standing._replace(
        leases=bench.daemon.standing.leases.with_columns(end=bench.daemon.standing.leases.end + 1e6)
    )
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
    assert [record.held for record in holding.world.living()].count("JobHeldUser") == 2
    for place in list(holding.places.directory.iterdir()):
        place.unlink()
    holding.places.directory.rmdir()
    holding.run(30)
    assert [record.held for record in holding.world.living()].count("JobHeldUser") == 2
    holding.run(60)
    assert not any(record.held for record in holding.world.living())


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
        monkeypatch.setattr(bench.daemon.publisher, "publish_board", fails(ValueError("a bug")))
    else:
        bench.books.says = fails(SlurmTextError("sacct: odd") if what == "history text" else OSError("odd"))  # type: ignore[assignment]
    bench.daemon.pruned_at = bench.daemon.settled_at = 0.0
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


# -- accounting -----------------------------------------------------------------------------------------------


def test_the_time_without_it_is_charged_from_accounting_up_to_two_seconds_ago(bench: Bench) -> None:
    crowd(bench)
    bench.run(20)
    ledger = bench.daemon.standing.ledger
    gone = ledger.time
    job = bench.world.living()[0].number
    bench.books.asked.clear()
    bench.pass_time(1000)
    daemon = bench.restart()
    bench.books.says = lambda start, end: run_table((job, "a", 8, gone, gone + 500.0))
    daemon.catch_up()
    assert bench.books.asked == [(gone, bench.now, ())]
    filled = daemon.standing.ledger
    assert filled.time == bench.now - 2.0
    had = dict(zip(filled.tenants.names, filled.tenants.had.tolist(), strict=True))
    before = dict(zip(ledger.tenants.names, ledger.tenants.had.tolist(), strict=True))
    assert had["a"] - before["a"] == pytest.approx(8 * 500.0)


@pytest.mark.parametrize("broken", ["blind", "raises"])
def test_without_accounting_the_time_without_it_is_counted_from_what_runs(bench: Bench, broken: str) -> None:
    def says(start: float, end: float) -> Blind:
        if broken == "raises":
            raise SlurmTextError("sacct: a row has 3 columns")
        return Blind(end, "no slurmdbd")

    crowd(bench)
    bench.pass_time(1000)
    daemon = bench.restart()
    bench.books.says = says
    before = daemon.standing.ledger
    daemon.catch_up()
    assert daemon.standing.ledger is before


def test_a_short_stop_needs_no_accounting(bench: Bench) -> None:
    crowd(bench)
    bench.books.asked.clear()
    bench.pass_time(5)
    daemon = bench.restart()
    daemon.catch_up()
    assert bench.books.asked == []


def test_it_settles_all_that_the_ledger_remembers_once_a_minute(bench: Bench) -> None:
    crowd(bench)
    bench.books.asked.clear()
    bench.run(180)
    assert len(bench.books.asked) in (2, 3)
    memory = bench.daemon.rules.ledger.closed_memory_seconds
    assert memory > 3600
    assert {round(end - start) for start, end, _ in bench.books.asked} == {round(memory)}


def test_what_accounting_says_of_a_run_is_charged(bench: Bench) -> None:
    crowd(bench)
    key = bench.world.living()[0].number
    start = bench.world.living()[0].start
    bench.world.records[key].state, bench.world.records[key].end = "COMPLETED", bench.now
    bench.run(20)
    ledger = bench.daemon.standing.ledger
    runs = run_table((key, "a", 8, start, start + 5.0))
    expected, moved = settle(ledger, runs, ledger.time)
    assert moved > 1
    bench.books.says = lambda since, until: runs
    bench.daemon.settle_accounts(bench.now)
    assert bench.daemon.standing.ledger.tenants.had.tolist() == expected.tenants.had.tolist()
    assert bench.daemon.standing.amended


# -- switches -------------------------------------------------------------------------------------------------


def test_a_pause_stops_every_act_and_is_said_with_who_when_and_why(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    crowd(bench)
    before = bench.acts()
    caplog.clear()
    leave_pause(bench.places, Pause("the storage is upgraded", "ann", 1_790_000_000.0))
    bench.run(120)
    assert bench.acts() == before
    (said,) = lines(caplog, "paused by")
    assert "ann" in said
    assert "the storage is upgraded" in said
    assert not [r for r in caplog.records if r.levelno > logging.DEBUG and "dry run" in r.getMessage()]
    bench.places.paused.unlink()
    bench.run(60)
    assert len(lines(caplog, "resumed after")) == 1
    assert len(bench.acts()) > len(before)


def test_a_pause_in_the_middle_of_a_tick_stops_the_rest_of_it(bench: Bench) -> None:
    crowd(bench)
    leave_pause(bench.places, Pause())
    with pytest.raises(Paused):
        bench.daemon.may_act()
    bench.places.paused.unlink()
    bench.daemon.may_act()
    bench.places.fail_open.touch()
    with pytest.raises(Paused):
        bench.daemon.may_act()


def test_fail_open_frees_everything_leaves_no_mark_and_ends_the_daemon(tmp_path: Path, gate: str) -> None:
    with bench_in(tmp_path / "s", gate=gate) as bench:
        crowd(bench)
        assert bench.journal.marks()
        bench.places.fail_open.touch()
        bench.daemon.run()
        assert bench.journal.marks() == ()
        assert not bench.places.heartbeat.exists()
        assert not bench.places.fail_open.exists()
        assert all(not r.held and r.eligible <= bench.now + 2 for r in bench.world.living())


def test_fail_open_keeps_the_marks_of_jobs_that_it_could_not_free(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crowd(bench)
    monkeypatch.setattr("slurm_fair.daemon._FREE_TRIES", 0)
    waiting = [record for record in bench.world.living() if record.state == "PENDING"]
    assert waiting
    monkeypatch.setattr(bench.commands, "_update", lambda words: ["slurm_update error: Access denied"])
    marks = {mark.key for mark in bench.journal.marks()}
    bench.daemon.fail_open()
    assert bench.daemon.stopping
    assert {mark.key for mark in bench.journal.marks()} & marks, "who comes next knows what is still ours"
    assert bench.places.heartbeat.exists(), "and the dead-man goes on with it"
    assert lines(caplog, "could not free")


def test_fail_open_waits_for_a_slurm_that_does_not_answer(bench: Bench) -> None:
    crowd(bench)
    bench.commands.trouble.dead = True
    bench.places.fail_open.touch()
    assert not bench.daemon._fails_open()
    assert bench.places.fail_open.exists()
    bench.commands.trouble.dead = False
    assert bench.daemon._fails_open()
    assert not bench.places.fail_open.exists()


# -- the configuration ----------------------------------------------------------------------------------------


def test_a_new_configuration_is_taken_over_and_told(bench: Bench) -> None:
    told: list[str] = []
    new = changed(bench.config, lease={"term": 120.0}, slurm={"gate": "hold"}, log={"level": "debug"})
    bench.daemon.reload, bench.daemon.reloaded = lambda: new, lambda config: told.append(config.log.level)
    bench.daemon.reloading = True
    bench.daemon.reload_config()
    assert not bench.daemon.reloading
    assert bench.daemon.rules.terms.term == 120.0
    assert bench.daemon.cluster._actuator.gate == "hold"  # type: ignore[attr-defined]
    assert told == ["debug"]


def test_a_bad_configuration_changes_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def bad() -> None:
        raise ConfigError("fair.toml: unknown section [leese]")

    before = bench.daemon.config, bench.daemon.rules
    for reload in (bad, lambda: replace(bench.config, policy=replace(bench.config.policy, name="nosuch"))):
        bench.daemon.reload = reload  # type: ignore[assignment]
        bench.daemon.reload_config()
        assert (bench.daemon.config, bench.daemon.rules) == before
    assert len(lines(caplog, "the old configuration stays")) == 2


# -- shadow mode ----------------------------------------------------------------------------------------------


def test_a_shadow_sees_plans_and_records_and_never_acts_marks_or_beats(tmp_path: Path, gate: str) -> None:
    with bench_in(tmp_path / "s", gate=gate, dry_run=True) as bench:
        crowd(bench)
        jobs = [(r.number, r.state, r.eligible, r.held, r.wanted) for r in bench.world.living()]
        bench.run(200)
        assert bench.daemon.standing.tick > 10
        assert bench.acts() == []
        assert bench.journal.marks() == ()
        assert bench.journal.intents() == ()
        assert not bench.places.heartbeat.exists()
        after = [(r.number, r.state, r.eligible, r.held, r.wanted) for r in bench.world.living()]
        assert after == jobs
        planned = [outcome for tick in bench.journal.ticks() for outcome in tick.outcomes]
        assert planned, "it says what it would have done"
        assert {outcome.detail for outcome in planned} == {"dry run"}
