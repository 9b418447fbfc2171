"""Questions to the journal; nothing here writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from sqlite_utils import Database

from slurm_fair.errors import StoreError
from slurm_fair.model import Beliefs, Event, Standing, TickRecord
from slurm_fair.model.mark import Mark
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.store.blobs import unpacked
from slurm_fair.store.codec import decode_as, read
from slurm_fair.store.connection import BUSY_SECONDS, check_soundness, open_read_only
from slurm_fair.store.parcel import unpack
from slurm_fair.store.rows import (
    EVENT_COLUMNS,
    INTENT_COLUMNS,
    MARK_COLUMNS,
    MOMENT_COLUMNS,
    OUTCOME_COLUMNS,
    Intent,
    Row,
    event_of,
    intent_of,
    mark_of,
    moment_of,
    proved,
    seal,
)
from slurm_fair.store.speeds import BELIEF_COLUMNS, SPEED_COLUMNS, beliefs_of, known_of
from slurm_fair.store.sqlite_errors import as_store_errors
from slurm_fair.throughput import Known

_Made = TypeVar("_Made")

_log = logging.getLogger("slurm_fair")
LISTS = "lists_at_first"  # key of meta
_CHUNK = 10_000
_MOST_PARAMETERS = 500  # SQLite's oldest limit is 999
_INTENT_WIDTH = INTENT_COLUMNS.count(",") + 1


class Reader:
    """Everything that can be read from a journal."""

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def check(self) -> None:
        """StoreError when the file's structure is damaged."""
        with as_store_errors(self.path):
            check_soundness(self._db, self.path)

    # Standings and ticks

    def latest(self) -> Standing | None:
        """The standing after the last tick kept; None in a new journal."""
        newest = self.latest_checkpoint()
        return newest[1] if newest else None

    def latest_checkpoint(self) -> tuple[int, Standing] | None:
        """The same with its tick's number; exact, because every tick leaves one."""
        return self._standing("1 = 1", ())

    def standing_before(self, number: int) -> tuple[int, Standing] | None:
        """The newest kept standing older than a tick: replay begins there."""
        return self._standing("tick < ?", (number,))

    def _standing(self, where: str, values: Row) -> tuple[int, Standing] | None:
        rows = self._all(
            f"SELECT tick, time, kept, body, seal FROM standings WHERE {where} ORDER BY tick DESC LIMIT 1",
            values,
        )
        if not rows:
            return None
        tick, _, _, body = proved(rows[0], "standings")
        return tick, unpack(body, Standing)

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        """Ticks by number, oldest first; read one by one, so that a long replay holds no lock."""
        number = first - 1
        while True:
            found = self._all(
                "SELECT number, time, body, digest, seal FROM ticks WHERE number > ? ORDER BY number LIMIT 1",
                (number,),
            )
            if not found or (last is not None and found[0][0] > last):
                return
            number, _, body, digest = proved(found[0], "ticks")
            yield decode_as(TickRecord, read(body, digest), self._column)

    def tick_numbers(self) -> tuple[int, int] | None:
        """Numbers of the oldest and the newest tick kept."""
        oldest, newest = self._all("SELECT min(number), max(number) FROM ticks")[0]
        return None if oldest is None else (oldest, newest)

    def _column(self, name: str) -> bytes:
        rows = self._all("SELECT data FROM blobs WHERE name = ?", (name,))
        if not rows:
            raise StoreError(f"{self.path}: the journal is damaged: column {name} is missing")
        return unpacked(rows[0][0], name)

    # Acts and marks

    def intents(self, since: float = 0.0) -> tuple[Intent, ...]:
        """Acts written down at or after an instant, oldest first; one without a result has no known end."""
        # The seal of the act and that of its outcome are apart, because the second comes later.
        rows = self._all(
            f"SELECT id, {INTENT_COLUMNS}, seal, {OUTCOME_COLUMNS}, outcome_seal FROM intents NOT INDEXED "
            "WHERE time >= ? ORDER BY id",
            (since,),
        )
        return tuple(self._made(self._intent, rows))

    @staticmethod
    def _intent(row: Row) -> Intent:
        act = proved(row[1 : _INTENT_WIDTH + 2], "intents")
        number, came = row[0], row[_INTENT_WIDTH + 2 :]
        if came[0] is None and came[-1] is None:
            return intent_of(number, act, came[:-1])
        if seal(number, *came[:-1]) != came[-1]:
            raise StoreError(f"the journal is damaged: the outcome of act {number} is not what was written")
        return intent_of(number, act, came[:-1])

    def marks(self) -> tuple[Mark, ...]:
        """The marks that were set and not taken back, by key."""
        rows = self._all(f"SELECT {MARK_COLUMNS}, seal FROM marks ORDER BY key, whole_record")
        return tuple(self._made(lambda row: mark_of(proved(row, "marks")), rows))

    def lists_at_first(self) -> dict[int, str] | None:
        """Node lists that nothing explained at the first look, by record; None in a journal without a look."""
        text = self.meta(LISTS)
        if text is None:
            return None if self.tick_numbers() is None else {}
        return self._made(lambda row: msgspec.json.decode(row[0], type=dict[int, str]), [(text,)])[0]

    # What is known of speeds

    def known(self) -> tuple[Known, Beliefs]:
        """Knowledge of classes of jobs, and beliefs about jobs; a damaged row costs that row."""
        speeds = self._sound(
            f"SELECT {SPEED_COLUMNS}, seal FROM speeds ORDER BY tenant, class", "speeds", known_of
        )
        beliefs = self._sound(
            f"SELECT {BELIEF_COLUMNS}, seal FROM beliefs ORDER BY key", "beliefs", beliefs_of
        )
        return known_of(speeds), beliefs_of(beliefs)

    def _sound(self, sql: str, table: str, read: Callable[[list[Row]], object]) -> list[Row]:
        """The rows that are as they were written, without their seals; what is lost is said in the log."""
        sound: list[Row] = []
        rows = self._all(sql)
        for row in rows:
            try:
                values = proved(row, table)
                read([values])
            except (StoreError, ValueError, TypeError, KeyError, msgspec.MsgspecError):
                continue
            sound.append(values)
        if len(sound) < len(rows):
            _log.warning(
                "%s: %d rows of %s are damaged and left out", self.path, len(rows) - len(sound), table
            )
        return sound

    # What the reports are made of

    def events(
        self,
        start: float = float("-inf"),
        end: float = float("inf"),
        *,
        kinds: Collection[str] = (),
        tenant: str | None = None,
        keys: Collection[int] | None = None,
    ) -> Iterator[Event]:
        """Events in [start, end), oldest first; no kinds = all of them."""
        where: list[str] = ["time < ?"]
        values: list[Any] = [end]
        if tenant is not None:
            where, values = [*where, "tenant = ?"], [*values, tenant]
        if kinds:
            where, values = [*where, f"kind IN ({_places(kinds)})"], [*values, *kinds]
        if keys is None:
            yield from self._events(start, where, values)
            return
        wanted = sorted(int(key) for key in keys)
        parts = [wanted[at : at + _MOST_PARAMETERS] for at in range(0, len(wanted), _MOST_PARAMETERS)]
        found = [
            event
            for part in parts
            for event in self._events(
                start, [*where, f"key IN ({_places(part)})"], [*values, *part], "INDEXED BY events_key"
            )
        ]
        yield from sorted(found, key=lambda event: event.time)

    def _events(
        self, start: float, where: Sequence[str], values: Sequence[Any], index: str = ""
    ) -> Iterator[Event]:
        time, number = start, -1
        # The first condition lets each chunk begin where the one before ended, in the index. With keys SQLite
        # would take the index of times all the same and read every event of the period, so it is told which.
        sql = (
            f"SELECT id, {EVENT_COLUMNS}, seal FROM events {index} WHERE time >= ? AND (time, id) > (?, ?) "
            f"AND {' AND '.join(where)} ORDER BY time, id LIMIT {_CHUNK}"
        )
        while rows := self._all(sql, (time, time, number, *values)):
            yield from self._made(lambda row: event_of(proved(row[1:], "events")), rows)
            number, time = rows[-1][0], rows[-1][1]

    def moments(self, start: float, end: float) -> Iterator[TenantMoment]:
        """Tenants' accounts in [start, end], oldest first."""
        rows = self._all(
            f"SELECT {MOMENT_COLUMNS}, seal FROM tenants_time WHERE time >= ? AND time <= ? ORDER BY time, id",
            (start, end),
        )
        yield from self._made(lambda row: moment_of(proved(row, "tenants_time")), rows)

    def moment_time(self, near: float) -> float | None:
        """The instant nearest to one at which the tenants' accounts were written down."""
        before = self._all("SELECT max(time) FROM tenants_time WHERE time <= ?", (near,))[0][0]
        after = self._all("SELECT min(time) FROM tenants_time WHERE time >= ?", (near,))[0][0]
        known = [time for time in (before, after) if time is not None]
        return min(known, key=lambda time: abs(time - near)) if known else None

    def began(self) -> float | None:
        """The first instant that the journal knows of."""
        standing = self.latest()
        return standing.ledger.began if standing else None

    def meta(self, key: str) -> str | None:
        """A note about the journal itself."""
        rows = self._all("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with as_store_errors(self.path):
            return self._db.execute(sql, values).fetchall()

    def _made(self, make: Callable[[Row], _Made], rows: list[Row]) -> list[_Made]:
        try:
            return [make(row) for row in rows]
        except (ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self.path}: the journal is damaged: a row cannot be read ({error})"
            ) from error


def open_reader(path: Path) -> Reader:
    """A journal to read, while the daemon runs and when it is dead."""
    return Reader(open_read_only(Path(path), BUSY_SECONDS), Path(path))


def _places(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))
