"""The comparison of policies as a table: a metric a row, a policy a column, the best value marked."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import click

from slurm_fair.cli.simulate.repeats import Row, deviation_of, mean_of
from slurm_fair.cli.table import on_terminal, takes_style
from slurm_fair_accounting.render import NOTHING, duration_text

BEST, ALIKE = "*", "="
_WIDTH = 100
_GAP = 2

_plain, _seconds, _megabytes = "{:.2f}".format, "{:.1f} s".format, "{:.0f} MiB".format


class Better(Enum):
    """The better direction of a column's values, if there is one."""

    LOW = "low"
    HIGH = "high"
    NEITHER = "neither"


def _part(value: float) -> str:
    return f"{100 * value:.1f} %"


def _count(value: float) -> str:
    return str(int(value))


def count_text(value: float) -> str:
    """A whole number, or the mean of some."""
    return str(int(value)) if value == int(value) else f"{value:.1f}"


def _hours(value: float) -> str:
    return f"{value / 3600:.1f}"


def _milliseconds(value: float) -> str:
    return f"{1000 * value:.2f} ms"


@dataclass(frozen=True, slots=True)
class Metric:
    """A row: what it is called, its JSON key, how its values read, and which are better."""

    title: str
    key: str
    text: Callable[[float], str]
    better: Better = Better.LOW


