"""Figures of `fair`: what it gives for its price in hours, what its solver is worth, how long a decision takes.

python benchmarks/frontier.py frontier --traces ../shared/traces --gpus 400 --jobs 9000 --svg docs/frontier.svg
python benchmarks/frontier.py shapes --seeds 0 1 2 3 4 5
python benchmarks/frontier.py decision
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.ledger import LedgerSettings
from slurm_fair.ledger.formulas import rho_for_reports
from slurm_fair.sim import Scenario, rules_for, simulate, with_looks_at_changes
from slurm_fair.trace import (
    Machines,
    Trace,
    TraceWish,
    generate,
    read_machines,
    read_trace,
    read_weights,
    uniform,
)
from slurm_fair.trace.classes import WORKLOADS

PRICES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 24.0)
BESIDE = ("astraea", "srtf")  # fairness first, and the shortest first
SHORT = 0.99  # rho of an hour below which a tenant was below its quota
SHAPES = Path(__file__).parent / "data" / "three_types.toml"
SHAPE_POLICIES: Sequence[tuple[str, dict[str, object]]] = (
    ("fair", {}),
    ("fair", {"solver": "off"}),
    ("hops", {}),
    ("sia", {}),
    ("pollux", {}),
    ("gavel", {}),
    ("srtf", {}),
    ("astraea", {}),
)
SIZES = ((1_000, 2_000), (10_000, 10_000))  # GPUs, jobs
HOUR = 3600.0
DECISION_SECONDS = HOUR


@dataclass(frozen=True, slots=True)
class Point:
    """One policy's figures on Philly."""

    name: str
    price: float | None
    row: dict[str, Any]

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        row = self.row
        return [
            self.name, f"{row['jct_mean_s'] / HOUR:.3f}", f"{row['slowdown_mean']:.3f}",
            f"{row['ltgf_job_loss_fraction']:.2%}", f"{row['short_hours']:.2%}", f"{row['preemptions']}",
        ]  # fmt: skip


def main() -> None:
    """Print the table of one part, as Markdown or JSON."""
    args = _arguments()
    parts = {"frontier": _frontier, "shapes": _shapes, "decision": _decision}
    heads, rows, document = parts[args.part](args)
    print(json.dumps(document) if args.json else "\n".join(_table(heads, rows)))


Part = tuple[Sequence[str], list[list[str]], list[dict[str, Any]]]


def _frontier(args: argparse.Namespace) -> Part:
    """The price X against mean completion time, slowdown, sharing loss and hours below quota."""
    points = list(_points(args))
    if args.svg:
        args.svg.write_text(_plot(points, args.gpus))
    heads = ["policy", "mean JCT h", "mean slowdown", "sharing loss", f"hours below {SHORT}", "pre-emptions"]
    return heads, [point.cells for point in points], [{"policy": p.name, **p.row} for p in points]


def _points(args: argparse.Namespace) -> Iterator[Point]:
    trace = read_trace(args.traces / "philly_sia_2week.csv.gz").trace
    trace = trace.take(slice(0, args.jobs)) if args.jobs else trace  # type: ignore[arg-type]
    scenario = Scenario(
        trace, uniform(args.gpus, 8), weights=read_weights(args.traces / "philly_vc_shares_astraea.csv")
    )
    policies: list[tuple[str, float | None]] = [("fair", price) for price in args.prices]
    for policy, price in policies + [(name, None) for name in BESIDE]:
        settings: dict[str, object] = {} if price is None else {"price_hours": price}
        rules = rules_for(
            policy, settings, lease=900.0, aligned=False, ledger=LedgerSettings(everyone_counts=True)
        )
        done = simulate(scenario, with_looks_at_changes(rules, 1.0))
        hours = done.windows
        rho = rho_for_reports(hours.had[hours.demanded], hours.owed[hours.demanded])
        name = f"`{policy}`" if price is None else f"`fair`, X = {price:g} h"
        yield Point(name, price, {**done.to_dict(), "short_hours": float(np.mean(rho < SHORT))})


def _shapes(args: argparse.Namespace) -> Part:
    """Three GPU types, gangs and elastic jobs: what the solver adds to the walk, and other policies beside it."""
    rows, document = [], []
    for policy, settings in SHAPE_POLICIES:
        for aligned in (True, False):
            found = [_shaped(policy, settings, aligned, seed, args) for seed in args.seeds]
            means = {key: float(np.mean([each[key] or 0.0 for each in found])) for key in _SHAPE_COLUMNS}
            name = f"`{policy}`" + (", walk alone" if settings else "")
            how = "aligned" if aligned else "rolling"
            rows.append([name, how, *(written(means[key]) for key, (_, written) in _SHAPE_COLUMNS.items())])
            document.append({"policy": policy, "settings": settings, "leases": how, **means})
    return ["policy", "leases", *(head for head, _ in _SHAPE_COLUMNS.values())], rows, document


