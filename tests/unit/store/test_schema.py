"""A journal is of this code's schema, or is brought to it, or is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database

from slurm_fair.errors import StoreError
from slurm_fair.store import open_journal, open_reader
from slurm_fair.store.rows import MARK_COLUMNS, mark_row, seal
from slurm_fair.store.schema import migrations
from tests.support import journals


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
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 1")  # a database without tables; an empty file would be none
    db.close()
    path.chmod(0o600)
    with pytest.raises(StoreError, match="start the daemon once"):
        open_reader(path)
    open_journal(path).close()
    open_reader(path).close()


@pytest.mark.parametrize(("step", "lacks"), [("m0005_blameless", 2), ("m0006_begins", 1)])
@pytest.mark.parametrize("damage", [0, 1])
def test_a_mark_of_an_older_schema_stays_what_it_was_or_damaged(
    path: Path, damage: int, step: str, lacks: int
) -> None:
    path.parent.mkdir(mode=0o700)
    columns, row = ", ".join(MARK_COLUMNS.split(", ")[:-lacks]), mark_row(journals.mark())[:-lacks]
    with Database(path) as before:
        migrations.apply(before, stop_before=step)
        places = ", ".join("?" * (len(row) + 1))
        sealed = [*row, seal(*row) ^ damage]
        before.execute(f"INSERT INTO marks ({columns}, seal) VALUES ({places})", sealed)
        before.conn.commit()
    path.chmod(0o600)
    open_journal(path).close()
    with open_reader(path) as reader:
        if damage:
            with pytest.raises(StoreError, match="damaged"):
                reader.marks()
        else:
            assert reader.marks() == (journals.mark(),)


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
