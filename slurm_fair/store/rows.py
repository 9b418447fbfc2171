"""Rows of the journal's tables and the values that they stand for."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from slurm_fair.errors import StoreError
from slurm_fair.model import Action, Event, Outcome, Result, Verb, label
from slurm_fair.model.counted import one_of
from slurm_fair.model.mark import Mark
from slurm_fair.model.tenant_moment import TenantMoment

Row = tuple[Any, ...]

EVENT_COLUMNS = "time, kind, key, tenant, gpus, detail"
INTENT_COLUMNS = "epoch, time, verb, key, label, record, submit, restarts, nodes, until, whole_record, why"
OUTCOME_COLUMNS = "outcome, detail, concluded, seconds"
MARK_COLUMNS = (
    "key, whole_record, record, submit, restarts, gate_until, pinned, set_at, user_nodes, gate_before, pin, "
    "size, user_size, blameless, user_begin"
)
MOMENT_COLUMNS = "time, tenant, weight, had, owed_quota, owed_demand, gpus, demand, hourly"


@dataclass(frozen=True, slots=True)
class Intent:
    """One act as it was written down before it was done, and what came of it."""

    id: int
    epoch: int
    time: float
    action: Action
    result: Result | None = None  # None = nobody knows yet: look again
    detail: str = ""
    concluded: float = 0.0
    seconds: float = 0.0


def seal(*values: object) -> int:
    """A checksum over a row's values, as SQLite gives them back."""
    if any(value != value for value in values):
        raise StoreError(f"the journal keeps no row that is not a number throughout: {values}")
    return _checksum(values)


_pack = msgspec.msgpack.Encoder().encode


def _checksum(values: Row) -> int:
    return zlib.crc32(_pack(values))


def proved(row: Row, table: str) -> Row:
    """The row without its seal, its last value; StoreError when the two do not fit."""
    values, kept = row[:-1], row[-1]
    try:
        fits = _checksum(values) == kept
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise StoreError(f"the journal is damaged: a row of {table} is not what was written: {values[:4]}")
    return values


def plain(text: str) -> str:
    """Text that SQLite can hold: what is no Unicode is escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def event_row(event: Event) -> Row:
    """An event's values, in the order of EVENT_COLUMNS."""
    detail = _json(event.detail)
    return float(event.time), plain(event.kind), int(event.key), plain(event.tenant), int(event.gpus), detail


def event_of(row: Row) -> Event:
    """The event of an unsealed row."""
    time, kind, key, tenant, gpus, detail = row
    return Event(time, kind, key, tenant, gpus, _detail(detail))


_plain_json = msgspec.json.Decoder(dict[str, Any]).decode


def _detail(text: str) -> dict[str, Any]:
    """Four times as fast as Python's reader, which is left for what only that one reads: inf."""
    try:
        return _plain_json(text)
    except msgspec.MsgspecError:
        content: dict[str, Any] = json.loads(text)
        return content


def intent_row(action: Action, epoch: int, now: float) -> Row:
    """An act's values, in the order of INTENT_COLUMNS."""
    return (
        epoch, float(now), action.verb.value, int(action.key), label(action.key), int(action.record),
        float(action.submit), int(action.restarts), _json(list(action.nodes)), float(action.until),
        int(action.whole_record), plain(action.why),
    )  # fmt: skip


def outcome_row(outcome: Outcome, now: float) -> Row:
    """An outcome's values, in the order of OUTCOME_COLUMNS."""
    return outcome.result.value, plain(outcome.detail), float(now), float(outcome.seconds)


def intent_of(number: int, act: Row, came: Row) -> Intent:
    """The intent of its unsealed halves."""
    epoch, time, verb, key, _, record, submit, restarts, nodes, until, whole, why = act
    action = Action(
        Verb(verb), key, record, submit, restarts, tuple(json.loads(nodes)), until, bool(whole), why
    )
    if came[0] is None:
        return Intent(number, epoch, time, action)
    result, detail, concluded, seconds = came
    return Intent(number, epoch, time, action, Result(result), detail, concluded, seconds)


def mark_row(mark: Mark) -> Row:
    """A mark's values, in the order of MARK_COLUMNS."""
    return (
        int(mark.key), int(mark.whole_record), int(mark.record), float(mark.submit), int(mark.restarts),
        float(mark.gate_until), int(mark.pinned), float(mark.set_at), plain(mark.user_nodes),
        float(mark.gate_before), plain(mark.pin), plain(mark.size), plain(mark.user_size),
        int(mark.blameless), float(mark.user_begin),
    )  # fmt: skip


def mark_of(row: Row) -> Mark:
    """The mark of an unsealed row."""
    key, whole, record, submit, restarts, gate_until, pinned, *rest, blameless, user_begin = row
    later = *rest, bool(blameless), user_begin
    return Mark(key, record, bool(whole), submit, restarts, gate_until, bool(pinned), *later)


def moment_row(moment: TenantMoment, hourly: bool) -> Row:
    """A moment's values, in the order of MOMENT_COLUMNS."""
    numbers = (moment.weight, moment.had, moment.owed_quota, moment.owed_demand, moment.gpus, moment.demand)
    return float(moment.time), plain(moment.tenant), *map(float, numbers), int(hourly)


def moment_of(row: Row) -> TenantMoment:
    """The moment of an unsealed row."""
    return TenantMoment(*row[:-1])


def sealed(rows: Sequence[Row]) -> list[Row]:
    """Rows with their seals, as they are inserted."""
    return [(*row, seal(*row)) for row in rows]


def _json(value: Mapping[str, Any] | list[str]) -> str:
    """Python's own JSON, which knows inf: the rho of a job that was owed nothing."""
    try:
        return json.dumps(value, default=_bare, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(f"the journal keeps plain data only in a detail: {error}") from error


def _bare(value: Any) -> Any:
    """Numpy's scalars and arrays as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"not {one_of(type(value).__name__)}")
