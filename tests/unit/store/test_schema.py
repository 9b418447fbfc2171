"""A journal is of this code's schema, or is brought to it, or is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from slurm_fair.errors import StoreError
from slurm_fair.store import open_journal, open_reader


def test_a_newer_schema_is_refused_by_writer_and_reader(path: Path) -> None:
    with open_journal(path) as journal:
        journal._db.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "VALUES ('slurm_fair_journal', 'm9999_future', 'then')"
        )
    for opener in (open_journal, open_reader):
        with pytest.raises(StoreError, match=r"newer slurm-fair \(schema m9999_future\)"):
            opener(path)


def test_an_older_schema_is_brought_up_to_date_by_the_writer_only(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    sqlite3.connect(path).close()
    path.touch(mode=0o600)
    path.chmod(0o600)
    with pytest.raises(StoreError, match="start the daemon once"):
        open_reader(path)
    open_journal(path).close()
    open_reader(path).close()


def test_somebody_elses_database_is_refused_untouched(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (name)")
    other.commit()
    other.close()
    path.chmod(0o600)
    content = path.read_bytes()
    for opener in (open_journal, open_reader):
        with pytest.raises(StoreError, match="no journal of slurm-fair"):
            opener(path)
    assert path.read_bytes() == content
