"""The dead-man over a fake Slurm and virtual time: whom it frees, when, and when it keeps its hands off."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from slurm_fair.deadman import Silence, freeing, overdue, silence_of, take_over, watch
from slurm_fair.errors import NotTheOwner
from slurm_fair.host.state_folder import Heartbeat, Pause, Places, beat, being_freed, last_beat, leave_pause
from slurm_fair.model import Blind
from slurm_fair.store import epoch_of
from tests.support.daemon_bench import Bench
from tests.support.deadman_hours import BOTH_GATES, Hours, kept_back, sites

LIMIT = 45.0  # of a heartbeat, with leases of a minute
site = pytest.fixture(sites)


# -- what the heartbeat says ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "unseen", "gate", "blind", "paused", "said"),
    [
        (0, 0, "begin", "", 0, Silence.NONE),
        (LIMIT, 0, "begin", "", 0, Silence.NONE),
        (LIMIT + 1, 0, "begin", "", 0, Silence.DEAD),
        (LIMIT + 1, 0, "begin", "", LIMIT + 1, Silence.DEAD),
        (1, 0, "hold", "", LIMIT, Silence.NONE),
        (1, 0, "hold", "", LIMIT + 1, Silence.PAUSED),
        (1, 0, "begin", "", LIMIT + 1, Silence.PAUSED),
        (1, LIMIT + 1, "hold", "no answer", 0, Silence.BLIND),
        (1, LIMIT, "hold", "no answer", 0, Silence.NONE),
        (1, LIMIT + 1, "hold", "", 0, Silence.NONE),
        (1, 1e6, "begin", "no answer", 0, Silence.NONE),
        (LIMIT + 1, 1e6, "hold", "no answer", 0, Silence.DEAD),
    ],
)
def test_a_heartbeat_says_whether_its_daemon_lives_and_sees(
    site: Callable[[str], Hours],
    age: float,
    unseen: float,
    gate: str,
    blind: str,
    paused: bool,
    said: Silence,
) -> None:
    places = site("begin").bench.places
    beat(places, Heartbeat(1, 1e6 - age, LIMIT, gate, 1e6 - unseen, blind))
    if paused:
        leave_pause(places, Pause(time=1e6 - paused))
    assert silence_of(places, 1e6) is said
    assert overdue(places, 1e6) == (said is Silence.DEAD)


def test_nobody_is_missed_who_never_lived(site: Callable[[str], Hours]) -> None:
    hours = site("begin")
    hours.bench.places.heartbeat.unlink()
    hours.lives = False
    assert silence_of(hours.bench.places, 1e9) is Silence.GONE
    assert hours.watched(100) == 0


# -- a daemon that is gone ------------------------------------------------------------------------------------


@BOTH_GATES
def test_a_daemon_that_lives_is_only_watched(site: Callable[[str], Hours], gate: str) -> None:
    hours = site(gate)
    assert hours.watched(300) is None
    assert kept_back(hours.bench) == 2
    assert epoch_of(hours.bench.places.journal) == 1


@BOTH_GATES
def test_a_silent_daemon_is_fenced_and_its_jobs_are_freed_within_a_lease(
    site: Callable[[str], Hours], gate: str
) -> None:
    hours = site(gate)
    hours.lives = False
    died = hours.now()
    assert hours.watched(1000) == 2
    assert hours.now() - died < 60
    assert kept_back(hours.bench) == 0
    assert not hours.bench.places.heartbeat.exists()
    with pytest.raises(NotTheOwner, match="the dead-man has opened"):
        hours.bench.daemon.once()
    assert not hours.bench.places.heartbeat.exists(), "a fenced daemon that wakes leaves no heartbeat"


def test_a_wish_to_fail_open_is_fulfilled_when_all_is_free(site: Callable[[str], Hours]) -> None:
    """The daemon ended with a job left: the next one, whenever it comes, has no such wish."""
    hours = site("begin")
    hours.lives = False
    hours.bench.places.fail_open.touch()
    assert hours.watched(1000) == 2
    assert not hours.bench.places.fail_open.exists()
    assert not hours.bench.places.heartbeat.exists()


@BOTH_GATES
def test_a_shadow_that_follows_a_silent_daemon_goes_on_while_its_jobs_are_freed(
    site: Callable[[str], Hours], gate: str
) -> None:
    """An admin stops the daemon and watches a shadow; the daemon left jobs behind gates, and a heartbeat."""
    hours = site(gate)
    bench = hours.bench
    bench.restart(dry_run=True)
    assert hours.watched(1000) == 2
    assert kept_back(bench) == 0
    ticks = bench.daemon.standing.tick
    bench.run(60)
    assert bench.daemon.standing.tick > ticks
    assert kept_back(bench) == 0


@BOTH_GATES
def test_a_lost_journal_leaves_the_stamps(site: Callable[[str], Hours], gate: str) -> None:
    hours = site(gate)
    hours.lives = False
    if gate == "begin":  # requeued since, so that its gate is not the one that it was submitted with
        requeued = hours.bench.world.living()[-1]
        requeued.restarts, requeued.eligible = 1, hours.now() + 900
    else:
        _come_unseen(hours.bench)
    for suffix in ("", "-wal", "-shm"):
        hours.bench.places.journal.with_name(f"journal.db{suffix}").unlink()
    assert hours.watched(1000) == 2
    assert not any(record.held for record in hours.bench.world.living())
    if gate == "begin":
        assert kept_back(hours.bench) == 0
    else:  # the begin times in the place of holds that were seen pass by themselves
        hours.bench.world.clock.sleep_until(hours.now() + 2 * hours.bench.config.lease.term)
        assert kept_back(hours.bench) == 0


def _come_unseen(bench: Bench) -> None:
    """Two jobs that are held since their submission, which no daemon has seen."""
    for tenant in ("a", "b"):
        bench.world.submit(8, tenant, hold=True)


def test_a_damaged_journal_is_not_believed(
    site: Callable[[str], Hours], caplog: pytest.LogCaptureFixture
) -> None:
    hours = site("hold")
    bench = hours.bench
    hours.lives = False
    bench.journal.append = None  # type: ignore[method-assign, assignment]  # nothing more is written
    foreign = bench.world.submit(8, "c", stamped=False, hold=False)
    bench.journal.close()
    _come_unseen(bench)
    damage_an_index(bench.places.journal)
    assert hours.watched(1000) == 2
    assert "jobs are known by their stamps only" in caplog.text
    assert bench.world.record(foreign).held == ""


def damage_an_index(path: Path) -> None:
    """A journal whose rows can all be read, and whose structure is wrong."""
    with sqlite3.connect(path) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_time'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
        db.execute("PRAGMA journal_mode = DELETE")
    text = bytearray(path.read_bytes())
    at = (root - 1) * size
    text[at + 8 : at + size] = bytes(size - 8)
    path.write_bytes(text)


def test_slurm_that_does_not_answer_is_asked_until_it_does(
    site: Callable[[str], Hours], caplog: pytest.LogCaptureFixture
) -> None:
    hours = site("hold")
    hours.lives = False
    hours.bench.commands.trouble.dead = True
    assert hours.watched(60) is None
    hours.bench.commands.trouble.dead = False
    assert hours.watched(200) == 2
    assert caplog.text.count("cannot free jobs yet") <= 2, "said once, not at each try"


def test_a_new_daemon_that_lives_before_all_is_free_keeps_its_jobs(site: Callable[[str], Hours]) -> None:
    hours = site("hold")
    bench = hours.bench
    bench.pass_time(60)
    bench.commands.trouble.dead = True
    hours.lives = False
    tries = 0

    def each() -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            bench.commands.trouble.dead = False
            hours.lives, hours.due = True, hours.now()
            bench.restart()

    hours.each = each
    hours.until = hours.now() + 1000
    bench.places.fail_open.touch()
    assert take_over(bench.config, bench.places, hours) == 0
    assert bench.places.fail_open.exists(), "whoever lives fulfils it"
    assert kept_back(bench) == 2
    assert last_beat(bench.places) is not None


def test_what_cannot_be_freed_is_said_once_and_not_at_each_try(
    site: Callable[[str], Hours], caplog: pytest.LogCaptureFixture
) -> None:
    hours = site("begin")
    hours.lives = False
    running = next(record for record in hours.bench.world.living() if record.state == "RUNNING")
    running.state = "COMPLETING"
    assert hours.watched(300) is None
    assert caplog.text.count("it is still completing") == 1


# -- a daemon that lives and does nothing ---------------------------------------------------------------------


@BOTH_GATES
def test_what_a_paused_daemon_kept_back_is_freed_and_it_is_watched_on(
    site: Callable[[str], Hours], gate: str
) -> None:
    hours = site(gate)
    bench = hours.bench
    leave_pause(bench.places, Pause("a test", time=hours.now()))
    assert hours.watched(60) is None
    assert kept_back(bench) == 0
    assert epoch_of(bench.places.journal) == 1, "a paused daemon keeps its journal"
    late = bench.world.submit(8, "b", hold=gate == "hold")
    assert hours.watched(60) is None
    assert not bench.world.record(late).held, "jobs that come in a pause are freed too"
    bench.places.paused.unlink()
    assert hours.watched(60) is None
    assert kept_back(bench) > 0, "after the pause it acts again"
    hours.lives = False
    assert hours.watched(100) is not None, "and is watched again"
    assert kept_back(bench) == 0


def test_nobody_is_freed_when_the_pause_ends_while_the_dead_man_waits_for_its_turn(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours, freed, found_it_paused = site("begin"), list[int](), threading.Event()
    bench = hours.bench

    def about_to_free(places: Places) -> AbstractContextManager[None]:
        found_it_paused.set()
        return freeing(places)

    monkeypatch.setattr("slurm_fair.deadman.freeing", about_to_free)
    leave_pause(bench.places, Pause("a test", time=hours.now() - LIMIT - 1))
    waiting = kept_back(bench)
    looks = threading.Thread(
        target=lambda: freed.append(watch(bench.config, bench.places, hours, once=True)), daemon=True
    )
    with freeing(bench.places):
        looks.start()
        assert found_it_paused.wait(20)
        bench.places.paused.unlink()
    looks.join(20)
    assert freed == [0]
    assert kept_back(bench) == waiting > 0


def test_a_daemon_that_stays_blind_under_hold_loses_its_jobs_and_keeps_its_journal(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = site("hold")
    bench = hours.bench
    monkeypatch.setattr(type(bench.daemon.cluster), "observe", _never_sees(bench))
    began = hours.now()
    assert hours.watched(LIMIT) is None
    assert kept_back(bench) == 2
    assert hours.watched(60) is None
    assert kept_back(bench) == 0
    assert hours.now() - began < 120
    assert epoch_of(bench.places.journal) == 1
    late = bench.world.submit(8, "b", hold=True)
    assert hours.watched(70) is None
    assert not bench.world.record(late).held
    monkeypatch.undo()
    monkeypatch.setattr("slurm_fair.deadman.commands_of", lambda config, places: bench.apart())
    assert hours.watched(30) is None
    assert kept_back(bench) > 0, "it sees again, and holds again what must wait"
    freed = bench.places.freeing.stat().st_mtime
    assert hours.watched(200) is None
    assert bench.places.freeing.stat().st_mtime == freed, "nobody fights it"


def _never_sees(bench: Bench) -> Callable[..., object]:
    return lambda self, asked: Blind(bench.now, "squeue: odd")


def test_a_blind_daemon_under_begin_needs_nobody(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = site("begin")
    monkeypatch.setattr(type(hours.bench.daemon.cluster), "observe", _never_sees(hours.bench))
    before = hours.bench.acts()
    assert hours.watched(300) is None
    assert hours.bench.acts() == before


def test_after_an_outage_of_slurm_the_daemon_sees_before_its_jobs_are_freed(
    site: Callable[[str], Hours],
) -> None:
    hours = site("hold")
    hours.bench.commands.trouble.dead = True
    assert hours.watched(600) is None
    hours.bench.commands.trouble.dead = False
    assert hours.watched(40) is None
    assert kept_back(hours.bench) == 2


def test_a_daemon_does_nothing_while_the_dead_man_frees(site: Callable[[str], Hours]) -> None:
    hours = site("hold")
    bench = hours.bench
    bench.world.submit(8, "c", hold=True)
    bench.pass_time(60)
    with freeing(bench.places):
        before = bench.acts()
        assert being_freed(bench.places)
        bench.run(70)
        assert bench.acts() == before
    assert not being_freed(bench.places)
    bench.run(70)
    assert len(bench.acts()) > len(before)


@BOTH_GATES
def test_a_look_for_a_timer_ends_at_once(site: Callable[[str], Hours], gate: str) -> None:
    hours = site(gate)
    bench = hours.bench
    assert watch(bench.config, bench.places, hours, once=True) == 0
    bench.pass_time(LIMIT + 1)
    hours.lives = False
    assert watch(bench.config, bench.places, hours, once=True) == 2
    assert watch(bench.config, bench.places, hours, once=True) == 0
