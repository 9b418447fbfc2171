"""The journal's tables, as numbered steps: a step that has been released is never changed again."""

from __future__ import annotations

from pathlib import Path

from sqlite_utils import Database, Migrations

from slurm_fair.errors import StoreError
from slurm_fair.store.rows import seal

APPLICATION_ID = 0x534C4641  # "SLFA": tells our file from any other database

migrations = Migrations("slurm_fair_journal")


@migrations()
def m0001_journal(db: Database) -> None:
    """Ticks with their columns, standings, acts, marks, and what the reports are made of."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in _JOURNAL:
        db.execute(statement)


@migrations()
def m0002_pins(db: Database) -> None:
    """The node list that we set last on a job, also after it was taken away."""
    db.execute("ALTER TABLE marks ADD COLUMN pin TEXT NOT NULL DEFAULT ''")
    _seal_marks_with(db, _MARKS_0001, "")


@migrations()
def m0003_sizes(db: Database) -> None:
    """The request for GPUs that we set on a job, and its user's own."""
    db.execute("ALTER TABLE marks ADD COLUMN size TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE marks ADD COLUMN user_size TEXT NOT NULL DEFAULT ''")
    _seal_marks_with(db, f"{_MARKS_0001}, pin", "", "")


@migrations()
def m0004_speeds(db: Database) -> None:
    """Knowledge of speeds by class of jobs, and beliefs about the progress of jobs."""
    for statement in _SPEEDS:
        db.execute(statement)


@migrations()
def m0005_blameless(db: Database) -> None:
    """Marks say that nobody is to be blamed for a gate that is gone; a mark without a time said so before."""
    db.execute("ALTER TABLE marks ADD COLUMN blameless INTEGER NOT NULL DEFAULT 0")
    _seal_marks_with(db, f"{_MARKS_0001}, pin, size, user_size", 0)


@migrations()
def m0006_begins(db: Database) -> None:
    """The begin time of its user's own that a gate of ours took the place of."""
    db.execute("ALTER TABLE marks ADD COLUMN user_begin REAL NOT NULL DEFAULT 0")
    _seal_marks_with(db, f"{_MARKS_0001}, pin, size, user_size, blameless", 0.0)


def _seal_marks_with(db: Database, columns: str, *added: object) -> None:
    """Seal each mark anew with the values of new columns behind these; a damaged row stays one."""
    for key, whole, *values, kept in db.execute(f"SELECT {columns}, seal FROM marks").fetchall():
        if seal(key, whole, *values) == kept:
            new = seal(key, whole, *values, *added)
            db.execute("UPDATE marks SET seal = ? WHERE key = ? AND whole_record = ?", [new, key, whole])


_SPEEDS = (
    """CREATE TABLE speeds (
        tenant TEXT NOT NULL, class TEXT NOT NULL, body BLOB NOT NULL, seal INTEGER NOT NULL,
        PRIMARY KEY (tenant, class))""",
    "CREATE TABLE beliefs (key INTEGER PRIMARY KEY, body BLOB NOT NULL, seal INTEGER NOT NULL)",
)
_MARKS_0001 = (
    "key, whole_record, record, submit, restarts, gate_until, pinned, set_at, user_nodes, gate_before"
)
# `seal` is a checksum over the row: a damaged row is refused, never believed.
_JOURNAL = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE ticks (
        number INTEGER PRIMARY KEY, time REAL NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL,
        seal INTEGER NOT NULL)""",
    # last_used: the last tick that refers to it; NULL while the newest one does.
    """CREATE TABLE blobs (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, data BLOB NOT NULL, last_used INTEGER)""",
    "CREATE INDEX blobs_last_used ON blobs (last_used)",
    """CREATE TABLE standings (
        tick INTEGER PRIMARY KEY, time REAL NOT NULL, kept INTEGER NOT NULL, body BLOB NOT NULL,
        seal INTEGER NOT NULL)""",
    """CREATE TABLE intents (
        id INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL, time REAL NOT NULL, verb TEXT NOT NULL,
        key INTEGER NOT NULL, label TEXT NOT NULL, record INTEGER NOT NULL, submit REAL NOT NULL,
        restarts INTEGER NOT NULL, nodes TEXT NOT NULL, until REAL NOT NULL, whole_record INTEGER NOT NULL,
        why TEXT NOT NULL, seal INTEGER NOT NULL,
        outcome TEXT, detail TEXT, concluded REAL, seconds REAL, outcome_seal INTEGER)""",
    "CREATE INDEX intents_time ON intents (time)",
    """CREATE TABLE marks (
        key INTEGER NOT NULL, whole_record INTEGER NOT NULL, record INTEGER NOT NULL, submit REAL NOT NULL,
        restarts INTEGER NOT NULL, gate_until REAL NOT NULL, pinned INTEGER NOT NULL, set_at REAL NOT NULL,
        user_nodes TEXT NOT NULL, gate_before REAL NOT NULL, seal INTEGER NOT NULL,
        PRIMARY KEY (key, whole_record))""",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY, tick INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL,
        key INTEGER NOT NULL, tenant TEXT NOT NULL, gpus INTEGER NOT NULL, detail TEXT NOT NULL,
        seal INTEGER NOT NULL)""",
    "CREATE INDEX events_time ON events (time)",
    "CREATE INDEX events_key ON events (key)",
    # The moments of tenants. hourly: among the first rows of an hour, kept when the others are thinned out.
    """CREATE TABLE tenants_time (
        id INTEGER PRIMARY KEY, time REAL NOT NULL, tenant TEXT NOT NULL, weight REAL NOT NULL, had REAL NOT NULL,
        owed_quota REAL NOT NULL, owed_demand REAL NOT NULL, gpus REAL NOT NULL, demand REAL NOT NULL,
        hourly INTEGER NOT NULL, seal INTEGER NOT NULL)""",
    "CREATE INDEX tenants_time_time ON tenants_time (time)",
)


def _objects(db: Database) -> frozenset[tuple[str, str]]:
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return frozenset((name, sql) for name, sql in rows if not name.startswith(("_sqlite", "sqlite_", "idx_")))


def _known() -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """The steps of this code, and the tables and indexes that they make."""
    with Database(memory=True) as fresh:
        steps = frozenset(step.name for step in migrations.pending(fresh))
        migrations.apply(fresh)
        return steps, _objects(fresh)


def check_version(db: Database, path: Path) -> bool:
    """True when steps are missing; StoreError when the file is not ours or newer than this code."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if objects == 0:
        return True
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: is a database, but no journal of slurm-fair: check [storage] dir")
    try:
        applied = {step.name for step in migrations.applied(db)}
    except (KeyError, TypeError, ValueError) as error:  # its own table has other columns
        raise StoreError(
            f"{path}: the journal is damaged: its table of schema steps cannot be read"
        ) from error
    known_steps, known_objects = _known()
    newer = sorted(applied - known_steps)
    if newer:
        raise StoreError(f"{path}: was made by a newer slurm-fair (schema {newer[-1]}): install that version")
    if applied != known_steps:
        return True
    if not known_objects <= _objects(db):
        raise StoreError(f"{path}: the journal is damaged: its tables are not the ones that were made")
    return False


def bring_up_to_date(db: Database, path: Path) -> None:
    """Apply the steps that are missing; each is one transaction with the record of it."""
    if check_version(db, path):
        migrations.apply(db)
        check_version(db, path)
