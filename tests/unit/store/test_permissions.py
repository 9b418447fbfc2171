"""A journal that others could change is refused, with the cure, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.errors import NotHere, UnsafeStore
from slurm_fair.store import open_journal, open_reader

NOBODY = 65534

Spoil = Callable[[Path], None]


def mode(name: str, wanted: int) -> Spoil:
    return lambda directory: (directory / name).chmod(wanted)


def give_away(name: str) -> Spoil:
    return lambda directory: os.chown(directory / name, NOBODY, NOBODY)


def link(name: str, to: str) -> Spoil:
    def make(directory: Path) -> None:
        (directory / name).rename(directory / "real")
        (directory / name).symlink_to(to)

    return make


WRONG: dict[str, Spoil] = {
    "the directory is writable by its group": mode("", 0o770),
    "the directory is writable by all": mode("", 0o777),
    "the directory is writable by all and sticky": mode("", 0o1777),
    "the directory belongs to somebody else": give_away(""),
    "the database is writable by its group": mode("journal.db", 0o660),
    "the database is writable by all": mode("journal.db", 0o666),
    "the database belongs to somebody else": give_away("journal.db"),
    "the lock is writable by all": mode("journal.db.lock", 0o666),
    "the epoch is writable by its group": mode("journal.db.epoch", 0o620),
    "the epoch belongs to somebody else": give_away("journal.db.epoch"),
    "the database is a symbolic link": link("journal.db", "real"),
    "the lock is a dangling link": link("journal.db.lock", "/nonexistent/file"),
    "the write-ahead log is a directory": lambda directory: (directory / "journal.db-wal").mkdir(),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "state" / "journal.db"
    open_journal(made).close()
    return made


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_modes_and_owners_are_refused_with_the_cure(path: Path, wrong: Spoil) -> None:
    try:
        wrong(path.parent)
    except PermissionError:
        pytest.skip("only root can give files away")
    listing = sorted(found.name for found in path.parent.iterdir())
    with pytest.raises(UnsafeStore, match=r"chmod|chown|move it away") as refusal:
        open_journal(path)
    assert refusal.value.exit_code == 2
    assert "\n" not in str(refusal.value)
    assert sorted(found.name for found in path.parent.iterdir()) == listing


@pytest.mark.parametrize(("directory", "file"), [(0o700, 0o600), (0o750, 0o640), (0o755, 0o600)])
def test_modes_that_let_others_read_at_most_are_accepted(path: Path, directory: int, file: int) -> None:
    path.parent.chmod(directory)
    path.chmod(file)
    open_journal(path).close()


def test_a_reader_refuses_what_anybody_could_have_written(path: Path) -> None:
    path.chmod(0o666)
    with pytest.raises(UnsafeStore, match="chmod go-w"):
        open_reader(path)


def test_a_reader_says_that_there_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="no journal here"):
        open_reader(tmp_path / "none.db")
