"""The journal's file is opened by its one writer and by readers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from slurm_fair.store import SqliteJournal, open_journal, open_reader
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
