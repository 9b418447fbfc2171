"""Delete old rows of the journal: the oldest first, a few at a time, so that no tick waits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from sqlite_utils import Database

_THIN_AFTER_SECONDS = 7 * 86400.0  # older accounts of tenants stay once an hour
_RECENT_SECONDS = 86400.0  # ticks of this time stay for as long as there is older history to give


@dataclass(frozen=True, slots=True)
class Pruned:
    """Counts of the rows that went."""

    ticks: int = 0
    columns: int = 0
    standings: int = 0
    events: int = 0
    intents: int = 0
    moments: int = 0

    @property
    def total(self) -> int:
        """0 = nothing is left to forget."""
        return self.ticks + self.columns + self.standings + self.events + self.intents + self.moments


def prune(
    db: Database, aged: float, keep_seconds: float, now: float, max_bytes: int, most_rows: int
) -> Pruned:
    """Within a transaction of the caller; the newest tick and the newest standing always stay.

    Rows are as old as they were at `aged`: a clock that is wrong for a moment makes nothing too old. Of a journal
    that is too big the oldest go: acts from before the oldest tick, ticks of more than a day ago, events and
    accounts of tenants of more than a week ago, then the ticks of the last day, at last what is left.
    """
    ticks = _ticks(db, aged - keep_seconds, most_rows)
    intents = _delete(db, "intents", "id", "time < ?", aged - keep_seconds, most_rows * 10)
    full = bytes_used(db) > max_bytes
    gone = _Gone()
    if full and not ticks:
        intents += _concluded(db, _oldest_time(db), most_rows * 10)
        few = max(most_rows // 10, 1)
        ticks = 0 if intents else _ticks(db, now - _RECENT_SECONDS, few)
        if not (ticks or intents):
            gone = _oldest_history(db, now - _THIN_AFTER_SECONDS, most_rows * 10)
        if not (ticks or intents or any(gone)):
            ticks = _ticks(db, math.inf, few)
    oldest = db.execute("SELECT min(number) FROM ticks").fetchone()[0]
    columns = standings = 0
    if oldest is not None:
        columns = _delete(db, "blobs", "id", "last_used < ?", oldest, most_rows * 10)
        base = (
            "(SELECT coalesce(max(tick), 0) FROM standings WHERE tick < ?)"  # what replay of the oldest needs
        )
        standings = _delete(db, "standings", "tick", f"tick < {base}", oldest, most_rows)
    if full and not (ticks or intents or any(gone)):  # no tick is left to give
        gone = _oldest_history(db, math.inf, most_rows * 10)
    thin_before = aged - _THIN_AFTER_SECONDS
    thinned = _delete(db, "tenants_time", "id", "time < ? AND NOT hourly", thin_before, most_rows * 10)
    return Pruned(ticks, columns, standings, gone.events, intents, gone.moments + thinned)


class _Gone(NamedTuple):
    """Counts of the rows of history that a full journal gave up."""

    events: int = 0
    moments: int = 0


def _oldest_history(db: Database, before: float, most: int) -> _Gone:
    """Delete events or accounts of tenants from before an instant, whichever go back further."""
    event = db.execute("SELECT time FROM events ORDER BY id LIMIT 1").fetchone()
    moment = db.execute("SELECT min(time) FROM tenants_time").fetchone()
    of_event = event[0] if event else math.inf
    of_moment = math.inf if moment[0] is None else moment[0]
    if of_moment <= of_event:
        until = min(before, max(of_event, of_moment + 1.0))
        return _Gone(moments=_delete(db, "tenants_time", "id", "time < ?", until, most, "time"))
    oldest = f"(SELECT id, time FROM events ORDER BY id LIMIT {most})"
    chosen = f"SELECT id FROM {oldest} WHERE time < ?"
    return _Gone(events=db.execute(f"DELETE FROM events WHERE id IN ({chosen})", (before,)).rowcount)


def _oldest_time(db: Database) -> float:
    """The instant of the oldest tick."""
    found = db.execute("SELECT time FROM ticks ORDER BY number LIMIT 1").fetchone()
    return found[0] if found else 0.0


def _concluded(db: Database, before: float, most: int) -> int:
    """Delete acts whose end is known; the others tell of a crash, and stay until they are too old."""
    return _delete(db, "intents", "id", "time < ? AND outcome IS NOT NULL", before, most)


def bytes_used(db: Database) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _ticks(db: Database, before: float, most: int) -> int:
    return _delete(
        db, "ticks", "number", "time < ? AND number < (SELECT max(number) FROM ticks)", before, most, "number"
    )


def _delete(db: Database, table: str, key: str, where: str, value: float, most: int, order: str = "") -> int:
    chosen = f"SELECT {key} FROM {table} WHERE {where} {'ORDER BY ' + order if order else ''} LIMIT {most}"
    return db.execute(f"DELETE FROM {table} WHERE {key} IN ({chosen})", (value,)).rowcount
