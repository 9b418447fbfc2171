"""Rows of a trace that were left out, told on standard error."""

from __future__ import annotations

from pathlib import Path

import click

from slurm_fair.cli.table import clean
from slurm_fair.model.counted import counted
from slurm_fair.trace import Reading

_MOST_LISTED = 20


def list_bad(path: Path, reading: Reading) -> None:
    """The bad rows that were left out, and what may be wrong with columns, on standard error."""
    for note in reading.odd_columns:
        click.echo(f"note: {clean(path)}: {clean(note)}", err=True)
    for fault in reading.bad[:_MOST_LISTED]:
        click.echo(f"left out: {clean(fault.words(path))}", err=True)
    if len(reading.bad) > _MOST_LISTED:
        click.echo(f"left out: {counted(len(reading.bad) - _MOST_LISTED, 'more bad row')}", err=True)
