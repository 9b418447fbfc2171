"""A daemon that fails open leaves no mark, but of what Slurm does not let go of."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_fair.daemon.freeing import free_everybody
from slurm_fair.errors import StoreBusy
from slurm_fair.host.state_folder import Places, all_free_until, not_yet_free
from slurm_fair.slurm.fail_open import Liberated
from slurm_fair.slurm.reading.queue import Unreadable
from slurm_fair.store import open_journal
from tests.support import journals
from tests.support.command_line import heard

LEFT = Liberated(1, ("job 2: it is still completing", "job 3: no"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A storage in which the daemon lived and was asked to free all jobs."""
    made = Places(tmp_path / "s")
    with open_journal(made.journal) as journal:
        journal.set_marks([journals.mark(1), journals.mark(2), journals.mark(2, whole_record=True)])
    for file in (made.heartbeat, made.fail_open):
        file.touch()
    return made


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[list[float]]:
    """The pauses between tries, which nobody waits for."""
    slept: list[float] = []
    monkeypatch.setattr("slurm_fair.slurm.fail_open.time", SimpleNamespace(sleep=slept.append))
    with heard(), caplog.at_level(logging.WARNING):
        yield slept


def _free(places: Places, *rounds: Liberated) -> list[tuple[int, bool]]:
    """The marks that are left in the journal."""
    each = iter(rounds)
    with open_journal(places.journal) as journal:
        free_everybody(lambda before: next(each), journal, places)
        return [(mark.key, mark.whole_record) for mark in journal.marks()]


def test_when_all_are_free_nothing_of_ours_is_left(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    assert _free(places, Liberated(3, (), read_at=50.0)) == []
    assert all_free_until(places) == 50.0, "what comes later is found by the dead-man's timer"
    assert not places.heartbeat.exists()
    assert not places.fail_open.exists()
    assert [record.getMessage() for record in caplog.records] == [
        "failed open: 3 jobs freed; the queue flows as plain Slurm"
    ]


def test_marks_of_lists_on_running_jobs_stay(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    kept = (journals.mark(2).key, True)
    assert _free(places, Liberated(0, (), {kept: "job 2: n1"})) == [kept]
    assert not places.heartbeat.exists()
    assert "running jobs keep a node list of ours until they end (job 2: n1)" in caplog.text


def test_marks_of_jobs_whose_rows_cannot_be_read_stay(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Unreadable(journals.mark(1).record, "1", "bob", "gpu", None, 0, "its state 'NEW' is no word")
    assert _free(places, Liberated(0, (), unread=(bad,))) == [(journals.mark(1).key, False)]
    assert not_yet_free(places) == (bad.record,)
    assert "these jobs may still wait for us (job 1 of bob: its state 'NEW' is no word)" in caplog.text


def test_what_could_not_be_freed_keeps_all_marks_and_the_dead_man(
    places: Places, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    assert len(_free(places, *[LEFT] * 16)) == 3
    assert places.heartbeat.exists()
    assert places.fail_open.exists()
    assert len(pauses) == 15
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "could not free job 2: it is still completing",
        "could not free job 3: no",
    ]
    assert "failed open: 16 jobs freed" in caplog.text


def test_a_job_that_completes_is_waited_for(places: Places, pauses: list[float]) -> None:
    assert _free(places, LEFT, LEFT, Liberated(2, ())) == []
    assert len(pauses) == 2
    assert not places.heartbeat.exists()


def test_files_that_are_gone_already_are_no_trouble(places: Places) -> None:
    places.heartbeat.unlink()
    assert _free(places, Liberated(0, ())) == []
    assert not places.fail_open.exists()


def test_a_journal_that_cannot_be_written_keeps_no_job(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    with open_journal(places.journal) as journal:
        journal.drop_marks = _full  # type: ignore[method-assign]
        free_everybody(lambda before: Liberated(1, ()), journal, places)
        assert len(journal.marks()) == 3
    assert "the marks of the freed jobs stay in the journal: the disk is full" in caplog.text
    assert not places.heartbeat.exists()
    assert not places.fail_open.exists()


def _full(keys: Iterable[tuple[int, bool]]) -> None:
    raise StoreBusy("the disk is full")
