"""`slurm-fair check`: the doctor."""

from __future__ import annotations

import json
import logging
import sys
import time

import click

from slurm_fair.cli.base import site_of
from slurm_fair.cli.status import JSON
from slurm_fair.cli.table import clean, takes_style
from slurm_fair.doctor import Diagnosis, Finding, Level, examine
from slurm_fair.errors import SlurmFairError
from slurm_fair.model.counted import counted

_FIRST = (Level.ERROR, Level.WARNING, Level.OK)
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}


@click.command()
@JSON
@click.option("--problems", is_flag=True, help="Show only findings that are not ok.")
@click.pass_context
def check(context: click.Context, as_json: bool, problems: bool) -> None:
    """Look whether this site can give leases: Slurm, rights, settings, plugin, clock, storage; with cures.

    Errors come first, then warnings. Changes nothing. Run it as the account that runs the daemon.
    Exit code 0 when no error was found (warnings may be), 1 when one was.
    """
    site = site_of(context)
    logging.getLogger("slurm_fair").addHandler(logging.NullHandler())  # the findings say it, with cures
    diagnosis = examine(site.config, site.places, time.time())
    shown = [(area, f) for area, f in diagnosis.findings if not (problems and f.level is Level.OK)]
    if as_json:
        click.echo(json.dumps(_document(diagnosis, shown)))
    else:
        _print(sorted(shown, key=lambda one: _FIRST.index(one[1].level)))
        click.echo(f"\n{_summary(diagnosis)}")
    if not diagnosis.sound:
        raise SlurmFairError(f"errors were found ({diagnosis.count(Level.ERROR)}): mend these first")


def _document(diagnosis: Diagnosis, shown: list[tuple[str, Finding]]) -> dict[str, object]:
    return {
        "sound": diagnosis.sound,
        "counts": {level.value: diagnosis.count(level) for level in Level},
        "findings": [
            {"area": area, "level": f.level.value, "what": f.what, "cure": f.cure} for area, f in shown
        ],
    }


def _summary(diagnosis: Diagnosis) -> str:
    warnings, errors = (diagnosis.count(level) for level in (Level.WARNING, Level.ERROR))
    return f"{diagnosis.count(Level.OK)} ok, {counted(warnings, 'warning')}, {counted(errors, 'error')}"


def _print(shown: list[tuple[str, Finding]]) -> None:
    colour = takes_style(sys.stdout)
    for area, finding in shown:
        level = f"{finding.level.value:<8}"
        head = click.style(level, fg=_COLOURS[finding.level]) if colour else level
        click.echo(f"{head} {area:<10} {clean(finding.what)}")
        if finding.cure:
            click.echo(f"{'':19} cure: {clean(finding.cure)}")
