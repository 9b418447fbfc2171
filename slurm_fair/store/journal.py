"""The journal: what the controller must not forget, each change in one durable transaction."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlite_utils import Database

from slurm_fair.errors import JournalGone, StoreError
from slurm_fair.model import Action, Beliefs, Outcome, Standing, TickRecord
from slurm_fair.model.mark import Mark
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.store.blobs import squeeze
from slurm_fair.store.codec import Encoder, write
from slurm_fair.store.connection import BUSY_SECONDS, open_writer, transaction
from slurm_fair.store.ownership import Ownership, epoch_of, who
from slurm_fair.store.parcel import Packer
from slurm_fair.store.permissions import beside, check_files, make_file, prepare_directory
from slurm_fair.store.prune import Pruned, bytes_used, prune
from slurm_fair.store.reader import LISTS, Reader
from slurm_fair.store.rows import (
    EVENT_COLUMNS,
    INTENT_COLUMNS,
    MARK_COLUMNS,
    MOMENT_COLUMNS,
    Row,
    event_row,
    intent_row,
    mark_row,
    moment_row,
    outcome_row,
    seal,
    sealed,
)
from slurm_fair.store.speeds import BELIEF_COLUMNS, SPEED_COLUMNS, belief_rows, speed_rows
from slurm_fair.store.sqlite_errors import as_store_errors
from slurm_fair.store.tenant_moments import moments_of
from slurm_fair.throughput import Known

KEPT_EVERY = 50  # ticks between two standings that stay, for replay
MOMENT_SECONDS = 60.0
_HOUR = 3600.0
_ROOM_BYTES = 1 << 20
_LONG_WAL_BYTES = 64 << 20  # many times as long as it is at rest


class SqliteJournal(Reader):
    """The one writer of a journal: ports.Journal and ports.IntentLog on SQLite."""

    def __init__(self, db: Database, path: Path, ownership: Ownership) -> None:
        super().__init__(db, path)
        self._ownership = ownership
        self._packer = Packer()
        self._blob_names = frozenset(
            name for (name,) in self._all("SELECT name FROM blobs WHERE last_used IS NULL")
        )
        self._tick = self._all("SELECT max(number) FROM ticks")[0][0]
        newest = self._all("SELECT time FROM tenants_time ORDER BY id DESC LIMIT 1")
        self._moment = newest[0][0] if newest else -math.inf
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('epoch', ?)", (str(self.epoch),))
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('owner', ?)", (who(),))
        self._files = {
            beside(path, suffix): _identity(beside(path, suffix)) for suffix in ("", "-wal", "-shm")
        }

    @property
    def epoch(self) -> int:
        """The number of this opening of the journal."""
        return self._ownership.epoch

    def check_owner(self) -> None:
        """NotTheOwner once somebody else has taken over: look before acts that follow a pause."""
        self._ownership.check()

    def check_there(self) -> None:
        """JournalGone once a file of the journal is no longer the one that we opened."""
        for place, known in self._files.items():
            if _identity(place) != known:
                raise JournalGone(f"{place}: was removed or replaced while the daemon runs")

    def check_wal(self) -> None:
        """StoreError while somebody's open transaction lets -wal grow, which `bytes_used` does not count."""
        wal = beside(self.path, "-wal")
        with as_store_errors(wal):
            size = wal.stat().st_size
        if size > _LONG_WAL_BYTES:
            raise StoreError(
                f"{wal}: {size / 1024**2:.0f} MB, and it grows until the transaction ends that somebody holds "
                "open on the journal (an sqlite3 shell after BEGIN?): end that program"
            )

    def need_room(self) -> None:
        """StoreBusy while the disk has no room for a whole tick: an act alone might still fit."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('room', zeroblob(?))", (_ROOM_BYTES,))
        with self._writing():
            self._db.execute("DELETE FROM meta WHERE key = 'room'")

    def rescue(self) -> Path:
        """A whole copy of the journal beside its place, out of the file that is still open."""
        kept = self.path.with_name(f"{self.path.name}.rescued-{self.epoch}")
        with as_store_errors(kept):
            kept.unlink(missing_ok=True)
        os.close(make_file(kept))
        with as_store_errors(kept):
            self._db.execute("VACUUM INTO ?", (str(kept),))
        return kept

    def close(self) -> None:
        """Give the file and the lock back."""
        try:
            super().close()
        finally:
            self._ownership.release()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction of the owner; what goes wrong leaves nothing behind."""
        with self._ownership.writing(), as_store_errors(self.path), transaction(self._db):
            yield

    # ports.Journal

    @property
    def wants(self) -> frozenset[Want]:
        """Whole ticks, so that each can be planned again and explained."""
        return EVERYTHING

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Keep one tick, and the standing after it, in one transaction."""
        encoder = Encoder()
        body, digest = write(encoder.tree(tick))
        blob_names = frozenset(encoder.blobs)
        parcel = self._packer.pack(standing)
        moments = self._moments_due(tick, standing)
        with self._writing():
            if self._tick is not None and tick.number <= self._tick:
                raise StoreError(
                    f"{self.path}: tick {tick.number} follows tick {self._tick}: it would be lost"
                )
            self._insert(
                "ticks", "number, time, body, digest", [(tick.number, float(tick.time), body, digest)]
            )
            self._keep_blobs(encoder.blobs)
            self._keep_standing(tick, parcel)
            events = [(tick.number, *row) for row in sealed([event_row(event) for event in tick.events])]
            self._insert_sealed("events", f"tick, {EVENT_COLUMNS}", events)
            self._insert("tenants_time", MOMENT_COLUMNS, moments)
        self._blob_names, self._tick = blob_names, tick.number
        self._moment = standing.ledger.time if moments else self._moment

    def _keep_blobs(self, blobs: dict[str, bytes]) -> None:
        """New blobs are stored; one that this tick no longer uses gets the number of the last tick that did."""
        ended = [(self._tick, name) for name in self._blob_names - blobs.keys()]
        self._db.conn.executemany("UPDATE blobs SET last_used = ? WHERE name = ?", ended)
        for name in blobs.keys() - self._blob_names:
            known = self._db.execute("UPDATE blobs SET last_used = NULL WHERE name = ?", (name,)).rowcount
            if not known:
                self._db.execute("INSERT INTO blobs (name, data) VALUES (?, ?)", (name, squeeze(blobs[name])))

    def _keep_standing(self, tick: TickRecord, parcel: bytes) -> None:
        """The newest standing replaces the one before it, except each fiftieth."""
        self._db.execute("DELETE FROM standings WHERE NOT kept AND tick < ?", (tick.number,))
        newest_kept = self._db.execute("SELECT max(tick) FROM standings WHERE kept").fetchone()[0]
        kept = newest_kept is None or tick.number >= newest_kept + KEPT_EVERY
        self._insert(
            "standings", "tick, time, kept, body", [(tick.number, float(tick.time), int(kept), parcel)]
        )

    def _moments_due(self, tick: TickRecord, standing: Standing) -> list[Row]:
        """One row per tenant each minute; a clock that was ahead at one look keeps none from being written."""
        time, last = standing.ledger.time, self._moment
        if 0 <= time - last < MOMENT_SECONDS:
            return []
        hourly = last == -math.inf or last // _HOUR != time // _HOUR
        return [moment_row(moment, hourly) for moment in moments_of(tick.snapshot, standing)]

    # ports.IntentLog

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        """Durable before it returns; the ids go back into `conclude`."""
        if not actions:
            return ()
        rows = sealed([intent_row(action, self.epoch, now) for action in actions])
        with self._writing():
            ids = [self._one_row("intents", f"{INTENT_COLUMNS}, seal", row) for row in rows]
        # Whoever found us standing still inside that transaction has fenced us without waiting for it.
        self._ownership.check()
        return tuple(ids)

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None:
        """Write down the outcomes of these intents."""
        rows = [
            (*came, seal(number, *came), number)
            for number, outcome in zip(ids, outcomes, strict=True)
            for came in [outcome_row(outcome, now)]
        ]
        if not rows:
            return
        with self._writing():
            for row in rows:
                changed = self._db.execute(
                    "UPDATE intents SET outcome = ?, detail = ?, concluded = ?, seconds = ?, outcome_seal = ? "
                    "WHERE id = ?",
                    row,
                ).rowcount
                if not changed:
                    raise StoreError(f"{self.path}: no act {row[-1]} was ever written down")

    # Marks

    def set_marks(self, rows: Iterable[Mark]) -> None:
        """Put marks on these records; a mark replaces an older one of the same record."""
        made = sealed([mark_row(mark) for mark in rows])
        if made:
            with self._writing():
                self._insert_sealed("marks", MARK_COLUMNS, made, "INSERT OR REPLACE")

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None:
        """Nothing of ours lies on these (key, whole_record) any more."""
        gone = [(int(key), int(whole_record)) for key, whole_record in keys]
        if gone:
            with self._writing():
                self._db.conn.executemany("DELETE FROM marks WHERE key = ? AND whole_record = ?", gone)

    def keep_lists_at_first(self, lists: Mapping[int, str]) -> None:
        """Node lists that nothing explains at the first look of this journal, by record."""
        with self._writing():
            text = msgspec.json.encode(dict(lists)).decode()
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (LISTS, text))

    # What is known of speeds

    def keep_known(self, known: Known, beliefs: Beliefs) -> None:
        """Replace what was kept, row by row as far as it has changed."""
        speeds = {row[:2]: row for row in sealed(speed_rows(known))}
        believed = {row[:1]: row for row in sealed(belief_rows(beliefs))}
        with self._writing():
            self._replace("speeds", SPEED_COLUMNS, ("tenant", "class"), speeds)
            self._replace("beliefs", BELIEF_COLUMNS, ("key",), believed)

    def _replace(self, table: str, columns: str, key: Sequence[str], rows: Mapping[Row, Row]) -> None:
        """The table then holds these rows, by their keys, and no others."""
        held = self._db.execute(f"SELECT {', '.join(key)}, seal FROM {table}").fetchall()
        there = {row[:-1]: row[-1] for row in held}
        gone = [name for name in there if name not in rows]
        where = " AND ".join(f"{name} = ?" for name in key)
        self._db.conn.executemany(f"DELETE FROM {table} WHERE {where}", gone)
        new = [row for name, row in rows.items() if there.get(name) != row[-1]]
        self._insert_sealed(table, columns, new, "INSERT OR REPLACE")

    # Upkeep

    def prune(
        self,
        now: float,
        *,
        keep_seconds: float,
        max_bytes: int,
        aged: float = math.inf,
        most_rows: int = 200,
    ) -> Pruned:
        """Forget what is too old or too much, at most so many rows of a kind; cheap enough for every tick.

        Rows are as old as they were at `aged`, where that is before now.
        """
        with self._writing():
            pruned = prune(self._db, min(aged, now), keep_seconds, now, max_bytes, most_rows)
        with as_store_errors(self.path):
            # A script, because this statement does its work page by page and `execute` takes one step only.
            self._db.executescript(f"PRAGMA incremental_vacuum({most_rows * 10})")
        return pruned

    def forget(
        self,
        now: float,
        *,
        keep_seconds: float,
        max_bytes: int,
        aged: float = math.inf,
        most_seconds: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
    ) -> bool:
        """Prune again and again for at most so long; whether something is left to forget."""
        until = clock() + most_seconds
        while self.prune(now, keep_seconds=keep_seconds, max_bytes=max_bytes, aged=aged).total:
            if clock() >= until:
                return True
        return False

    def bytes_used(self) -> int:
        """Bytes of the file that hold something."""
        with as_store_errors(self.path):
            return bytes_used(self._db)

    def _insert(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        self._insert_sealed(table, columns, sealed(rows))

    def _insert_sealed(self, table: str, columns: str, rows: Sequence[Row], how: str = "INSERT") -> None:
        """Rows whose last value is their seal, in one statement."""
        places = ", ".join("?" * (columns.count(",") + 2))
        self._db.conn.executemany(f"{how} INTO {table} ({columns}, seal) VALUES ({places})", rows)

    def _one_row(self, table: str, columns: str, row: Row) -> int:
        places = ", ".join("?" * len(row))
        cursor = self._db.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", row)
        number: Any = cursor.lastrowid
        return int(number)


def _identity(place: Path) -> tuple[int, int] | None:
    """The identity of the file in a place."""
    try:
        found = place.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_journal(path: Path | str, busy_seconds: float = BUSY_SECONDS) -> SqliteJournal:
    """Open a journal to write, making it when it does not exist; the only owner until it is closed."""
    path = Path(path)
    prepare_directory(path)
    check_files(path)
    ownership = Ownership(path)
    try:
        db = open_writer(path, busy_seconds)
        try:
            return SqliteJournal(db, path, ownership)
        except BaseException:
            db.close()
            raise
    except BaseException:
        ownership.release()
        raise


def move_damaged(path: Path | str) -> Path:
    """Rename a damaged journal and its companions, so that a new one can begin; its new name."""
    path = Path(path)
    prepare_directory(path)
    ownership = Ownership(path)  # nobody may be writing it
    try:
        kept = path.with_name(f"{path.name}.corrupt-{epoch_of(path)}")
        with as_store_errors(path):
            for suffix in ("-shm", "-wal", ""):
                if beside(path, suffix).exists():
                    beside(path, suffix).rename(beside(kept, suffix))
        return kept
    finally:
        ownership.release()
