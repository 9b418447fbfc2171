"""Errors of SQLite and of the file system become one line that a person can act on."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from slurm_fair.errors import StoreBusy, StoreError
from slurm_fair.store.sqlite_errors import as_store_errors, one_line

PATH = Path("journal.db")


def of_sqlite(code: int | None) -> sqlite3.Error:
    error = sqlite3.OperationalError("said\nso")
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "passes", "words"),
    [
        (of_sqlite(sqlite3.SQLITE_FULL), True, "the disk is full: free some space on it"),
        (of_sqlite(sqlite3.SQLITE_BUSY), True, "another program holds the journal locked"),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), True, "another program holds the journal locked"),
        (of_sqlite(sqlite3.SQLITE_CORRUPT), False, "the journal is damaged: set it aside"),
        (of_sqlite(sqlite3.SQLITE_IOERR_READ), False, "the disk failed to read or write"),
        (OSError(errno.ENOSPC, "No space left"), True, "No space left"),
        (OSError(errno.EDQUOT, "Quota exceeded"), True, "Quota exceeded"),
        (OSError(errno.EACCES, "Permission denied"), False, "Permission denied"),
        (OverflowError("too large"), False, "a value does not fit into the journal: too large"),
        (UnicodeError("no text"), False, "a value does not fit into the journal: no text"),
    ],
)
def test_an_error_names_the_file_and_the_cure(error: Exception, passes: bool, words: str) -> None:
    with pytest.raises(StoreError) as refused, as_store_errors(PATH):
        raise error
    assert str(refused.value).startswith(f"journal.db: {words}")
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, StoreBusy) == passes
    assert refused.value.__cause__ is error


def test_an_error_without_a_known_cure_is_told_as_sqlite_says_it() -> None:
    for error in (of_sqlite(None), of_sqlite(sqlite3.SQLITE_MISMATCH)):
        with pytest.raises(StoreError) as refused, as_store_errors(PATH):
            raise error
        assert str(refused.value) == "journal.db: said so"


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), as_store_errors(PATH):
        raise KeyError("bug")


def test_a_message_is_short_and_moves_no_cursor() -> None:
    assert one_line("a\x1b[2J\nb") == "a [2J b"
    assert len(one_line("x" * 1000)) == 200
