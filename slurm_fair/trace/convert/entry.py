"""The entry that a converter gives for each record: a job's cells, a fault, or a reason to leave it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from slurm_fair.trace.faults import BadCell, Fault, shown

_Record = TypeVar("_Record")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}")
_EPOCH = datetime(1970, 1, 1)

NO_GPU = "without GPUs"
NEVER_RAN = "that never ran"
STILL_RUNS = "that still ran when the log was taken"


@dataclass(frozen=True, slots=True)
class Entry:
    """One job, as cells of the Trace CSV."""

    place: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Left:
    """A record that is no GPU job with a known run time."""

    why: str


Item = Entry | Left | Fault


def each(
    records: Iterable[tuple[str, _Record] | Fault], read: Callable[[_Record], Mapping[str, str] | str]
) -> Iterator[Item]:
    """Each record through `read`, which gives cells, or why the record is left out, or raises BadCell."""
    for record in records:
        if isinstance(record, Fault):
            yield record
            continue
        place, content = record
        try:
            found = read(content)
        except BadCell as bad:
            yield Fault(place, bad.column or "row", bad.what)
        else:
            yield Left(found) if isinstance(found, str) else Entry(place, found)


def instant_of(text: str, column: str) -> float:
    """`YYYY-MM-DD HH:MM:SS` (or with T) as seconds; the zone is the log's own and does not matter."""
    if _INSTANT.fullmatch(text) is None:
        raise BadCell(f"{shown(text)} is no time: write YYYY-MM-DD HH:MM:SS", column)
    try:
        return (datetime.fromisoformat(text) - _EPOCH).total_seconds()
    except ValueError:
        raise BadCell(f"{shown(text)} is a time that cannot be", column) from None


def of_column(column: str, parse: Callable[[str], float], text: str) -> float:
    """A cell's number; its fault names the source's own column."""
    try:
        return parse(text)
    except BadCell as bad:
        raise BadCell(bad.what, column) from None