GROUPS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    (
        "Time",
        (
            Metric("makespan", "makespan_s", duration_text),
            Metric("JCT, mean", "jct_mean_s", duration_text),
            Metric("JCT, median", "jct_p50_s", duration_text),
            Metric("JCT, p95", "jct_p95_s", duration_text),
            Metric("JCT, p99", "jct_p99_s", duration_text),
            Metric("wait, mean", "wait_mean_s", duration_text),
            Metric("slowdown, mean", "slowdown_mean", _plain),
            Metric("slowdown, p95", "slowdown_p95", _plain),
        ),
    ),
    (
        "Fairness",
        (
            Metric("jobs with sharing loss", "ltgf_job_loss_fraction", _part),
            Metric("unfair tenant hours", "ltgf_tenant_unfair_fraction", _part),
            Metric("Jain's index of tenants", "jain_tenants", _plain, Better.HIGH),
            Metric("worst FTF, static", "ftf_static_worst", _plain),
            Metric("unfair FTF, static", "ftf_static_unfair", _part),
            Metric("worst FTF, shockwave", "ftf_shockwave_worst", _plain),
            Metric("unfair FTF, shockwave", "ftf_shockwave_unfair", _part),
            Metric("worst FTF, themis", "ftf_themis_worst", _plain),
            Metric("unfair FTF, themis", "ftf_themis_unfair", _part),
            Metric("worst FTF, sia", "ftf_sia_worst", _plain),
            Metric("unfair FTF, sia", "ftf_sia_unfair", _part),
            Metric("latency ratio, mean", "latency_ratio_mean", _plain),
            Metric("latency ratio, max", "latency_ratio_max", _plain),
        ),
    ),
    (
        "Cluster",
        (
            Metric("utilisation", "utilization", _part, Better.HIGH),
            Metric("GPU-hours held", "gpu_seconds", _hours),
            Metric("idle GPUs while jobs wait", "fragments_mean", _plain),
            Metric("placement score", "placement_score", _plain, Better.HIGH),
            Metric("pre-emptions", "preemptions", _count),
            Metric("restarts", "restarts", _count),
            Metric("GPU time lost to them", "overhead_fraction", _part),
        ),
    ),
    (
        "This run",
        (
            Metric("jobs completed", "jobs_completed", _count, Better.HIGH),
            Metric("jobs submitted", "jobs_total", _count, Better.NEITHER),
            Metric("a decision, median", "decision_p50_s", _milliseconds, Better.NEITHER),
            Metric("a decision, p95", "decision_p95_s", _milliseconds, Better.NEITHER),
            Metric("CPU", "cpu_s", _seconds, Better.NEITHER),
            Metric("memory", "peak_rss_mb", _megabytes, Better.NEITHER),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that fits a metric: its name, what one of the JSON document counts in it, and the usual decimals."""

    name: str
    factor: float
    decimals: int


_UNITS: dict[Callable[[float], str], Unit] = {
    duration_text: Unit("h", 1 / 3600, 2),
    _part: Unit("%", 100, 1),
    _count: Unit("", 1, 0),
    _hours: Unit("h", 1 / 3600, 1),
    _milliseconds: Unit("ms", 1000, 2),
    _seconds: Unit("s", 1, 1),
    _megabytes: Unit("MiB", 1, 0),
}


def unit_of(metric: Metric) -> Unit:
    """The unit in which many values of a metric stand below each other or along an axis."""
    return _UNITS.get(metric.text, Unit("", 1, 2))


def metrics() -> Iterator[Metric]:
    return (metric for _, group in GROUPS for metric in group)


def metric_text(metric: Metric, row: Row) -> str:
    """One value as a person reads it; mean and spread where there are several runs."""
    text = _value_text(metric, mean_of(row, metric.key), row)
    if text == NOTHING or not row.get("repeated"):
        return text
    return f"{text} +- {_value_text(metric, deviation_of(row, metric.key), row)}"


def _value_text(metric: Metric, value: float | None, row: Row) -> str:
    """A value without its spread; the mean of whole numbers need not be one."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return count_text(value) if metric.text is _count and row.get("repeated") else metric.text(value)


def marks(metric: Metric, rows: Sequence[Row]) -> list[str]:
    """The policies with the best value as it reads; none when all read alike.

    Where others are no further from it than the greater of the two deviations, chance may have made the
    difference: then all of these are alike, and none is best.
    """
    values = [mean_of(row, metric.key) for row in rows]
    known = [value for value in values if value is not None]
    texts = [_value_text(metric, value, row) for value, row in zip(values, rows, strict=True)]
    if metric.better is Better.NEITHER or len(rows) < 2 or len(set(texts)) < 2:
        return [""] * len(rows)
    top = values.index(min(known) if metric.better is Better.LOW else max(known))
    alike = [text == texts[top] for text in texts]
    deviations = [deviation_of(row, metric.key) for row in rows]
    near = [
        value is not None and abs(value - (values[top] or 0.0)) < max(deviation, deviations[top])
        for value, deviation in zip(values, deviations, strict=True)
    ]
    if any(close and not same for close, same in zip(near, alike, strict=True)):
        return [ALIKE if close or same else "" for close, same in zip(near, alike, strict=True)]
    return [BEST if same else "" for same in alike]


def lines_of(rows: Sequence[Row], width: int = _WIDTH, bold: Callable[[str], str] = str) -> Iterator[str]:
    """The table; policies that do not fit beside each other follow below."""
    title = max(len(metric.title) for metric in metrics())
    texts = {metric: [metric_text(metric, row) for row in rows] for metric in metrics()}
    widths = [
        max(len(str(row["policy"])), *(len(column[at]) for column in texts.values())) + 1  # of the mark
        for at, row in enumerate(rows)
    ]
    for number, block in enumerate(_blocks(widths, width - title)):
        if number:
            yield ""
        names = (f"{rows[at]['policy']:>{widths[at] - 1}} " for at in block)
        yield bold(" " * title + "".join(" " * _GAP + name for name in names)).rstrip()
        for group, some in GROUPS:
            yield bold(group)
            for metric in some:
                signs = marks(metric, rows)
                values = (_marked(texts[metric][at], signs[at], widths[at], bold) for at in block)
                yield (metric.title.ljust(title) + "".join(" " * _GAP + v for v in values)).rstrip()


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    blocks: list[list[int]] = [[]]
    left = room
    for at, width in enumerate(widths):
        if blocks[-1] and width + _GAP > left:
            blocks.append([])
            left = room
        blocks[-1].append(at)
        left -= width + _GAP
    return blocks


def _marked(text: str, sign: str, width: int, bold: Callable[[str], str]) -> str:
    padded = text.rjust(width - 1)
    if sign != BEST:
        return padded + (sign or " ")
    return padded[: len(padded) - len(text)] + bold(text + BEST)


def print_comparison(rows: Sequence[Row], lead: Sequence[str], notes: Sequence[str]) -> None:
    """Print the table between lead and notes to standard output; emphasis only on a terminal that wants it."""
    click.echo("\n".join(lead) + "\n")
    terminal = on_terminal(sys.stdout)
    styled = takes_style(sys.stdout)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if terminal else _WIDTH
    for line in lines_of(rows, width, (lambda text: click.style(text, bold=True)) if styled else str):
        click.echo(line)
    if len(rows) > 1:
        click.echo(f"\n{BEST} best of these policies")
        if any(ALIKE in marks(metric, rows) for metric in metrics()):
            click.echo(f"{ALIKE} no difference: less lies between these than runs of one of them differ")
    for line in notes:
        click.echo(line)
