"""Jobs that come while no daemon runs and carry a gate of ours: the dead-man's timer frees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.deadman import watch
from slurm_fair.errors import SlurmUnreachable
from slurm_fair.host.state_folder import Places, all_free_until, leave_all_free, not_yet_free
from slurm_fair.slurm.notice import Notice
from tests.support.daemon_bench import Bench
from tests.support.deadman_hours import BOTH_GATES, Hours, kept_back, sites
from tests.support.fake_commands import FakeCommands

LIMIT = 45.0  # of a heartbeat, with leases of a minute
site = pytest.fixture(sites)


@pytest.fixture(autouse=True)
def notices(monkeypatch: pytest.MonkeyPatch) -> list[Notice]:
    """The notices that stand in the queue."""
    found: list[Notice] = []
    monkeypatch.setattr("slurm_fair.deadman.read_notices", lambda commands: tuple(found))
    return found


def look(hours: Hours) -> int:
    """One look of the timer; the number of jobs freed."""
    return watch(hours.bench.config, hours.bench.places, hours, once=True)


def gone(site: Callable[[str], Hours], gate: str) -> Hours:
    """A daemon died, its jobs were freed, and time passed."""
    hours = site(gate)
    hours.bench.pass_time(LIMIT + 1)
    hours.lives = False
    hours.bench.journal.close()
    assert look(hours) == 2
    hours.bench.pass_time(5)
    return hours


def come(bench: Bench, gate: str) -> int:
    """A job that its template gated."""
    held = gate == "hold"
    return bench.world.submit(8, "b", hold=held, gate_seconds=0.0 if held else 600.0)


@BOTH_GATES
def test_a_gate_that_comes_while_no_daemon_runs_is_opened_at_the_next_look(
    site: Callable[[str], Hours], gate: str
) -> None:
    hours = gone(site, gate)
    assert look(hours) == 0
    for _ in range(2):
        come(hours.bench, gate)
        hours.bench.pass_time(5)
        assert kept_back(hours.bench) == 1
        assert look(hours) == 1
        assert kept_back(hours.bench) == 0
        hours.bench.pass_time(5)
    assert look(hours) == 0


def test_a_hold_that_a_freed_job_gets_is_somebodys_own(site: Callable[[str], Hours]) -> None:
    hours = gone(site, "hold")
    late = come(hours.bench, "hold")
    hours.bench.pass_time(5)
    assert look(hours) == 1
    hours.bench.world.hold(late)
    record = hours.bench.world.record(late)
    record.scheduled, record.eligible = record.submit, 0.0  # Slurm never came to it in its long queue
    hours.bench.pass_time(5)
    assert look(hours) == 0
    assert record.held


def test_a_look_that_is_killed_is_made_again(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = gone(site, "hold")
    come(hours.bench, "hold")
    hours.bench.pass_time(5)

    def killed(*given: object, **more: object) -> None:
        raise SystemExit(143)

    with monkeypatch.context() as patch:
        patch.setattr("slurm_fair.deadman.liberate", killed)
        with pytest.raises(SystemExit):
            look(hours)
    hours.bench.pass_time(3600)
    assert look(hours) == 1
    assert kept_back(hours.bench) == 0


@BOTH_GATES
def test_a_begin_time_and_a_hold_of_its_owners_own_stay(site: Callable[[str], Hours], gate: str) -> None:
    hours = gone(site, gate)
    world = hours.bench.world
    later, held = world.submit(8, "b", begin=hours.now() + 900), world.submit(8, "b")
    world.hold(held)
    hours.bench.pass_time(5)
    assert look(hours) == 0
    assert kept_back(hours.bench) == 2
    assert world.record(later).eligible > hours.now()


def test_while_a_daemon_has_the_journal_nobody_is_freed(site: Callable[[str], Hours]) -> None:
    hours = gone(site, "hold")
    come(hours.bench, "hold")
    hours.bench.restart()
    assert look(hours) == 0
    assert kept_back(hours.bench) == 1


def test_what_waits_for_a_daemon_of_another_storage_is_left_to_it(
    site: Callable[[str], Hours], notices: list[Notice]
) -> None:
    hours = gone(site, "hold")
    come(hours.bench, "hold")
    notices.append(Notice(7, "f" * 16, hours.now() + 60, "there", "1", "/elsewhere"))
    assert look(hours) == 0
    hours.bench.pass_time(61)  # it is gone too
    assert look(hours) == 1


def test_a_slurm_that_does_not_answer_is_asked_at_the_next_look(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = gone(site, "hold")
    come(hours.bench, "hold")
    hours.bench.pass_time(5)
    hours.bench.commands.trouble.dead = True
    assert look(hours) == 0
    hours.bench.commands.trouble.dead = False

    def silent(commands: object) -> tuple[Notice, ...]:
        raise SlurmUnreachable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("slurm_fair.deadman.read_notices", silent)
        assert look(hours) == 0
    assert look(hours) == 1


def test_one_that_cannot_be_freed_has_nobody_else_looked_at_again(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = gone(site, "hold")
    world, places = hours.bench.world, hours.bench.places
    stuck, late = come(hours.bench, "hold"), come(hours.bench, "hold")
    does = FakeCommands._line

    def refuses(commands: FakeCommands, line: str) -> list[str]:
        return [f"Access/permission denied for job {stuck}"] if str(stuck) in line else does(commands, line)

    hours.bench.pass_time(5)
    with monkeypatch.context() as patch:
        patch.setattr(FakeCommands, "_line", refuses)
        assert look(hours) == 1
        assert not_yet_free(places) == (stuck,)
        world.hold(late)
        record = world.record(late)
        record.scheduled, record.eligible = record.submit, 0.0  # Slurm never came to it in its long queue
        for _ in range(2):
            hours.bench.pass_time(60)
            assert look(hours) == 0
            assert (record.held != "", not_yet_free(places)) == (True, (stuck,))
    come(hours.bench, "hold")
    hours.bench.pass_time(60)
    assert look(hours) == 2
    assert (record.held != "", not_yet_free(places), kept_back(hours.bench)) == (True, (), 1)


def test_without_word_that_all_was_freed_nobody_looks_for_jobs(site: Callable[[str], Hours]) -> None:
    """The daemon ended because another one acts here: what that one keeps back is not ours to free."""
    hours = site("hold")
    hours.lives = False
    hours.bench.journal.close()
    hours.bench.places.heartbeat.unlink()
    come(hours.bench, "hold")
    hours.bench.pass_time(5)
    assert all_free_until(hours.bench.places) is None
    assert look(hours) == 0
    assert kept_back(hours.bench) == 3


def test_where_no_word_can_be_left_nobody_is_freed_twice(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = gone(site, "hold")
    come(hours.bench, "hold")
    monkeypatch.setattr("slurm_fair.deadman.leave_all_free", lambda places, until, but: False)
    assert look(hours) == 0
    assert kept_back(hours.bench) == 1


def test_a_daemon_that_begins_takes_that_word_away(site: Callable[[str], Hours]) -> None:
    hours = gone(site, "begin")
    assert all_free_until(hours.bench.places) is not None
    daemon = hours.bench.restart()
    daemon.stopping = True
    daemon.run()
    assert all_free_until(hours.bench.places) is None


def test_the_word_is_left_anew_where_root_left_the_one_before(tmp_path: Path) -> None:
    places = Places(tmp_path)
    assert leave_all_free(places, 5.0)
    before = places.all_free.stat().st_ino
    places.all_free.chmod(0)
    assert leave_all_free(places, 7.0)
    assert (all_free_until(places), places.all_free.stat().st_ino != before) == (7.0, True)
    assert not leave_all_free(Places(tmp_path / "absent"), 5.0)


def test_the_word_names_what_is_left_and_what_is_no_record_is_none(tmp_path: Path) -> None:
    places = Places(tmp_path)
    assert not_yet_free(places) == ()
    assert leave_all_free(places, 5.0, [7, 12])
    assert (all_free_until(places), not_yet_free(places)) == (5.0, (7, 12))
    places.all_free.write_bytes(b"3\n-4 x 99999999999\xff\n\xb2 8")
    assert not_yet_free(places) == (3, 8)
