"""The daemon over a fake Slurm: accounting, an admin's switches, a new configuration, shadow mode."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.daemon.loop import Daemon
from slurm_fair.dry_run import DryRun
from slurm_fair.errors import ConfigError, Paused, SlurmTextError
from slurm_fair.host.state_folder import Pause, leave_pause
from slurm_fair.ledger import settle
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import Blind
from slurm_fair.model.ids import pack
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.notice import OurNotice
from tests.support.daemon_bench import Bench, bench_in, changed, crowd, lines, run_table


@pytest.fixture(params=["begin", "hold"])
def gate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
    now = bench.now
    record = daemon.once().record
    assert record is not None
    filled = record.amended
    assert filled is not None
    assert filled.time == now - 2.0
    had = dict(zip(filled.tenants.names, filled.tenants.had.tolist(), strict=True))
    before = dict(zip(ledger.tenants.names, ledger.tenants.had.tolist(), strict=True))
    assert had["a"] - before["a"] == pytest.approx(8 * 500.0)


def test_what_happened_without_it_is_told_at_its_first_look(bench: Bench) -> None:
    crowd(bench)
    bench.run(20)
    ledger, job = bench.daemon.standing.ledger, bench.world.living()[0]
    gone, row = ledger.time, ledger.jobs.key.tolist().index(pack(job.number))
    came, ran = ledger.jobs.submit.item(row), ledger.jobs.run_start.item(row)
    bench.pass_time(1000)
    bench.world.finish(job.number)
    daemon = bench.restart()
    runs = run_table((job.number, "a", 8, ran, gone + 500.0), (9999, "a", 4, gone + 10, gone + 20))
    bench.books.says = lambda start, end: replace(runs, submit=np.array([came, gone + 9.0]))
    daemon.catch_up()
    for _ in range(2):
        daemon.once()
    told = [event for event in daemon.journal.events(gone) if event.key in (pack(job.number), pack(9999))]
    first = [(event.kind, event.time - gone) for event in told if event.key == pack(job.number)]
    other = [(event.kind, event.time - gone) for event in told if event.key == pack(9999)]
    assert first == [("finished", 500.0)]
    assert other == [("submitted", 9.0), ("started", 10.0), ("finished", 20.0)]
    assert (told[-1].detail["user"], told[2].detail["had"], told[2].detail["ran"]) == ("u", 40.0, 10.0)


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
    record = daemon.once().record
    assert record is not None
    assert record.amended is None
    assert before.time < daemon.standing.ledger.time == bench.now


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
    bench.daemon.settle_accounts()
    assert bench.daemon.standing.ledger.tenants.had.tolist() == expected.tenants.had.tolist()
    assert bench.daemon.standing.amended


def test_accounts_that_users_made_up_become_no_tenants_by_what_accounting_says(bench: Bench) -> None:
    crowd(bench)
    names, now = bench.daemon.standing.ledger.tenants.names, bench.now
    theirs = [(900 + number, f"made{number}", 8, now - 9.0, now - 5.0) for number in range(50)]
    for honest in ((), ((1, "a", 8, now - 9.0, now - 5.0),)):
        bench.books.says = lambda since, until, honest=honest: run_table(*honest, *theirs)  # type: ignore[misc]
        bench.daemon.settle_accounts()
        assert bench.daemon.standing.ledger.tenants.names == names
    both = run_table((1, "b", 2, 1.0, 2.0), (2, "a", 3, 1.0, 2.0), (3, "c", 4, 1.0, 2.0)).of_tenants(
        ["a", "c"]
    )
    assert (both.tenants, both.gpus.tolist(), both.tenant.tolist()) == (("a", "c"), [3, 4], [0, 1])


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


def test_fail_open_frees_everything_forgets_what_was_freed_and_ends_the_daemon(
    tmp_path: Path, gate: str
) -> None:
    with bench_in(tmp_path / "s", gate=gate) as bench:
        crowd(bench)
        assert bench.journal.marks()
        bench.places.fail_open.touch()
        bench.daemon.run()
        running = [r.key for r in bench.world.living() if r.state == "RUNNING"]
        left = bench.journal.marks()
        assert [mark.key for mark in left] == running, "what runs keeps our node list, and is known by it"
        assert all(mark.pinned and not mark.gate_until for mark in left)
        assert not bench.places.heartbeat.exists()
        assert not bench.places.fail_open.exists()
        assert all(not r.held and r.eligible <= bench.now + 2 for r in bench.world.living())


def test_fail_open_keeps_the_marks_of_jobs_that_it_could_not_free(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crowd(bench)
    monkeypatch.setattr("slurm_fair.daemon.freeing._TRIES", 0)
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
    new = changed(
        bench.config,
        lease={"term": 120.0},
        slurm={"requeue_delay": 7.0, "timeout": 33.0},
        log={"level": "debug"},
    )
    bench.daemon.reload, bench.daemon.reloaded = lambda: new, lambda config: told.append(config.log.level)
    bench.daemon.reloading = True
    bench.daemon.reload_config()
    assert not bench.daemon.reloading
    assert bench.daemon.rules.terms.term == 120.0
    assert bench.daemon.adapter._actuator.ours.requeue_delay == 7.0  # type: ignore[union-attr]
    assert bench.commands.timeout_seconds == 33.0
    assert told == ["debug"]


def test_a_new_lease_and_a_new_folder_reach_the_notice_and_the_commands(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "squeue"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    daemon, commands = bench.daemon, Commands(bin_dir=tmp_path / "old")
    daemon.notice = OurNotice(bench.commands, bench.places.directory, 60.0, {7})
    daemon.notice._asked = bench.now
    daemon.commands = commands
    assert commands.path("squeue") == str(tmp_path / "old" / "squeue")
    slurm = {"bin_dir": str(tmp_path / "new"), "notice": True, "client_timeout": 4}
    new = changed(bench.config, lease={"term": 30.0}, slurm=slurm, storage={"max_mb": 9.0})
    daemon.reload = lambda: new
    for _ in range(2):
        daemon.reload_config()
    assert (daemon.notice.lease_seconds, daemon.notice.jobs) == (30.0, {7})
    assert daemon.notice._asked < bench.now - 3600, "it is written anew at the next look"
    assert commands.path("squeue") == str(tmp_path / "new" / "squeue")
    assert lines(caplog, "at the next start") == [
        "[slurm] client_timeout, [slurm] notice: a change takes effect at the next start"
    ]


def test_a_setting_that_is_put_back_to_what_is_in_force_waits_for_no_start(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = bench.config, changed(bench.config, storage={"dir": "/elsewhere"})
    told = []
    for config in (other, other, first):
        caplog.clear()
        bench.daemon.reload = lambda config=config: config
        bench.daemon.reload_config()
        told.append(len(lines(caplog, "at the next start")))
    assert told == [1, 0, 0]


def test_a_scope_without_nodes_is_told_with_its_partitions(bench: Bench) -> None:
    bench.run(10)
    bench.daemon.reload = lambda: changed(bench.config, scope={"partitions": ("nosuch",)})
    bench.daemon.reload_config()
    bench.run(10)
    assert bench.daemon.blind.startswith("no node with GPUs in [scope] partitions nosuch: ")


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


def test_the_daemon_that_is_built_as_a_shadow_acts_on_nothing(bench: Bench) -> None:
    for dry_run in (True, False):
        built = Daemon.build(bench.daemon.config, bench.places, WallClock(), bench.journal, dry_run)
        assert built.knowing is not None
        assert (isinstance(built.knowing.cluster, DryRun), built.cluster.acts) == (dry_run, not dry_run)
        assert (built.notice is None) >= dry_run


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
