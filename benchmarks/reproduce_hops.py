"""The simulated experiment of the Hops paper, made again: hops beside sia, pollux and gavel, as one page.

python benchmarks/reproduce_hops.py --traces ../shared/traces --write docs/reproduction-hops.md
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from benchmarks.estimator import FILE
from benchmarks.hops_models import measured, with_models
from slurm_fair.ledger.metrics.summary import job_latency_ratio
from slurm_fair.model import Standing, TickRecord, Verdict
from slurm_fair.model.columns import Floats, any_of
from slurm_fair.sim import Scenario, rules_for, simulate
from slurm_fair.sim.loop.log import is_final, left_idle
from slurm_fair.trace import TraceWish, generate, read_machines
from slurm_fair.trace.classes import WORKLOADS

CLUSTER = Path(__file__).parent / "data" / "hops_cluster.toml"
JOBS, RATE, TENANTS, LOOK_SECONDS = 500, 100.0, 8, 30.0
ROUND_SECONDS = 360.0  # Gavel's; the paper names none for Hops
RATES = (30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
POLICIES = ("hops", "sia", "pollux", "gavel")
PRIORITIES = ("lr", "las", "sjf", "srtf", "ftf", "ltgf")
PAPER = {"hops": (10.48, 2.24, 0.87, 3.22, 0.45), "sia": (12.36, 3.79, 1.68, 78.5, 56.0),
         "gavel": (15.42, 4.04, 2.24, 70.43, 18.0)}  # fmt: skip
PARTS = (50, 90, 99)  # per cent of the jobs
COLUMNS: Sequence[tuple[str, Callable[[dict[str, Any]], float], str]] = (
    ("makespan h", lambda row: row["makespan_s"] / 3600, "{:.2f}"),
    ("mean JCT h", lambda row: row["jct_mean_s"] / 3600, "{:.2f}"),
    ("mean wait h", lambda row: row["wait_mean_s"] / 3600, "{:.2f}"),
    ("max LR", lambda row: row["latency_ratio_max"], "{:.2f}"),
    ("fragments a round", lambda row: row["fragments_per_round"], "{:.2f}"),
    ("after a plan", lambda row: row["fragments_mean"], "{:.2f}"),
)


class RoundEnds:
    """GPUs that the last plan of each round leaves idle while jobs wait, 0 where it leaves nobody waiting."""

    def __init__(self) -> None:
        self.idle: dict[int, int] = {}

    def take(self, tick: TickRecord, standing: Standing) -> None:
        """The plan counts in place of those before it in its round."""
        if is_final(tick, standing):
            waits = any_of(tick.plan.verdict == Verdict.WAIT.code)
            self.idle[int(tick.time // ROUND_SECONDS)] = left_idle(tick, standing) if waits else 0

    @property
    def fragments(self) -> float:
        """The mean over all rounds."""
        return mean(self.idle.values())


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation of the page."""

    traces: Path
    policy: str
    seed: int
    rate: float = RATE
    jobs: int = JOBS
    priority: str = "lr"

    def run(self) -> dict[str, Any]:
        """Its metrics, and what it is a simulation of."""
        settings: dict[str, object] = {"queue": "lr"}
        if self.policy == "hops":
            settings = {"priority": self.priority, "power": 2.0 if self.priority == "ftf" else 1.0}
        rules = rules_for(
            self.policy, settings, lease=ROUND_SECONDS, interval=LOOK_SECONDS, aligned=True, seed=self.seed
        )
        facts: dict[str, Any] = {"seed": self.seed, "rate": self.rate, "priority": self.priority}
        rounds = RoundEnds()
        done = simulate(self._scenario(), rules, listen=rounds.take)
        latency = job_latency_ratio(done.outcomes)
        facts |= {
            "fragments_per_round": rounds.fragments,
            "latency": dict(zip(PARTS, parts_of(latency), strict=True)),
        }
        result = done.to_dict() | facts
        print(f"{self.policy} {self.priority} {self.rate:g}/h seed {self.seed}: {result['cpu_s']:.0f} CPU s",
              file=sys.stderr)  # fmt: skip
        return result

    def _scenario(self) -> Scenario:
        """Table 2's mix of sizes and models."""
        dice = np.random.default_rng(self.seed)
        wish = TraceWish(self.jobs, rate_per_hour=self.rate, tenants=TENANTS, workload=WORKLOADS["hops"])
        trace = with_models(generate(wish, dice), dice)
        return Scenario(trace, read_machines(CLUSTER), throughputs=measured(self.traces))


def main() -> None:
    """Run all cases, compare and write the page."""
    args = _arguments()
    results = _all(_cases(args), args.workers)
    if args.json:
        print(json.dumps({"name": "reproduce_hops", "machine": _machine(), "rows": results}))
        return
    page = _page(results, args)
    if args.write:
        args.write.write_text(page)
    else:
        print(page)


def parts_of(latency: Floats) -> list[float]:
    """The latency ratio that these per cent of the jobs that are over do not exceed."""
    parts: list[float] = np.nanpercentile(latency, PARTS).tolist()
    return parts


def _cases(args: argparse.Namespace) -> list[Case]:
    at, jobs = args.traces, args.jobs
    cases = [Case(at, policy, seed, jobs=jobs) for policy in POLICIES for seed in args.seeds]
    if "priorities" in args.parts:
        others = [(name, seed) for name in PRIORITIES[1:] for seed in args.seeds]
        cases += [Case(at, "hops", seed, jobs=jobs, priority=name) for name, seed in others]
    if "rates" in args.parts:
        cases += [Case(at, policy, args.seeds[0], rate, jobs) for rate in RATES for policy in POLICIES]
    return cases


