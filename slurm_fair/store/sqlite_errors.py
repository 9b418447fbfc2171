"""Turn errors of SQLite and the file system into one line that a person can act on."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_fair.errors import StoreBusy, StoreError

_CURES = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space on it; nothing was written",
    sqlite3.SQLITE_READONLY: "the journal may not be written: mount its file system read-write, check its owner",
    sqlite3.SQLITE_BUSY: "another program holds the journal locked: close that program (an sqlite3 shell?)",
    sqlite3.SQLITE_LOCKED: "another program holds the journal locked: close that program (an sqlite3 shell?)",
    sqlite3.SQLITE_CORRUPT: "the journal is damaged: set it aside and start again, or restore a copy",
    sqlite3.SQLITE_NOTADB: "this file is no database: set it aside and start again, or restore a copy",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write: see the kernel's log",
    sqlite3.SQLITE_CANTOPEN: "the journal cannot be opened: check that its directory exists and is yours",
    sqlite3.SQLITE_PERM: "the journal may not be opened: check its owner",
    sqlite3.SQLITE_AUTH: "the journal may not be opened: check its owner",
}

_PASSES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_MOST_SAID = 200


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Failures of SQLite and of the file system leave this block as StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        cure = _CURES.get(code & 0xFF) if code is not None else None
        said = one_line(error)
        kind = StoreBusy if code is not None and code & 0xFF in _PASSES else StoreError
        raise kind(f"{path}: {cure} ({said})" if cure else f"{path}: {said}") from error
    except (OverflowError, UnicodeError) as error:  # a value that SQLite has no room for
        raise StoreError(f"{path}: a value does not fit into the journal: {error}") from error
    except OSError as error:
        raise (StoreBusy if error.errno in _NO_ROOM else StoreError)(
            f"{path}: {error.strerror or error}"
        ) from error


def one_line(text: object) -> str:
    """SQLite's message about a damaged file, fit for one line of a terminal."""
    return "".join(char if char.isprintable() else " " for char in str(text))[:_MOST_SAID]
