"""Tables with a header: its columns are checked once, each row for its number of cells."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_fair.errors import InputError
from slurm_fair.trace.faults import Fault, nearest_of, shown
from slurm_fair.trace.files import Text, reading

# A place behind the file's name (`:12`) and the row's cells, stripped.
Row = tuple[str, list[str]]
_MOST_NAME = 100


@dataclass(frozen=True, slots=True)
class Table:
    """An open table: the names of its columns, and its rows, one by one."""

    columns: tuple[str, ...]
    rows: Iterator[Row | Fault]


@contextlib.contextmanager
def read_table(
    path: Path,
    required: Sequence[str],
    other_names: Mapping[str, str] | None = None,
    separator: str = ",",
    cure: Callable[[Sequence[str]], str] = lambda columns: "",
) -> Iterator[Table]:
    """A table from a file; `other_names` maps what a column may also be called to its name.

    `cure` says of the columns' names how to mend rows with too many or too few cells, "" = in the usual way.
    """
    with reading(path) as text:
        rows = _rows(path, text, separator)
        place, heads = next(rows, ("", []))
        if not heads:
            raise InputError(
                f"{path}: no header: its first line must name {', '.join(required) or 'its columns'}"
            )
        columns = _header(f"{path}{place}", heads, required, other_names or {})
        yield Table(columns, _even(rows, len(columns), cure(columns) or "give one for each column"))


def _rows(path: Path, text: Text, separator: str) -> Iterator[Row]:
    """Rows that are not blank; a quoted cell may hold line ends, so a row is placed by its first line."""
    if separator == "|":  # sacct quotes nothing
        reader = csv.reader(text, delimiter=separator, quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.reader(text, delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise InputError(f"{path}:{line}: row: not CSV ({problem}): mend its quotes") from None
        if cells is None:
            return
        cells = list(map(str.strip, cells))
        if len(cells) > 1 or any(cells):
            yield f":{line}", cells


def _even(rows: Iterator[Row], width: int, cure: str) -> Iterator[Row | Fault]:
    for place, cells in rows:
        if len(cells) == width:
            yield place, cells
        else:
            yield Fault(place, "row", f"has {len(cells)} cells, the header {width}: {cure}")


_OTHER_SEPARATORS = {"\t": "tabs", ";": "semicolons"}


def _refuse_other_separator(where: str, heads: Sequence[str], required: Sequence[str]) -> None:
    """Name what separates the columns of a table that seems to have one."""
    if len(heads) > 1 or len(required) < 2:
        return
    for separator, name in _OTHER_SEPARATORS.items():
        if separator in heads[0]:
            raise InputError(f"{where}: {name} are between its columns: put commas there")


def _header(
    where: str, heads: Sequence[str], required: Sequence[str], other_names: Mapping[str, str]
) -> tuple[str, ...]:
    _refuse_other_separator(where, heads, required)
    columns = tuple(other_names.get(head, head) for head in heads)
    seen: set[str] = set()
    for at, (head, column) in enumerate(zip(heads, columns, strict=True), start=1):
        if not head or not head.isprintable() or len(head) > _MOST_NAME:
            raise InputError(f"{where}: column {at} has no short name that can be printed: give it one")
        if column in seen:
            raise InputError(f"{where}: {shown(head)}: the column is there twice: keep one of them")
        seen.add(column)
    for missing in (name for name in required if name not in columns):
        free = [head for head in columns if head not in required] or list(columns)
        raise InputError(
            f"{where}: no column {missing}; the header needs {', '.join(required)}; "
            f"{nearest_of(missing, free, 'found:')}"
        )
    return columns
