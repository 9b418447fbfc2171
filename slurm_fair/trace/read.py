"""Trace CSV in: every bad row is refused with its place and its cure, or left out and counted when asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from slurm_fair.errors import InputError
from slurm_fair.suggest import nearest
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.faults import BadCell, Fault, refuse, shown
from slurm_fair.trace.table import OPTIONAL, REQUIRED, Trace
from slurm_fair.trace.tabular import Row, read_table
from slurm_fair.trace.throughputs import Throughputs

OTHER_NAMES = {"static_duration_s": "declared_s", "application": "model"}
_ALIKE = 0.75
_TOGETHER = 2048  # rows, few enough that their text does not count beside what is kept of them


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace and what is not in it: bad rows, and what its source lists that is no GPU job, by reason."""

    trace: Trace
    bad: tuple[Fault, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    odd_columns: tuple[str, ...] = ()  # what may be wrong with names of columns


def read_trace(
    path: Path,
    *,
    skip_bad: bool = False,
    throughputs: Throughputs | None = None,
    need_durations: bool = True,
) -> Reading:
    """The jobs of a .csv or .csv.gz; InputError names the first bad row unless bad rows are to be skipped."""
    bad: list[Fault] = []
    with read_table(path, REQUIRED, OTHER_NAMES) as rows:
        collector = Collector(rows.columns, ColumnRules(throughputs, need_durations))
        while some := list(islice(rows.rows, _TOGETHER)):
            bad += _added(collector, some)
        odd = tuple(_odd(rows.columns))
    return replace(finished(path, collector, bad, skip_bad), odd_columns=odd)


def _odd(columns: Sequence[str]) -> Iterator[str]:
    """The columns that are kept as text though they nearly have the name of one that is not there."""
    absent = [name for name in OPTIONAL if name not in columns]
    for name in columns:
        if name in (*REQUIRED, *OPTIONAL):
            continue
        if near := nearest(name.casefold(), absent, _ALIKE):
            yield f"column {shown(name)} is kept as text: did you mean '{near}'?"


def _added(collector: Collector, rows: Sequence[Row | Fault]) -> list[Fault]:
    """Add rows, and say what is wrong with those that are not added."""
    whole = [row for row in rows if not isinstance(row, Fault)]
    if len(whole) == len(rows) and collector.add_together(whole):
        return []
    tried = (row if isinstance(row, Fault) else try_add(collector, *row) for row in rows)
    return [fault for fault in tried if fault]


def try_add(collector: Collector, place: str, row: list[str]) -> Fault | None:
    """Add a row, or say what is wrong with it."""
    try:
        collector.add(place, row)
    except BadCell as wrong:
        return Fault(place, wrong.column or "row", wrong.what)
    return None


def finished(
    path: Path,
    collector: Collector,
    bad: list[Fault],
    skip_bad: bool,
    left_out: Mapping[str, int] | None = None,
) -> Reading:
    """The trace that was collected, once the bad rows are dealt with; a trace without jobs is refused."""
    if not skip_bad:
        refuse(path, bad)
    if not len(collector):
        refuse(path, bad, "and no good row is in it")
        reasons = ", ".join(f"{count} {why}" for why, count in sorted((left_out or {}).items()))
        raise InputError(f"{path}: no job in it{f' (but {reasons})' if reasons else ''}: give at least one")
    return Reading(collector.trace(), tuple(bad), left_out or {})