_COUNT = "{:.0f}".format
_SHAPE_COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "jct_mean_s": ("mean JCT h", lambda value: f"{value / HOUR:.2f}"),
    "slowdown_mean": ("mean slowdown", "{:.2f}".format),
    "makespan_s": ("makespan h", lambda value: f"{value / HOUR:.1f}"),
    "latency_ratio_max": ("max latency ratio", _COUNT),
    "ltgf_job_loss_fraction": ("sharing loss", "{:.1%}".format),
    "cpu_s": ("CPU s", _COUNT),
    "plans_weighed": ("plans weighed", _COUNT),
    "plans_proven": ("proven within 1 %", _COUNT),
    "plans_solved": ("solver called", _COUNT),
    "plans_improved": ("its plan better", _COUNT),
    "plans_gap_mean": ("mean gap", "{:.1%}".format),
    "plans_solved_s": ("CPU s of these plans", "{:.1f}".format),
}


def _shaped(
    policy: str, settings: dict[str, object], aligned: bool, seed: int, args: argparse.Namespace
) -> dict[str, Any]:
    rules = rules_for(policy, settings, lease=360.0, interval=30.0, aligned=aligned, seed=seed)
    return simulate(Scenario(_mixed(args.jobs or 150, 20.0, seed), read_machines(SHAPES)), rules).to_dict()


def _mixed(jobs: int, rate_per_hour: float, seed: int) -> Trace:
    """Elastic jobs and gangs; one in two loses more than a third of its speed where it lies apart."""
    dice = np.random.default_rng(seed)
    wish = TraceWish(jobs, rate_per_hour=rate_per_hour, tenants=8, workload=WORKLOADS["hops"])
    trace = generate(wish, dice)
    return trace.with_columns(sensitivity=1.0 + dice.exponential(0.5, len(trace)))


def _decision(args: argparse.Namespace) -> Part:
    """Seconds of a decision while all of the jobs are there and nearly all wait, without and with the solver."""
    rows, document = [], []
    for (gpus, jobs), shapes in itertools.product(SIZES, (False, True)):
        plain = TraceWish(jobs, rate_per_hour=jobs * HOUR, tenants=50)
        trace = _mixed(jobs, jobs * HOUR, 0) if shapes else generate(plain, np.random.default_rng(0))
        machines = _as_many(gpus) if shapes else uniform(gpus, 8)
        scenario = Scenario(trace, machines, until_s=DECISION_SECONDS)
        result = simulate(scenario, rules_for("fair", {}, lease=900.0, aligned=args.aligned)).to_dict()
        document.append({"gpus": machines.total_gpus, "jobs": jobs, "shapes": shapes, **result})
        times = [f"{result[f'decision_{at}_s']:.3f}" for at in ("p50", "p95", "max")]
        kinds = "three, elastic jobs" if shapes else "one"
        asked = str(result["plans_solved"])
        rows.append([f"{machines.total_gpus:,}", f"{jobs:,}", kinds, str(result["looks"]), asked, *times])
    heads = ["GPUs", "jobs", "GPU types", "looks", "solver called", "median s", "p95 s", "longest s"]
    return heads, rows, document


def _as_many(gpus: int) -> Machines:
    """The cluster of three GPU types, so many times that it has about as many GPUs."""
    few = read_machines(SHAPES)
    rows = np.tile(np.arange(len(few.gpus)), gpus // few.total_gpus)
    return replace(few.take(rows), names=tuple(f"n{number}" for number in range(len(rows))))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


_WIDE, _HIGH, _EDGE = 640, 400, 60


def _plot(points: Sequence[Point], gpus: int) -> str:
    """Mean completion time against hours below quota: a line over X, and the other policies as dots."""
    across = np.array([point.row["jct_mean_s"] / HOUR for point in points])
    up = np.array([100.0 * point.row["short_hours"] for point in points])
    x = _EDGE + (across - across.min()) / max(float(np.ptp(across)), 1e-9) * (_WIDE - 2.5 * _EDGE)
    y = _HIGH - _EDGE - (up - up.min()) / max(float(np.ptp(up)), 1e-9) * (_HIGH - 2 * _EDGE)
    line = " ".join(
        f"{a:.1f},{b:.1f}" for a, b, point in zip(x, y, points, strict=True) if point.price is not None
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
        f'<polyline points="{line}" fill="none" stroke="#1f6fb2" stroke-width="2"/>',
    ]
    for a, b, point, mean, short in zip(x, y, points, across, up, strict=True):
        colour = "#b23a1f" if point.price is None else "#1f6fb2"
        name = point.name.replace("`", "").replace("fair, ", "")
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{a + 7:.1f}" y="{b - 5:.1f}">{name}: {mean:.2f} h, {short:.1f} %</text>')
    middle, below = _WIDE / 2, _HIGH - 15
    parts += [
        f'<text x="{middle}" y="{below}" text-anchor="middle">mean completion time, hours ({gpus} GPUs)</text>',
        f'<text transform="translate(18 {_HIGH / 2}) rotate(-90)" text-anchor="middle">'
        f"tenant hours with rho below {SHORT}, %</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=("frontier", "shapes", "decision"))
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"), help="the public traces")
    parser.add_argument("--gpus", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=0, help="only the first so many; 0 = all")
    parser.add_argument("--prices", type=float, nargs="+", default=list(PRICES), help="X, in hours")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--aligned", action="store_true", help="all leases end together")
    parser.add_argument("--svg", type=Path, help="the plot to write")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    return parser.parse_args()


if __name__ == "__main__":
    main()
