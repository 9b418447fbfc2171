"""The charts of each report's page: fairness and GPU time, curves of many jobs, days, leases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from slurm_fair_accounting.drawing import page, plot
from slurm_fair_accounting.drawing.bars import Measure, bars
from slurm_fair_accounting.drawing.lease_lanes import NOT_ENDED, lanes_of
from slurm_fair_accounting.drawing.plot import Axis, Numbers, Series
from slurm_fair_accounting.render import cell, day
from slurm_fair_accounting.source.period import Period, days
from slurm_fair_accounting.table import Kind, Report, Row

RHO_SHOWN = 2.0  # rho above it is drawn at it
MOST_BARS = 40
MOST_CURVES = page.COLOURS - 1  # and one for all tenants, or for the others
MOST_COLUMNS = 366
_MOST_DATES = 6
_UNITS = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0))
_MORE_ROOM = 1.02
_FAIR = f"rho = GPU time had / GPU time owed; 1 is fair, above {RHO_SHOWN:g} is drawn there."


# -- tenants --------------------------------------------------------------------------------------------------


def _tenants(report: Report) -> str:
    shown = _largest(report.rows, "owed_gpu_seconds", "had_gpu_seconds")
    if not shown:
        return page.section("Fairness and GPU time", "No tenant had or was owed anything in this period.")
    names = [str(row["tenant"]) for row in shown]
    axis = plot.linear_axis("rho", 0.0, RHO_SHOWN, 4)
    rho = Measure("rho", plot.values_of(shown, "rho"), _words(shown, "rho", Kind.RATIO))
    note = f"{_FAIR}{_of_many('tenants that were owed and had the most', len(shown), len(report.rows))}"
    had = _hours("had", shown, "had_gpu_seconds", 0)
    owed = _hours("owed", shown, "owed_gpu_seconds", 1)
    figures = page.side_by_side(
        bars("Long-term GPU-time fairness (rho)", names, [rho], axis, 1.0),
        bars("GPU time had and owed", names, [had, owed], _hours_axis(had.values, owed.values)),
    )
    return page.section("Fairness and GPU time", note, figures)


def _fairness(report: Report) -> str:
    shown = _largest(report.rows, "jobs")
    if not shown:
        return page.section("Fairness", "No tenant had a job in this period.")
    names = [str(row["tenant"]) for row in shown]

    def measure(name: str, key: str, place: int) -> Measure:
        return Measure(name, plot.values_of(shown, key), _words(shown, key, Kind.RATIO), place)

    parts = [
        measure("jobs with sharing loss", "ltgf_job_loss_fraction", 0),
        measure("unfair hours", "ltgf_tenant_unfair_fraction", 1),
        measure("jobs with unfair FTF, static", "ftf_static_unfair", 2),
    ]
    waits = [measure("mean", "latency_ratio_mean", 0), measure("worst", "latency_ratio_max", 1)]
    note = (
        "Sharing loss: the part of a tenant's jobs that had less than they were owed. Unfair FTF: the part that "
        "ended later than with an equal part of the cluster. Unfair hours: the part of the hours with demand in "
        "which the tenant had less than its share."
        f"{_of_many('tenants with the most jobs', len(shown), len(report.rows))}"
    )
    most = _most(np.concatenate([one.values for one in waits]))
    figures = page.side_by_side(
        bars("Unfairly treated", names, parts, plot.linear_axis("part", 0.0, 1.0, 4)),
        bars(
            "Latency ratio", names, waits, plot.linear_axis("time waited / expected run time", 0.0, most, 4)
        ),
    )
    return page.section("Fairness", note, figures)


def _largest(rows: Sequence[Row], *keys: str) -> list[Row]:
    """The rows with the most of these keys in all, as many as can be drawn, in their own order."""
    if len(rows) <= MOST_BARS:
        return list(rows)
    sizes = np.sum([np.nan_to_num(plot.values_of(rows, key)) for key in keys], axis=0)
    return [rows[row] for row in sorted(np.argsort(-sizes, kind="stable")[:MOST_BARS].tolist())]


def _of_many(which: str, shown: int, count: int) -> str:
    return f" Drawn are the {shown} of {count} {which}." if shown < count else ""


def _hours(name: str, rows: Sequence[Row], key: str, place: int) -> Measure:
    return Measure(name, plot.values_of(rows, key) / 3600, _words(rows, key, Kind.GPU_HOURS), place)


def _hours_axis(*values: Numbers) -> Axis:
    return plot.linear_axis("GPU-hours", 0.0, _most(np.concatenate(values)), 4)


# -- jobs and waits -------------------------------------------------------------------------------------------


def _jobs(report: Report) -> str:
    over = [row for row in report.rows if row["end"] is not None]
    if not over:
        return page.section("Ended jobs", "No job ended in this period.")
    tenants = [str(row["tenant"]) for row in over]
    seconds, rho = plot.values_of(over, "end") - plot.values_of(over, "submit"), plot.values_of(over, "rho")
    note = (
        f"A curve shows, for each value, the part of the {len(over)} ended jobs with no more than it. {_FAIR}"
    )
    note += _most_jobs(Counter(tenants))
    figures = page.side_by_side(
        _cumulative(
            "Completion time (JCT)",
            tenants,
            seconds,
            plot.logarithmic("from submission to end, log", seconds, seconds=True),
        ),
        _cumulative(
            "Long-term GPU-time fairness (rho)", tenants, rho, plot.linear_axis("rho", 0.0, RHO_SHOWN, 5), 1.0
        ),
    )
    return page.section("Ended jobs", note, figures)


def _waits(report: Report) -> str:
    pairs = [(tenant, seconds) for tenant, some in report.samples.items() for seconds in some]
    if not pairs:
        return page.section("Waits", "No job ended in this period.")
    tenants, waited = [tenant for tenant, _ in pairs], np.array([seconds for _, seconds in pairs])
    note = (
        f"A curve shows, for each time, the part of the {len(pairs)} ended jobs that waited no longer, pre-empted "
        f"time included. Jobs that never waited are counted at its left end.{_most_jobs(Counter(tenants))}"
    )
    axis = plot.logarithmic("waited, log", waited, seconds=True)
    figures = page.side_by_side(
        _cumulative("Time waited", tenants, waited, axis),
        _percentiles(_largest(report.rows, "jobs")),
    )
    return page.section("Waits", note, figures)


def _percentiles(shown: Sequence[Row]) -> str:
    most = _most(plot.values_of(shown, "wait_p95_seconds"))
    unit, seconds = next((pair for pair in _UNITS if most <= 120 * pair[1]), _UNITS[-1])
    measures = [
        Measure(name, plot.values_of(shown, key) / seconds, _words(shown, key, Kind.SECONDS), place)
        for place, (name, key) in enumerate((("median", "wait_p50_seconds"), ("p95", "wait_p95_seconds")))
    ]
    names = [str(row["tenant"]) for row in shown]
    axis = plot.linear_axis(f"waited, {unit}", 0.0, most / seconds, 4)
    return bars("Median and 95th percentile of the waits", names, measures, axis)


def _most_jobs(counts: Mapping[str, int]) -> str:
    return _of_many("tenants with the most jobs", min(MOST_CURVES, len(counts)), len(counts))


def _cumulative(
    caption: str,
    tenants: Sequence[str],
    values: Numbers,
    x: Axis,
    across: float = math.nan,
    of_what: str = "jobs",
) -> str:
    """A curve for all, and one for each of the tenants with the most."""
    whose = np.array(tenants, dtype=object)
    common = [name for name, _ in Counter(tenants).most_common(MOST_CURVES)]
    series = [plot.cumulative(name, values[whose == name], 1 + place) for place, name in enumerate(common)]
    if len(common) != 1:
        series.insert(0, plot.cumulative("all tenants", values, 0))
    return plot.chart(caption, series, x, plot.linear_axis(f"part of the {of_what}", 0.0, 1.0, 5), across)


# -- usage ----------------------------------------------------------------------------------------------------


def _usage(report: Report) -> str:
    total: Counter[str] = Counter()
    for row in report.rows:
        total[str(row["tenant"])] += row["gpu_seconds"]
    if not total:
        return page.section("GPU-hours", "Nothing ran in this period.")
    shown: list[Row] = [{"tenant": name, "gpu_seconds": used} for name, used in total.most_common(MOST_BARS)]
    used = _hours("used", shown, "gpu_seconds", 0)
    note = f"What ran, in GPU-hours.{_of_many('tenants that used the most', len(shown), len(total))}"
    whole = bars(
        "GPU-hours in the period", [str(row["tenant"]) for row in shown], [used], _hours_axis(used.values)
    )
    return page.section(
        "GPU-hours", note, page.side_by_side(_by_day(report, list(total.most_common())), whole)
    )


def _by_day(report: Report, total: Sequence[tuple[str, float]]) -> str:
    """A column a day, or a column for some days where there are very many."""
    calendar = days(report.asked.start, report.asked.end)
    each = -(-len(calendar) // MOST_COLUMNS)
    joined = calendar[::each]
    column_of = {one.start: place // each for place, one in enumerate(calendar)}
    names = [name for name, _ in total]
    own = names if len(names) <= page.COLOURS else names[:MOST_CURVES]
    layer_of = {name: place for place, name in enumerate(own)}
    hours = np.zeros((len(own) + (len(own) < len(names)), len(joined)))
    for row in report.rows:
        hours[layer_of.get(str(row["tenant"]), len(own)), column_of[row["day"]]] += row["gpu_seconds"] / 3600
    labels = own if len(own) == len(names) else [*own, f"{len(names) - len(own)} others"]
    layers = [Series(name, np.zeros(0), hours[place], place) for place, name in enumerate(labels)]
    edges = np.array([*(one.start for one in joined), report.asked.end])
    caption = "GPU-hours by day and tenant" if each == 1 else f"GPU-hours by {each} days and tenant"
    y = plot.linear_axis("GPU-hours", 0.0, _most(hours.sum(axis=0)), 5)
    return plot.columns(
        caption, layers, edges, [day(one.start) for one in joined], _dates(joined, report.asked), y
    )


def _dates(shown: Sequence[Period], asked: Period) -> Axis:
    """An axis of days, a date under the beginning of those that leave room for it."""
    ticks: list[tuple[float, str]] = []
    for one in shown:
        if not ticks or one.start - ticks[-1][0] >= asked.seconds / _MOST_DATES:
            ticks.append((one.start, day(one.start)))
    return Axis("day", asked.start, asked.end, ticks=tuple(ticks))


# -- leases ---------------------------------------------------------------------------------------------------


def _leases(report: Report) -> str:
    if not report.rows:
        return page.section("Leases", "No lease was granted or renewed in this period.")
    counts = Counter(str(row["ended_by"]) or NOT_ENDED for row in report.rows)
    ways = [way for way, _ in counts.most_common()]
    number = np.array([counts[way] for way in ways], dtype=np.float64)
    ended = bars(
        "Ends of leases",
        ways,
        [Measure("leases", number, [f"{counts[way]}" for way in ways])],
        plot.linear_axis("leases", 0.0, _most(number), 4),
    )
    whole = [row for row in report.rows if row["start"] is not None and row["end"] is not None]
    tenants = {str(row["tenant"]) for row in whole}
    note = f"{len(report.rows)} leases: grants and renewals."
    note += _of_many("tenants with the most leases", min(MOST_CURVES, len(tenants)), len(tenants))
    figures = [ended, _held(whole)] if whole else [ended]
    return page.section("Leases", note, page.side_by_side(*figures), lanes_of(report))


def _held(whole: Sequence[Row]) -> str:
    held = plot.values_of(whole, "end") - plot.values_of(whole, "start")
    axis = plot.logarithmic("from start to end, log", held, seconds=True)
    tenants = [str(row["tenant"]) for row in whole]
    return _cumulative("Time that leases were held", tenants, held, axis, of_what="leases that ended")


# -- values ---------------------------------------------------------------------------------------------------


def _words(rows: Sequence[Row], key: str, kind: Kind) -> list[str]:
    return [cell(row[key], kind) for row in rows]


def _most(values: Any) -> float:
    """The end of an axis that shows all of these."""
    known = values[np.isfinite(values)]
    return float(known.max(initial=0.0)) * _MORE_ROOM or 1.0


PLOTS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "tenants": _tenants,
        "fairness": _fairness,
        "jobs": _jobs,
        "usage": _usage,
        "waits": _waits,
        "leases": _leases,
    }
)
