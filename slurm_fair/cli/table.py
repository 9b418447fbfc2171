"""Tables for terminals and pipes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, the key of its values, and how they read."""

    title: str
    key: str
    text: Callable[[Any], str] = str


def clean(text: str) -> str:
    """Without control characters: a job's name cannot drive the reader's terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def print_table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], parsable: bool = False) -> None:
    """Aligned, numbers to the right; with | between columns when a program reads."""
    cells = [[clean(column.text(row[column.key])) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    if parsable:
        for line in (titles, *cells):
            click.echo("|".join(line))
        return
    widths = [max(len(line[at]) for line in (titles, *cells)) for at in range(len(columns))]
    right = [all(_is_number(line[at]) for line in cells) and bool(cells) for at in range(len(columns))]
    bold = sys.stdout.isatty()
    head = "  ".join(_fit(t, w, r) for t, w, r in zip(titles, widths, right, strict=True)).rstrip()
    click.echo(click.style(head, bold=True) if bold else head)
    for line in cells:
        click.echo("  ".join(_fit(t, w, r) for t, w, r in zip(line, widths, right, strict=True)).rstrip())


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(".", "", 1).replace("-", "", 1).isdigit()


def _fit(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def duration(seconds: float | None) -> str:
    """`D-HH:MM:SS`, as Slurm prints it."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    days, rest = divmod(whole, 86_400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def instant(epoch: float | None) -> str:
    """`YYYY-MM-DDTHH:MM:SS` in local time, as Slurm prints it."""
    return "-" if not epoch else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(epoch))
