"""The page of `simulate --html`: the comparison, how jobs fared, how the cluster and its tenants did over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.gantt import MOST_GPUS, gantt_of
from slurm_fair.cli.simulate.one_run import FinishedRun
from slurm_fair.cli.simulate.repeats import Row
from slurm_fair.cli.simulate.table import BEST, GROUPS, marks, metric_text
from slurm_fair.ledger import formulas
from slurm_fair.ledger.metrics import efficiency
from slurm_fair.ledger.metrics.summary import job_finish_time_ratios, job_latency_ratio
from slurm_fair.ledger.metrics.windows import Steps, TenantWindows
from slurm_fair.model.columns import Floats
from slurm_fair.sim.result import SimulationResult
from slurm_fair_accounting.drawing import page, plot
from slurm_fair_accounting.drawing.page import Cell
from slurm_fair_accounting.render import duration_text

_MOST_TENANTS = 10
_POINTS = 240
_RHO_SHOWN = 2.0  # rho above it is drawn at it


def page_of(case: Case, dones: Sequence[FinishedRun], rows: Sequence[Row], lead: Sequence[str]) -> str:
    results = [done.result for done in dones]
    sections = [
        page.section("Comparison", "The best value of each row is marked.", _comparison(rows)),
        page.section(
            "Jobs",
            "A curve shows, for each time, the part of the jobs that took no longer.",
            *_jobs(results),
        ),
        page.section(
            "Cluster",
            "GPU time that jobs held, as a part of the GPU time of all usable GPUs.",
            _utilisation(results),
        ),
        page.section("Tenants", _tenants_note(case), *(_tenants(case, result) for result in results)),
        _gantt_section(case, dones),
    ]
    return page.page(f"Simulation of {case.trace_path.name}", lead, sections)


def _comparison(rows: Sequence[Row]) -> str:
    heads = ["", *(str(row["policy"]) for row in rows)]
    groups = [
        (
            group,
            [
                (
                    metric.title,
                    [
                        Cell(metric_text(metric, row), sign == BEST)
                        for row, sign in zip(rows, signs, strict=True)
                    ],
                )
                for metric in some
                for signs in [marks(metric, rows)]
            ],
        )
        for group, some in GROUPS
    ]
    return page.grouped_table(heads, groups)


# -- jobs -----------------------------------------------------------------------------------------------------


def _jobs(results: Sequence[SimulationResult]) -> Iterator[str]:
    outcomes = [result.outcomes for result in results]
    jct = [efficiency.completion_seconds(table) for table in outcomes]
    rho = [np.where(table.over, table.rho_ltgf, np.nan) for table in outcomes]
    static = [job_finish_time_ratios(r.outcomes, r.mean_gpus)["static"] for r in results]
    ratio = [job_latency_ratio(table) for table in outcomes]
    names = [result.policy for result in results]
    yield page.side_by_side(
        _cdf("Completion time (JCT)", names, jct, plot.logarithmic("JCT, log", _all(jct), seconds=True)),
        _cdf(
            "Long-term GPU-time fairness of jobs: below 0.95 a job lost by sharing", names, rho,
            plot.linear_axis(f"rho = had / owed (above {_RHO_SHOWN:g} at {_RHO_SHOWN:g})", 0.0, _RHO_SHOWN), 0.95,
        ),
        _cdf(
            "Finish-time fairness, static: above 1 a job was treated unfairly", names, static,
            plot.logarithmic("JCT / time with an equal part of the cluster, log", _all(static)), 1.0,
        ),
        _cdf(
            "Latency ratio", names, ratio,
            plot.logarithmic("time waited / expected run time, log", _all(ratio)),
        ),
    )  # fmt: skip


def _all(values: Sequence[Floats]) -> Floats:
    return np.concatenate([np.asarray(some, dtype=np.float64) for some in values])


def _cdf(
    caption: str, names: Sequence[str], values: Sequence[Floats], x: plot.Axis, across: float = math.nan
) -> str:
    pairs = enumerate(zip(names, values, strict=True))
    series = [plot.cumulative(name, some, place) for place, (name, some) in pairs]
    return plot.chart(caption, series, x, plot.linear_axis("part of the jobs", 0.0, 1.0, 5), across)


# -- cluster --------------------------------------------------------------------------------------------------


def _utilisation(results: Sequence[SimulationResult]) -> str:
    spans = [efficiency.span(result.outcomes) for result in results]
    longest = max(last - first for first, last in spans)
    x, unit = plot.over_time(longest)
    seconds = max(longest, 1.0) / _POINTS
    series = [_held(result, seconds, unit, place) for place, result in enumerate(results)]
    caption = f"Utilisation, means over {duration_text(seconds)}"
    return plot.chart(caption, series, x, plot.linear_axis("part of the GPUs", 0.0, 1.0, 5))


def _held(result: SimulationResult, seconds: float, unit: float, place: int) -> plot.Series:
    (first, last), runs = efficiency.span(result.outcomes), result.runs
    count = max(int(np.ceil((last - first) / seconds)), 1)
    since = first + seconds * np.arange(count, dtype=np.float64)
    until = np.minimum(since + seconds, max(last, first + 1e-3))
    held = Steps.of(runs.start, runs.end, runs.gpus).integral(since, until)
    there = result.capacity.integral(since, until)
    part = formulas.ratio(held, there, nothing=np.nan)
    return plot.Series(result.policy, ((since + until) / 2 - first) / unit, part, place)


# -- tenants --------------------------------------------------------------------------------------------------


def _shown_tenants(case: Case) -> NDArray[np.int64]:
    """The tenants that ask for the most GPU time."""
    trace = case.scenario.trace
    asked = np.bincount(trace.tenant, np.nan_to_num(trace.gpu_seconds), len(trace.tenants))
    order = np.argsort(-asked, kind="stable")
    return np.asarray(order[asked[order] > 0][:_MOST_TENANTS])


def _tenants_note(case: Case) -> str:
    count, shown = len(np.unique(case.scenario.trace.tenant)), len(_shown_tenants(case))
    whom = (
        f"the {shown} of {count} tenants that ask for the most GPU time" if count > shown else "each tenant"
    )
    return f"rho = GPU time had / GPU time owed, of {whom}; 1 is fair, above {_RHO_SHOWN:g} is drawn there."


def _tenants(case: Case, result: SimulationResult) -> str:
    outcomes = result.outcomes
    first, last = efficiency.span(outcomes)
    last = max(last, first + 1.0)
    windows = result.tenants_between(np.linspace(first, last, _POINTS + 1))
    x, unit = plot.over_time(last - first)
    curves = _Curves(_named(case, outcomes.tenants), first, unit, x, result.policy)
    whole = curves.chart("since the beginning", windows.edges[1:], _rhos(windows, sums=True))
    hours = _coarser(result.windows)
    if len(hours.edges) < 2:  # shorter than a window
        return whole
    middles = (hours.edges[1:] + hours.edges[:-1]) / 2
    each = duration_text(float(hours.edges[1] - hours.edges[0]))
    return page.side_by_side(whole, curves.chart(f"in windows of {each}", middles, _rhos(hours)))


def _named(case: Case, tenants: Sequence[str]) -> list[tuple[str, int]]:
    """Tenants to show that had a job, and their rows."""
    rows = {name: row for row, name in enumerate(tenants)}
    names = [case.scenario.trace.tenants[tenant] for tenant in _shown_tenants(case).tolist()]
    return [(name, rows.get(name, -1)) for name in names]


@dataclass(frozen=True, slots=True)
class _Curves:
    """Axes and names that the charts of one policy share."""

    tenants: Sequence[tuple[str, int]]
    first: float
    unit: float
    x: plot.Axis
    policy: str

    def chart(self, what: str, instants: Floats, rhos: NDArray[np.float64]) -> str:
        """A chart with one curve a tenant."""
        across = (instants - self.first) / self.unit
        series = [
            plot.Series(name, across, rhos[row], place)
            for place, (name, row) in enumerate(self.tenants)
            if row >= 0
        ]
        return plot.chart(
            f"{self.policy}: {what}", series, self.x, plot.linear_axis("rho", 0.0, _RHO_SHOWN, 5), up=1.0
        )


def _rhos(windows: TenantWindows, sums: bool = False) -> NDArray[np.float64]:
    """[tenant, window]; nan where nothing was owed."""
    had, owed = windows.had, windows.owed
    if sums:
        had, owed = np.cumsum(had, axis=1), np.cumsum(owed, axis=1)
    return formulas.ratio(had, owed, nothing=np.nan)


def _coarser(windows: TenantWindows) -> TenantWindows:
    """Windows joined until there are few enough to see."""
    count = len(windows.edges) - 1
    if count < 1:
        return windows
    each = -(-count // _POINTS)
    starts = np.arange(0, count, each)
    return TenantWindows(
        windows.edges[np.append(starts, count)],
        np.add.reduceat(windows.had, starts, axis=1),
        np.add.reduceat(windows.owed, starts, axis=1),
        np.logical_and.reduceat(windows.demanded, starts, axis=1),
    )


# -- GPUs -----------------------------------------------------------------------------------------------------


def _gantt_section(case: Case, dones: Sequence[FinishedRun]) -> str:
    gpus = case.scenario.machines.total_gpus
    if gpus > MOST_GPUS:
        return page.section(
            "GPUs",
            f"Single GPUs are not drawn: the cluster has {gpus}, and the picture holds {MOST_GPUS}.",
        )
    note = "The runs on each GPU: a bar is a run, and its colour is its tenant's."
    return page.section("GPUs", note, *(gantt_of(case, done) for done in dones))
