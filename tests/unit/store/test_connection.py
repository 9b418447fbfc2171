"""The journal's file is opened by its one writer and by readers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from slurm_fair.errors import EmptyJournal, StoreBusy
from slurm_fair.store import SqliteJournal, open_journal, open_reader, refuse_empty
from tests.support import journals
from tests.support.journals import run_ticks


def test_a_reader_sees_each_commit_and_can_write_nothing(journal: SqliteJournal, path: Path) -> None:
    with open_reader(path) as reader:
        run_ticks(journal, 1, 2)
        newest = reader.latest()
        assert newest is not None
        assert newest.tick == 2
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._db.execute("DELETE FROM ticks")


def test_a_reader_may_open_a_journal_that_was_closed(path: Path) -> None:
    with open_journal(path) as journal:
        journal.set_marks([journals.mark()])
    with open_reader(path) as reader:
        assert reader.marks() == (journals.mark(),)
        reader.check()


@pytest.mark.parametrize(
    ("pragma", "wanted"),
    [("journal_mode", "wal"), ("synchronous", 2), ("busy_timeout", 5000), ("auto_vacuum", 2)],
)
def test_the_writers_connection_is_durable(journal: SqliteJournal, pragma: str, wanted: object) -> None:
    assert journal._all(f"PRAGMA {pragma}") == [(wanted,)]


def test_a_first_start_without_room_leaves_no_empty_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look like a copy that was cut short, and the next start would be refused."""

    def full(db: object, path: Path) -> None:
        raise StoreBusy("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("slurm_fair.store.connection._prepare", full)
        with pytest.raises(StoreBusy):
            open_journal(path)
    assert not path.exists()
    open_journal(path).close()


def test_an_empty_file_is_no_journal_unless_its_wal_holds_one(path: Path) -> None:
    refuse_empty(path)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch()
    path.with_name(f"{path.name}-wal").touch()
    with pytest.raises(EmptyJournal, match="move it away to begin a new ledger"):
        refuse_empty(path)
    path.with_name(f"{path.name}-wal").write_bytes(b"a page")
    refuse_empty(path)
