"""`fail-open` beside a daemon that lives or hangs: it stops first, and then what is left is freed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.cli import control
from slurm_fair.errors import NotTheOwner, SlurmUnreachable
from slurm_fair.host.state_folder import Heartbeat, Places, all_free_until, beat
from slurm_fair.slurm.fail_open import Liberated
from slurm_fair.store import SqliteJournal, is_owned, open_journal
from tests.support.command_line import Said, call

BY_THE_DAEMON = "the daemon freed its jobs and stopped"
BY_US = "2 jobs freed; the queue flows as plain Slurm\n"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "s").mkdir(mode=0o750)
    (tmp_path / "fair.toml").write_text(f'[storage]\ndir = "{tmp_path}/s"\n')
    return Places(tmp_path / "s")


@pytest.fixture
def journal(places: Places) -> Iterator[SqliteJournal]:
    """The journal of a daemon that lives."""
    with open_journal(places.journal) as opened:
        beat(places, Heartbeat(1, time.time(), 600.0, "begin", time.time()))
        yield opened


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Each time that the command itself freed jobs: whether by all stamps."""
    times: list[bool] = []

    def free(site: object, stamped: bool) -> Liberated:
        times.append(stamped)
        return Liberated(2, (), read_at=7.0)

    monkeypatch.setattr(control, "_free_ourselves", free)
    return times


def fail_open(places: Places, *words: str) -> Said:
    return call("--config", str(places.directory.parent / "fair.toml"), "fail-open", *words)


def obey(places: Places) -> threading.Thread:
    """A daemon that frees its jobs as soon as it is asked."""

    def wait() -> None:
        while not places.fail_open.exists():
            time.sleep(0.01)
        places.fail_open.unlink()

    daemon = threading.Thread(target=wait, daemon=True)
    daemon.start()
    return daemon


def test_a_daemon_that_lives_does_it_by_itself(
    places: Places, journal: SqliteJournal, freed: list[bool]
) -> None:
    daemon = obey(places)
    said = fail_open(places)
    daemon.join(5.0)
    assert (said.code, said.out, freed) == (
        0,
        f"{BY_THE_DAEMON}; the queue flows as plain Slurm\n",
        [],
    )


def test_for_a_lost_journal_too_a_daemon_that_lives_stops_before_jobs_are_freed_by_their_stamps(
    places: Places, journal: SqliteJournal, freed: list[bool]
) -> None:
    daemon = obey(places)
    said = fail_open(places, "--stamped")
    daemon.join(5.0)
    assert (said.code, said.out, freed) == (0, f"{BY_THE_DAEMON}\n{BY_US}", [True])


@pytest.mark.parametrize("words", [(), ("--stamped",)])
def test_a_daemon_that_does_not_answer_is_fenced_first(
    words: tuple[str, ...],
    places: Places,
    journal: SqliteJournal,
    freed: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control, "_DAEMON_SECONDS", 0.2)
    said = fail_open(places, *words)
    assert (said.code, said.out, freed) == (0, BY_US, [bool(words)])
    assert not places.fail_open.exists()
    with pytest.raises(NotTheOwner):
        journal.check_owner()


@pytest.mark.parametrize("words", [(), ("--stamped",)])
def test_without_a_daemon_nobody_is_asked(words: tuple[str, ...], places: Places, freed: list[bool]) -> None:
    assert not is_owned(places.journal)
    assert fail_open(places, *words).out == BY_US
    assert freed == [bool(words)]
    assert all_free_until(places) == 7.0


def test_the_heartbeat_of_a_daemon_that_is_gone_goes_so_that_nobody_is_freed_a_second_time(
    places: Places, freed: list[bool]
) -> None:
    beat(places, Heartbeat(1, time.time() - 900, 600.0, "begin", time.time()))
    assert fail_open(places).out == BY_US
    assert not places.heartbeat.exists()


@pytest.mark.parametrize(
    ("watched", "words"),
    [
        (
            True,
            "the dead-man frees the jobs within a lease when Slurm answers; to free them sooner, run this again",
        ),
        (False, "the daemon is stopped and acts no more: run this again when Slurm answers"),
    ],
)
def test_where_slurm_does_not_answer_it_is_said_who_frees_the_jobs(
    places: Places, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch, watched: bool, words: str
) -> None:
    def hangs(site: object, stamped: bool) -> Liberated:
        raise SlurmUnreachable("the queue cannot be read, so nothing was freed: squeue: no answer")

    monkeypatch.setattr(control, "_DAEMON_SECONDS", 0.2)
    monkeypatch.setattr(control, "_free_ourselves", hangs)
    monkeypatch.setattr(control, "somebody_watches", lambda places: watched)
    said = fail_open(places)
    assert (said.code, said.err.count("\n"), words in said.err) == (1, 1, True), said.err
    assert places.heartbeat.exists(), "else the dead-man would miss nobody"


def test_while_something_is_left_it_is_not_said_that_all_is_free(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_free_ourselves", lambda site, stamped: Liberated(1, ("job 2: no",)))
    assert fail_open(places).code == 1
    assert all_free_until(places) is None
