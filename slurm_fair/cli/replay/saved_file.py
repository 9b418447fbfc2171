"""A saved `sacct --parsable2` file as the past of a site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from slurm_fair.errors import InputError, SlurmTextError
from slurm_fair.slurm.history import FIELDS
from slurm_fair.slurm.past import MORE_FIELDS, Listing, Past
from slurm_fair.trace.convert.sacct import free_texts
from slurm_fair.trace.faults import BadCell, Fault, refuse, shown
from slurm_fair.trace.status import end_of
from slurm_fair.trace.tabular import Table, read_table

TIMES = ("Submit", "Start", "End")
_NEEDED = ("JobID", "Account", "User", "Submit", "State")
_EITHER = ("AllocTRES", "ReqTRES")
_KEPT = (*FIELDS, *MORE_FIELDS)
SAVE = (
    "TZ=UTC sacct --parsable2 --duplicates --allusers --allocations --starttime now-30days "
    f"--format {','.join(_KEPT)}"
)
_ELAPSED = "ElapsedRaw"  # of a job that runs it tells when the file was saved
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_EPOCH = re.compile(r"[0-9]{1,11}")


@dataclass(frozen=True, slots=True)
class Saved:
    """The content of a file of sacct."""

    past: Past
    until: float  # the last instant that it speaks of
    bad: tuple[Fault, ...]


def has_times(path: Path) -> bool:
    """True if a file of sacct tells when runs started and ended; another file is refused."""
    with _table(path) as rows:
        return set(TIMES) <= set(rows.columns)


def read_saved(path: Path, skip_bad: bool) -> Saved:
    """Every run in the file; times are epoch seconds, or read as UTC."""
    listing, bad, until = Listing(), list[Fault](), 0.0
    seen: dict[tuple[str, ...], str] = {}
    with _table(path) as rows:
        _check(path, rows.columns)
        at = {name: place for place, name in enumerate(rows.columns) if name in (*_KEPT, _ELAPSED)}
        nothing = dict.fromkeys((*_KEPT, _ELAPSED), "")
        for row in rows.rows:
            if isinstance(row, Fault):
                bad.append(row)
                continue
            place, cells = row
            named = nothing | {name: cells[column] for name, column in at.items()}
            try:
                in_seconds = _in_seconds(named)
                _refuse_backwards(in_seconds)
                _refuse_double(in_seconds, seen, place)
                end_of(named["State"])
                listing.add(in_seconds)
            except SlurmTextError as wrong:
                bad.append(Fault(place, "row", str(wrong)))
                continue
            except BadCell as wrong:
                bad.append(Fault(place, "State", wrong.what))
                continue
            until = max(until, _last(in_seconds))
    if not skip_bad:
        refuse(path, bad)
    return Saved(listing.past(), until, tuple(bad))


def _table(path: Path) -> AbstractContextManager[Table]:
    return read_table(path, _NEEDED, separator="|", cure=lambda columns: free_texts(columns, SAVE))


def _check(path: Path, columns: tuple[str, ...]) -> None:
    for name in TIMES:
        if name not in columns:
            raise InputError(
                f"{path}:1: no column {name}: save it again, so that it tells what really happened, with {SAVE}"
            )
    if not set(_EITHER) & set(columns):
        raise InputError(f"{path}:1: no column {' or '.join(_EITHER)}: ask sacct for it with --format")


def _refuse_backwards(cells: Mapping[str, str]) -> None:
    """A run cannot end before it starts, nor start before its job is submitted."""
    # Nor does a requeue bring that about: the next run has a row of its own, with its own submission.
    submit, start, end = (int(_number(cells[name])) for name in TIMES)
    if 0 < end < start:
        raise SlurmTextError("End: the run ends before it starts")
    if 0 < start < submit:
        raise SlurmTextError("Start: the run starts before its job is submitted")


def _refuse_double(cells: Mapping[str, str], seen: dict[tuple[str, ...], str], place: str) -> None:
    """A run that is there twice, as in files of overlapping periods put together, would be two jobs."""
    run = tuple(cells[name] for name in ("JobID", "Submit", "Start"))
    first = seen.setdefault(run, place)
    if first != place and _EPOCH.fullmatch(cells["Start"]):
        raise SlurmTextError(f"this run of job {shown(run[0])} is there twice, first at {first[1:]}")


def _in_seconds(cells: Mapping[str, str]) -> dict[str, str]:
    """The same cells with every time as epoch seconds."""
    return {name: _seconds(name, text) if name in TIMES else text for name, text in cells.items()}


def _seconds(name: str, text: str) -> str:
    if _INSTANT.fullmatch(text):
        try:
            return str(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))
        except ValueError:
            raise SlurmTextError(f"{name}: {shown(text)} is a time that cannot be") from None
    if name == "Submit" and not _EPOCH.fullmatch(text):
        raise SlurmTextError(f"{name}: {shown(text)} is no time: YYYY-MM-DDTHH:MM:SS or epoch seconds")
    return text


def _last(cells: Mapping[str, str]) -> float:
    """The last instant that a row speaks of."""
    _, start, end = times = [_number(cells[name]) for name in TIMES]
    runs = start > 0 and not end
    return max(*times, start + _number(cells[_ELAPSED]) if runs else 0.0)


def _number(text: str) -> float:
    """Seconds; 0 for a word that is no number."""
    return float(text) if _EPOCH.fullmatch(text) else 0.0