def _all(cases: Sequence[Case], workers: int) -> list[dict[str, Any]]:
    """The results in the order of the cases, from so many processes."""
    if workers == 1:
        return [case.run() for case in cases]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(Case.run, cases))


def _arguments() -> argparse.Namespace:
    parser = arguments.Parser(__doc__)
    parser.add_argument("--traces", type=Path, required=True, help=f"folder that has {FILE}")
    parser.add_argument("--seeds", type=arguments.whole, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=arguments.count, default=JOBS)
    parser.add_argument(
        "--parts", nargs="*", default=["priorities", "rates"], choices=["priorities", "rates"]
    )
    parser.add_argument("--workers", type=arguments.count, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--write", type=arguments.page, help="the page; else it is printed")
    args = parser.parse_args()
    if wrong := arguments.lacking(args.traces, [FILE]):
        parser.error(wrong)
    return args


def _machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}"


def _page(results: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    table4 = [row for row in results if row["rate"] == RATE and row["priority"] == "lr"]
    facts = {"jobs": args.jobs, "rate": RATE, "seeds": len(args.seeds)}
    head = HEAD.format(**facts, lease=ROUND_SECONDS, look=LOOK_SECONDS)
    lines = [*head.splitlines(), "", "## Table 4", "", *_comparison(table4), ""]
    if "priorities" in args.parts:
        by_name = [row for row in results if row["policy"] == "hops" and row["rate"] == RATE]
        lines += ["## Figure 13: priorities", "", *_priorities(by_name), ""]
    if "rates" in args.parts:
        lines += ["## Figure 13: jobs per hour", "", *_rates(results, args.seeds[0]), ""]
    return "\n".join(lines)


HEAD = """# Hops' experiment, made again

Written by `make reproduce-hops`: the simulated experiment of the Hops paper (SoCC 2024, section 4.3), on the
virtual cluster: 512 GPUs of five types on 64 servers, {jobs} jobs, {rate:g} an hour, means of {seeds} made-up
workloads. The paper's own figures stand beside ours, for the order of the policies: the workloads differ.

Assumptions, where the paper is silent or its data is not public:

* Speeds of the GPU types against a GTX 1080 Ti: 1, 1.1, 2.2, 2.3, 2.4 (`benchmarks/data/hops_cluster.toml`).
* GPU-hours of jobs are log-uniform within the classes S, M, L and XL, which have the proportions of Table 2.
* With the largest of its sizes no job takes more than 10 hours on the slowest type:
  all of the paper's were over after 10.5.
* Fragments are GPUs that are idle while jobs wait. The paper counts them "after each round of scheduling":
  a round counts with what its last plan leaves idle, and with 0 where that leaves nobody waiting. `after a plan`
  is the mean over those plans alone that leave somebody waiting, as `slurm-fair simulate` has it.
* Each job names 1 to 8 of the sizes 1-16; `gavel` has the median of them for its rigid size, as in the paper.
* Each job has one of the models of Table 2 that are of its class. With other numbers of GPUs, and apart, it is as
  fast as a model like it was measured to be on up to 16 RTX 2080 Ti (step times published with Pollux and Sia):
  networks on ImageNet as ResNet-50, those on Cifar10 as ResNet-18, the transformers as BERT, Wav2vec as
  DeepSpeech2, each with the measured batch size nearest to that of Table 2. GPU types differ by the same factor
  for all models. Apart most lose less than 20 % of their speed on these cards, and none more than 28 %.
* Policies know declared run times and these speeds. The queue of all is by latency ratio, as in the paper.
* Leases of {lease:g} s end together. A look comes every {look:g} s. A restart costs nothing. The shortest jobs run
  for seconds, so the wait for one look alone is many times their run time.
"""


def _cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [form.format(mean(value(row) for row in rows)) for _, value, form in COLUMNS]


def _titles(first: Iterable[str], last: Iterable[str] = ()) -> list[str]:
    titles = [*first, *(name for name, _, _ in COLUMNS), *last]
    return [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]


def _comparison(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = _titles(["policy"], ["the paper: makespan / JCT / wait / max LR / fragments"])
    for policy in POLICIES:
        cells = _cells([row for row in rows if row["policy"] == policy])
        paper = " / ".join(f"{value:g}" for value in PAPER[policy]) if policy in PAPER else "-"
        lines.append(f"| `{policy}` | {' | '.join(cells)} | {paper} |")
    return lines


def _priorities(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = _titles(["`hops` with priority"], [f"LR of {part} %" for part in PARTS])
    for name in PRIORITIES:
        mine = [row for row in rows if row["priority"] == name]
        cells = [*_cells(mine), *(f"{mean(row['latency'][part] for row in mine):.2f}" for part in PARTS)]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return ["`LR of 90 %` is the latency ratio that 90 % of the jobs do not exceed.", "", *lines]


def _rates(rows: Sequence[dict[str, Any]], seed: int) -> list[str]:
    """Mean JCT by the density of submissions."""
    lines = [
        "Mean JCT in hours (max LR in brackets), one workload each.",
        "",
        f"| policy | {' | '.join(f'{rate:g}/h' for rate in RATES)} |",
        f"| --- |{' --- |' * len(RATES)}",
    ]
    for policy in POLICIES:
        cells = []
        for rate in RATES:
            mine = [
                r
                for r in rows
                if (r["policy"], r["rate"], r["seed"], r["priority"]) == (policy, rate, seed, "lr")
            ]
            cells += [f"{r['jct_mean_s'] / 3600:.2f} ({r['latency_ratio_max']:.1f})" for r in mine[:1]]
        lines.append(f"| `{policy}` | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
