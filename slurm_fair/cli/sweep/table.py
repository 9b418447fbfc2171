"""`slurm-fair sweep table`: the results of a sweep as a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from slurm_fair.cli.simulate.options import FILE
from slurm_fair.cli.simulate.table import ALIKE, BEST, Metric, marks, metrics, unit_of
from slurm_fair.cli.simulate.text import many
from slurm_fair.cli.status import JSON
from slurm_fair.cli.sweep.groups import METRICS, Group, by_load, groups_of
from slurm_fair.cli.sweep.progress import failure
from slurm_fair.cli.sweep.results_file import DONE, About, ResultsFile
from slurm_fair.cli.sweep.task import Row
from slurm_fair.cli.table import clean, takes_style
from slurm_fair.errors import InputError
from slurm_fair_accounting.forms import one_form
from slurm_fair_accounting.render import NOTHING

USUAL = (
    "jct_mean_s", "makespan_s", "slowdown_mean", "ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction",
    "ftf_static_worst", "preemptions",
)  # fmt: skip
_WORDS = ("policy", "lease, s", "load")
_KEYS = ("policy", "lease_s", "load")
_HEAD_WIDTH = 11
_MOST_FAILURES = 20


@click.command("table")
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--metric",
    "wanted",
    type=METRICS,
    help="Metrics to show, by their JSON keys; a usual choice in the table, all in --json and --csv unless given.",
)
@click.option("--each", is_flag=True, help="A row for each seed, in the place of mean and spread over them.")
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated, in plain units.")
def table_command(
    file: Path, wanted: tuple[Metric, ...] | None, each: bool, as_json: bool, as_csv: bool
) -> None:
    """Print the results in FILE, means over the seeds with their standard deviation.

    \b
    slurm-fair sweep table sweep.db
    slurm-fair sweep table sweep.db --metric jct_mean_s,jain_tenants --csv > sweep.csv

    The file may be that of a sweep that still runs. docs/schema/sweep-table.json has the keys of --json.
    """
    one_form({"--json": as_json, "--csv": as_csv})
    with ResultsFile.to_read(file) as results:
        about, rows = results.about(), results.rows()
    if about is None or not rows:
        raise InputError(f"{file}: no run is in it yet: wait, or go on with the same slurm-fair sweep TRACE")
    say_versions(rows)
    keys = [metric.key for metric in wanted or ()]
    groups = _single(rows) if each else groups_of(rows)
    if as_json:
        click.echo(json.dumps(sweep_document(about, rows, groups, keys), allow_nan=False))
    elif as_csv:
        _write_csv(groups, keys or _all_keys(groups))
    else:
        print_groups(groups, wanted or usual_metrics(), each)
        print_failures(rows)


def usual_metrics() -> tuple[Metric, ...]:
    """The metrics of the table unless others are asked for."""
    known = {metric.key: metric for metric in metrics()}
    return tuple(known[key] for key in USUAL)


def _single(rows: Sequence[Row]) -> list[Group]:
    return [group for row in rows for group in groups_of([row])]


def _all_keys(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(key for group in groups for key in group.over_seeds["mean"]))


def sweep_document(about: About, rows: Sequence[Row], groups: Sequence[Group], keys: Sequence[str]) -> Row:
    """The document of --json."""
    failed = [
        {name: row[name] for name in ("policy", "lease_s", "load", "seed", "problem")}
        for row in rows
        if row["state"] != DONE
    ]
    return {
        "trace": dict(about.trace),
        "cluster": dict(about.cluster),
        "options": dict(about.options),
        "results": [group.document(keys) for group in groups],
        "failures": failed,
    }


def _write_csv(groups: Sequence[Group], keys: Sequence[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*_KEYS, "seeds", "failed", *(name for key in keys for name in (key, f"{key}_spread"))])
    for group in groups:
        values = [value for key in keys for value in (group.mean(key), group.deviation(key))]
        seeds = " ".join(map(str, group.seeds))
        lead = [
            group.policy,
            "" if group.lease_s is None else group.lease_s,
            group.load,
            seeds,
            len(group.lost),
        ]
        writer.writerow([*lead, *("" if math.isnan(value) else repr(value) for value in values)])


# -- for people -----------------------------------------------------------------------------------------------


def print_groups(groups: Sequence[Group], shown: Sequence[Metric], each: bool = False) -> None:
    """A line for each group under heads of several lines; the best of each load is marked, not that of a seed."""
    signs = [[" "] * len(shown) for _ in groups] if each else _signs(groups, shown)
    lines = [
        [*_lead(group), _seeds(group, each), *_values(group, shown, sign)]
        for group, sign in zip(groups, signs, strict=True)
    ]
    heads = [_head(title) for title in (*_WORDS, "seed" if each else "seeds")]
    heads += [[f"{line} " for line in _head(_title(metric))] for metric in shown]  # above the marks
    widths = [
        max(map(len, (*head, *texts))) for head, texts in zip(heads, zip(*lines, strict=True), strict=True)
    ]
    most = max(map(len, heads))
    bold = takes_style(sys.stdout)
    for at in range(most):
        texts = [head[at - most + len(head)] if at >= most - len(head) else "" for head in heads]
        click.echo(click.style(_aligned(texts, widths), bold=True) if bold else _aligned(texts, widths))
    for line in lines:
        click.echo(_aligned(line, widths))
    marks_ = {mark for sign in signs for mark in sign}
    if BEST in marks_:
        click.echo(f"\n{BEST} best at this load")
    if ALIKE in marks_:
        click.echo(f"{ALIKE} no difference: less lies between these than runs of one of them differ")


def _aligned(texts: Sequence[str], widths: Sequence[int]) -> str:
    sides = (text.ljust if not at else text.rjust for at, text in enumerate(texts))
    return "  ".join(side(width) for side, width in zip(sides, widths, strict=True)).rstrip()


def _head(title: str) -> list[str]:
    return textwrap.wrap(title, _HEAD_WIDTH, break_long_words=False)


def _title(metric: Metric) -> str:
    unit = unit_of(metric).name
    return f"{metric.title}, {unit}" if unit else metric.title


def _signs(groups: Sequence[Group], shown: Sequence[Metric]) -> list[list[str]]:
    """The mark of each value among those of the same load."""
    found = [[" "] * len(shown) for _ in groups]
    at = {id(group): row for row, group in enumerate(groups)}
    for alike in by_load([group for group in groups if group.seeds]):
        for column, metric in enumerate(shown):
            for group, sign in zip(alike, marks(metric, [one.row for one in alike]), strict=True):
                found[at[id(group)]][column] = sign or " "
    return found


def _lead(group: Group) -> list[str]:
    lease = "never ends" if group.lease_s is None else f"{group.lease_s:g}"
    return [clean(group.policy), lease, f"{group.load:g}"]


def _seeds(group: Group, each: bool) -> str:
    """The number of seeds that are done, or the only one."""
    if each:
        return f"{group.seeds[0]}" if group.seeds else f"{group.lost[0]} (failed)"
    return f"{len(group.seeds)}" + (f" ({len(group.lost)} failed)" if group.lost else "")


def _values(group: Group, shown: Sequence[Metric], signs: Sequence[str]) -> list[str]:
    return [_value(group, metric) + sign for metric, sign in zip(shown, signs, strict=True)]


def _value(group: Group, metric: Metric) -> str:
    mean, deviation, unit = group.mean(metric.key), group.deviation(metric.key), unit_of(metric)
    if math.isnan(mean):
        return NOTHING
    text = f"{mean * unit.factor:.{unit.decimals}f}"
    return text if math.isnan(deviation) else f"{text} +- {deviation * unit.factor:.{unit.decimals}f}"


def say_versions(rows: Sequence[Row]) -> None:
    """A line where runs of several releases stand side by side: their figures may differ for that alone."""
    counts = Counter(str(row["version"]) for row in rows if row["state"] == DONE)
    if len(counts) > 1:
        each = ", ".join(f"{version} ({many(count, 'run')})" for version, count in sorted(counts.items()))
        click.echo(f"note: the runs are of several releases: {clean(each)}", err=True)


def print_failures(rows: Sequence[Row]) -> None:
    """The runs without result and why."""
    failed = [row for row in rows if row["state"] != DONE]
    for row in failed[:_MOST_FAILURES]:
        click.echo(failure(row["run"], row["problem"]))
    if len(failed) > _MOST_FAILURES:
        click.echo(f"failed: {many(len(failed) - _MOST_FAILURES, 'more run')}")
