"""Reports as text: a table, `|`-separated, CSV or JSON. Foreign names never reach a terminal raw."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.table import Column, Kind, Report, Row

NOTHING = "-"
_LEFT = (Kind.TEXT, Kind.INSTANT, Kind.DAY)
_MOST_TEXT = 1000


def safe(text: object) -> str:
    """Text without control characters, escape sequences and marks of direction."""
    return "".join(char if char.isprintable() else "?" for char in str(text))[:_MOST_TEXT]


def as_put_out(text: str) -> str:
    """A text as standard output shows it, so that its width can be counted: what its encoding lacks is escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":  # click takes it for a mistake and writes UTF-8
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def width(text: str) -> int:
    """The columns of a terminal that a text takes: letters of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # mostly nobody needs it, and it takes its time

    return cell_len(text)


def in_columns(text: str, wide: int, right: bool) -> str:
    """A text in so many columns of a terminal."""
    blanks = " " * max(wide - width(text), 0)
    return blanks + text if right else text + blanks


def duration_text(seconds: float) -> str:
    """A duration as Slurm prints it: [D-]HH:MM:SS."""
    whole = round(seconds)
    sign, whole = ("-", -whole) if whole < 0 else ("", whole)
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{sign}{days}-{clock}" if days else sign + clock


def instant_text(time: float) -> str:
    """An instant as Slurm prints it, in the local time zone."""
    return datetime.fromtimestamp(time).isoformat(timespec="seconds")


def day(time: float) -> str:
    """The date of an instant, in the local time zone."""
    return datetime.fromtimestamp(time).date().isoformat()


_WRITERS: dict[Kind, Callable[[Any], str]] = {
    Kind.TEXT: safe,
    Kind.COUNT: lambda value: str(int(value)),
    Kind.GPU_HOURS: lambda value: f"{value / 3600:.2f}",
    Kind.SECONDS: duration_text,
    Kind.INSTANT: instant_text,
    Kind.DAY: day,
    Kind.RATIO: lambda value: f"{value:.3f}",
    Kind.PART: lambda value: f"{100 * value:.1f}",
}


def cell(value: Any, kind: Kind) -> str:
    """One value as a person reads it; what is not known is a dash."""
    return NOTHING if value is None or value == "" else _WRITERS[kind](value)


def cell_texts(report: Report, most: int | None = None, wide: bool = True) -> list[list[str]]:
    """All values as a person reads them, of at most so many rows and the total; not wide = those of a terminal."""
    columns = [column for column in report.columns if wide or not column.wide]
    rows = (*report.rows[:most], *report.lines[len(report.rows) :])
    return [[cell(row[column.key], column.kind) for column in columns] for row in rows]


def table(report: Report, header: bool = True) -> str:
    """Aligned columns under their titles, with the exact period above, for standard output."""
    body = [[as_put_out(text) for text in line] for line in cell_texts(report, wide=False)]
    columns = [column for column in report.columns if not column.wide]
    titles = [column.title for column in columns]
    widths = [max(map(width, texts)) for texts in zip(titles, *body, strict=True)]
    rule = ["-" * wide for wide in widths]
    lines = [titles, rule, *body] if header else body
    aligned = ["  ".join(map(_align, line, widths, columns)) for line in lines]
    banner = _banner(report) if header else []
    return "".join(f"{line.rstrip()}\n" for line in [*banner, *aligned])


def _align(text: str, wide: int, column: Column) -> str:
    return in_columns(text, wide, column.kind not in _LEFT)


def _banner(report: Report) -> list[str]:
    period, *others = about(report)
    return [f"{report.title}, {period}", *others, ""]


def about(report: Report) -> list[str]:
    """The exact period, and what else there is to know before its numbers are read."""
    lines = [_span(report.asked)]
    if report.covered != report.asked:
        lines.append(f"accounts cover {_span(report.covered)}")
    if report.note:
        lines.append(f"note: {safe(report.note)}")
    return lines


def _span(period: Period) -> str:
    return f"{instant_text(period.start)} to {instant_text(period.end)} ({duration_text(period.seconds)})"


def parsable(report: Report, header: bool = True) -> str:
    """`|` between the values and none at the end, like sacct -P."""
    titles = [[column.title for column in report.columns]] if header else []
    lines = ["|".join(text.replace("|", "?") for text in line) for line in [*titles, *cell_texts(report)]]
    return "".join(f"{line}\n" for line in lines)


def as_csv(report: Report, header: bool = True) -> str:
    """Plain numbers in the units that the column names say; times in local ISO form."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow([column.key for column in report.columns])
    writer.writerows(
        [[_csv_cell(row[column.key], column.kind) for column in report.columns] for row in report.lines]
    )
    return out.getvalue()


def _csv_cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return ""
    if kind is Kind.TEXT:
        text = safe(value)
        # A spreadsheet would run these as formulas.
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return _WRITERS[kind](value) if kind in (Kind.INSTANT, Kind.DAY) else _plain(value)


def as_json(report: Report) -> str:
    """One document; times in epoch seconds, durations in seconds, null for what is not known."""
    document: dict[str, Any] = {
        "report": report.name,
        "period": {"start": report.asked.start, "end": report.asked.end},
        "covered": {"start": report.covered.start, "end": report.covered.end},
        "note": report.note,
        "rows": [_object(report, row) for row in report.rows],
    }
    if report.total is not None:
        document["total"] = _object(report, report.total)
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _object(report: Report, row: Row) -> dict[str, Any]:
    return {column.key: _plain(row[column.key]) for column in report.columns}


def _plain(value: Any) -> Any:
    """JSON has no infinity: a job that was owed nothing and had something has no rho there."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
