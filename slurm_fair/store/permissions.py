"""Check the owner and mode of the journal: its user alone may write, a group may read.

Whoever can write it can make the daemon free or requeue anybody's job, so a journal that others can
change is refused, not repaired. Files are made with their modes, so no umask is ever relied on.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from slurm_fair.errors import EmptyJournal, NotHere, UnsafeStore
from slurm_fair.output import open_kept
from slurm_fair.store.sqlite_errors import as_store_errors

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
SUFFIXES = ("", "-wal", "-shm", "-journal", ".lock", ".epoch")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def beside(path: Path, suffix: str) -> Path:
    """A companion file of the database."""
    return path.with_name(path.name + suffix)


def prepare_directory(path: Path) -> None:
    """The database's directory exists and nobody else can write in it."""
    directory = path.parent
    with as_store_errors(directory):
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    _check(directory, stat.S_ISDIR, "directory", 0o750)


def check_files(path: Path) -> None:
    """Every file of the journal that exists is ours and nobody else can write it."""
    for suffix in SUFFIXES:
        if os.path.lexists(beside(path, suffix)):
            _check(beside(path, suffix), stat.S_ISREG, "regular file", 0o640)


def check_readable(path: Path) -> None:
    """Refuse a journal that somebody else could have written. Its reader need not be its owner."""
    with as_store_errors(path):
        there = path.exists()
        modes = {place: place.stat().st_mode for place in (path.parent, path) if there}
    if not there:
        raise NotHere(f"{path}: there is no journal here: check [storage], or start the daemon once")
    refuse_empty(path)
    for place, mode in modes.items():
        if mode & _OTHERS_WRITE:
            raise UnsafeStore(
                f"{place}: others may write it: run `chmod go-w {place}` once you trust its content"
            )


def refuse_empty(path: Path) -> None:
    """EmptyJournal for a file that is there and holds nothing: SQLite would take it for a new database."""
    with as_store_errors(path):
        files = [place for place in (path, beside(path, "-wal")) if place.exists()]
        held = any(place.stat().st_size for place in files)
    if path in files and not held:
        raise EmptyJournal(
            f"{path}: is empty, as a copy that was cut short: bring the whole one back, or move it away to begin "
            "a new ledger, in which nobody is owed anything"
        )


def make_file(path: Path) -> int:
    """A descriptor of a companion file, made for its user alone; never through a symlink."""
    with as_store_errors(path):
        return open_kept(path, mode=FILE_MODE)


def _check(place: Path, is_kind: object, kind: str, most: int) -> None:
    with as_store_errors(place):
        found = place.lstat()
    if not callable(is_kind) or not is_kind(found.st_mode):
        raise UnsafeStore(f"{place}: is no {kind}: move it away, links are not followed here")
    if found.st_uid != os.geteuid():
        raise UnsafeStore(
            f"{place}: belongs to uid {found.st_uid}, not to uid {os.geteuid()} that runs this: "
            f"run as its owner, or `chown {os.geteuid()} {place}`"
        )
    if found.st_mode & _OTHERS_WRITE:
        raise UnsafeStore(
            f"{place}: others may write it (mode {stat.S_IMODE(found.st_mode):04o}): `chmod {most:04o} {place}`"
        )
