"""Open the journal's file, for its one writer and for readers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database

from slurm_fair.errors import StoreError
from slurm_fair.store.permissions import beside, check_files, check_readable, make_file
from slurm_fair.store.schema import bring_up_to_date, check_version
from slurm_fair.store.sqlite_errors import as_store_errors, one_line

BUSY_SECONDS = 5.0
# Up to here the indexes are proved too; above, quick_check alone reads the file at the disk's speed.
WHOLE_CHECK_BYTES = 64 << 20
_MAY_NOT_MAKE_FILES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_CACHE_KIB = 16 * 1024
_WAL_BYTES = 4 << 20  # SQLite begins it anew at about this length


def open_writer(path: Path, busy_seconds: float = BUSY_SECONDS) -> Database:
    """The one read-write connection: sound, up to date, and durable at each commit."""
    new = not os.path.lexists(path)
    os.close(make_file(path))
    check_files(path)
    with as_store_errors(path):
        conn = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
    db = wrapped(conn)
    try:
        with as_store_errors(path):
            _prepare(db, path)
    except BaseException:
        conn.close()
        if new and not path.stat().st_size:
            path.unlink()  # on a full disk: it would look like a copy that was cut short
        raise
    return db


def open_read_only(path: Path, busy_seconds: float = BUSY_SECONDS) -> Database:
    """A connection that changes nothing, whether the daemon lives, died or ended."""
    check_readable(path)
    with as_store_errors(path):
        try:
            return _connect_reader(path, "mode=ro", busy_seconds)
        except sqlite3.OperationalError as error:
            # Without a -wal file the database is whole, but a user who may not make one must say that it rests.
            refused = getattr(error, "sqlite_errorcode", 0) & 0xFF in _MAY_NOT_MAKE_FILES
            if not refused or beside(path, "-wal").exists():
                raise
            return _connect_reader(path, "immutable=1", busy_seconds)


def _connect_reader(path: Path, how: str, busy_seconds: float) -> Database:
    uri = f"file:{quote(str(path.absolute()))}?{how}"
    conn = sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)
    try:
        db = wrapped(conn)
        if check_version(db, path):
            raise StoreError(
                f"{path}: was made by an older slurm-fair: start the daemon once to bring it up to date"
            )
    except BaseException:
        conn.close()
        raise
    return db


def wrapped(conn: sqlite3.Connection) -> Database:
    """The connection without plugins: nothing that happens to be installed may change what it does."""
    return Database(conn, recursive_triggers=False, execute_plugins=False)


@contextmanager
def transaction(db: Database) -> Iterator[None]:
    """One transaction, which begins when nobody else writes; what goes wrong leaves nothing behind."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _prepare(db: Database, path: Path) -> None:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if pages == 0:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only ever before the first table
    check_soundness(db, path)
    check_version(db, path)
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system does not carry SQLite's WAL: keep the journal on a local disk"
        )
    db.execute("PRAGMA synchronous = FULL")  # an acknowledged act survives a power cut
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")  # else -wal stays as long as it once was
    bring_up_to_date(db, path)


def check_soundness(db: Database, path: Path) -> None:
    """StoreError when the file's structure is damaged."""
    check = "integrity_check" if path.stat().st_size <= WHOLE_CHECK_BYTES else "quick_check"
    (finding,) = db.execute(f"PRAGMA {check}(1)").fetchone()
    if finding != "ok":
        first = one_line(str(finding).splitlines()[-1])
        raise StoreError(
            f"{path}: the journal is damaged: set it aside and start again, or restore a copy ({first})"
        )
