"""Tables for terminals and pipes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import click

from slurm_fair_accounting import render
from slurm_fair_accounting.render import NOTHING
from slurm_fair_accounting.render import safe as clean

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")

__all__ = ["TextColumn", "clean", "duration", "instant", "on_terminal", "print_table", "takes_style"]


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A heading, the key of its values, and how they read."""

    title: str
    key: str
    text: Callable[[Any], str] = str
    is_name: bool = False  # to the left, also where all names are numbers


def on_terminal(stream: TextIO | None) -> bool:
    """True if somebody reads along; a stream that was closed before we began is None."""
    return stream is not None and stream.isatty()


def takes_style(stream: TextIO | None) -> bool:
    """True if it is a terminal that can show bold and coloured text, and somebody wants that."""
    return on_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_table(
    columns: Sequence[TextColumn], rows: Sequence[Mapping[str, Any]], parsable: bool = False
) -> None:
    """Aligned, numbers to the right; with | between columns when a program reads."""
    cells = [[clean(column.text(row[column.key])) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    if parsable:
        for line in (titles, *cells):
            click.echo("|".join(text.replace("|", "?") for text in line))
        return
    cells = [[render.as_put_out(text) for text in line] for line in cells]
    widths = [max(render.width(line[at]) for line in (titles, *cells)) for at in range(len(columns))]
    right = [
        not column.is_name and all(_is_number(line[at]) for line in cells) and bool(cells)
        for at, column in enumerate(columns)
    ]
    bold = takes_style(sys.stdout)
    head = "  ".join(
        render.in_columns(t, w, r) for t, w, r in zip(titles, widths, right, strict=True)
    ).rstrip()
    click.echo(click.style(head, bold=True) if bold else head)
    for line in cells:
        click.echo(
            "  ".join(
                render.in_columns(t, w, r) for t, w, r in zip(line, widths, right, strict=True)
            ).rstrip()
        )


def _is_number(text: str) -> bool:
    return text == NOTHING or _NUMBER.fullmatch(text) is not None


def duration(seconds: float | None) -> str:
    """`D-HH:MM:SS`, as Slurm prints it."""
    return NOTHING if seconds is None else render.duration_text(seconds)


def instant(epoch: float | None) -> str:
    """`YYYY-MM-DDTHH:MM:SS` in local time, as Slurm prints it."""
    return render.instant_text(epoch) if epoch else NOTHING
