"""Published comparisons, made again: our numbers beside those of the papers' own simulators, as one page.

python benchmarks/reproduce.py --traces ../shared/traces --write docs/reproduction.md
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from benchmarks.first_gang import FirstGang
from slurm_fair.cli.simulate.case import weights_of
from slurm_fair.ledger import LedgerSettings
from slurm_fair.ledger.formulas import LOSS_BELOW, rho_for_reports
from slurm_fair.ledger.metrics.windows import TenantWindows
from slurm_fair.sim import (
    Costs,
    Scenario,
    rules_for,
    simulate,
    with_looks_at_changes,
    with_renewal,
    with_reserve_after,
)
from slurm_fair.trace import Trace, read_regimes, read_trace, read_weights, uniform

REFERENCE = Path(__file__).parent / "data" / "shockwave_reference.csv"
SIZES = [120, 460]  # of its traces, in jobs
TWO_WEEKS, VC_SHARES = "philly_sia_2week.csv.gz", "philly_vc_shares_astraea.csv"
ROUND_SECONDS, RESTART_SECONDS = 120.0, 20.0
NEAR = {"makespan_s": 0.03, "jct_mean_s": 0.03, "ftf_static_worst": 0.10}
# That simulator decides anew at most every 1000 s; who came since waits, even beside idle GPUs.
_AS_PUBLISHED = {"reset_seconds": 1000.0, "newcomers": "wait", "received": "progress"}
AS_THERE: dict[str, dict[str, object]] = {
    "fifo": {"reset_seconds": 1000.0},
    "gandiva-fair": {"split": "equal", **_AS_PUBLISHED},
    **{name: dict(_AS_PUBLISHED) for name in ("gavel", "gavel-ftf", "mst", "ossp", "allox")},
}
PHILLY = ("astraea", "fifo", "slurm", "yarn-cs", "hived", "allox", "tiresias", "gavel-ftf", "gandiva-fair")
NO_LEASES = ("fifo", "slurm", "yarn-cs")
EVERYONE = LedgerSettings(everyone_counts=True)  # as in the simulators that the numbers are from
PHILLY_LEASE, PHILLY_GPUS = 900.0, (400, 560)
_WHOLE_NODE = 8  # GPUs
# How leases end: all together; each by itself, with no node set aside, as in the paper; or by this default.
ALIGNED, AS_IN_THE_PAPER, ROLLING = "aligned", "rolling, as in the paper", "rolling"
EVERY_TEN_SECONDS, AT_CHANGES = (
    "10 s",
    "auto",
)  # auto: a look follows each change, a second after the last at least
SHARES, REQUESTED = "shares", "requested"  # of the virtual clusters: the published file, or Astraea 6.1.2


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation of the page."""

    traces: Path
    name: str  # philly or shockwave
    jobs: int  # of the trace; 0 = all
    gpus: int
    policy: str
    seed: int
    leases: str = ALIGNED
    weights: str = SHARES
    looks: str = EVERY_TEN_SECONDS

    def run(self) -> dict[str, Any]:
        """The metrics of this case."""
        scenario, lease, settings = self._scenario()
        rounds = scenario.rounds == "gavel"
        if self.policy == "astraea" and self.leases != ROLLING:
            settings = {**settings, "swap_after": 0.0, "early_starts": 0.0}
        rules = rules_for(
            self.policy, settings, lease=lease, gavel_rounds=rounds, seed=self.seed,
            aligned=self.leases == ALIGNED, ledger=EVERYONE,
        )  # fmt: skip
        ours = math.inf if self.leases == AS_IN_THE_PAPER else None
        rules = with_renewal(with_reserve_after(rules, ours), ours)
        rules = with_looks_at_changes(rules, 1.0 if self.looks == AT_CHANGES else 0.0)
        how = "never end" if self.name == "philly" and self.policy in NO_LEASES else self.leases
        facts = {"jobs": self.jobs, "gpus": self.gpus, "leases": how, "weights": self.weights}
        first = FirstGang(_WHOLE_NODE)
        done = simulate(scenario, rules, listen=first, wants=())
        facts |= {
            "interval": self.looks,
            "far_below": _far_below(done.windows),
            "first_gang_s": first.longest_s,
        }
        result = done.to_dict() | facts
        print(f"{self.name} {self.gpus} GPUs {self.policy}: {result['cpu_s']:.0f} CPU s", file=sys.stderr)
        return result

    def _scenario(self) -> tuple[Scenario, float | None, dict[str, object]]:
        if self.name == "philly":
            trace = read_trace(self.traces / TWO_WEEKS).trace
            weights = weights_of(REQUESTED, trace)
            if self.weights == SHARES:
                weights = read_weights(self.traces / VC_SHARES)
            scenario = Scenario(_first(trace, self.jobs), uniform(self.gpus, _WHOLE_NODE), weights=weights)
            return scenario, None if self.policy in NO_LEASES else PHILLY_LEASE, {}
        trace = read_trace(self.traces / f"shockwave_{self.jobs}.csv.gz").trace
        regimes = read_regimes(self.traces / f"shockwave_{self.jobs}_regimes.jsonl.gz")
        # Placement plays no part there: a node per GPU, and a gang on many of them loses nothing.
        scenario = Scenario(
            trace, uniform(self.gpus, 1), Costs(restart=RESTART_SECONDS), regimes=regimes, rounds="gavel"
        )
        return scenario, ROUND_SECONDS, AS_THERE.get(self.policy, {})


def _far_below(windows: TenantWindows) -> float | None:
    """The part of tenants' hours with demand all along in which rho was below 0.95."""
    had, owed = windows.had[windows.demanded], windows.owed[windows.demanded]
    return float(np.mean(rho_for_reports(had, owed) < LOSS_BELOW)) if len(had) else None


def _first(trace: Trace, jobs: int) -> Trace:
    return trace.take(slice(0, jobs)) if jobs else trace  # type: ignore[arg-type]


def main() -> None:
    """Run all cases, compare and write the page."""
    args = _arguments()
    references = list(_references(args.sizes)) if "shockwave" in args.parts else []
    cases = [
        Case(args.traces, "shockwave", int(row["jobs"]), int(row["gpus"]), str(row["policy"]), args.seed)
        for row in references
    ]
    if "philly" in args.parts:
        cases += [
            Case(args.traces, "philly", args.philly_jobs, gpus, policy, args.seed, leases, weights, looks)
            for weights in (SHARES, REQUESTED)
            for gpus in args.philly_gpus
            for policy, leases, looks in _turns()
        ]
    results = _all(cases, args.workers)
    if args.json:
        print(json.dumps({"name": "reproduce", "machine": _machine(), "rows": results}))
        return
    page = _page(references, results, args.seed)
    if args.write:
        args.write.write_text(page)
    else:
        print(page)


def _turns() -> list[tuple[str, str, str]]:
    """Each policy as in its paper, and Astraea with each way of leases and of looks."""
    ways = (ALIGNED, AS_IN_THE_PAPER, ROLLING)
    astraea = [("astraea", leases, looks) for leases in ways for looks in (EVERY_TEN_SECONDS, AT_CHANGES)]
    others = [name for name in PHILLY if name != "astraea"]
    return astraea + [(name, AS_IN_THE_PAPER, EVERY_TEN_SECONDS) for name in others]


def _all(cases: Sequence[Case], workers: int) -> list[dict[str, Any]]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(Case.run, cases))


def _arguments() -> argparse.Namespace:
    parser = arguments.Parser(__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the public traces")
    parser.add_argument(
        "--parts", nargs="+", choices=("shockwave", "philly"), default=["shockwave", "philly"]
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, help="Shockwave's traces, by jobs"
    )
    parser.add_argument(
        "--philly-jobs", type=arguments.whole, default=0, help="only the first so many; 0 = all"
    )
    parser.add_argument("--philly-gpus", type=arguments.count, nargs="+", default=list(PHILLY_GPUS))
    parser.add_argument("--seed", type=arguments.whole, default=0)
    parser.add_argument("--workers", type=arguments.count, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--write", type=arguments.page, help="the page to write")
    args = parser.parse_args()
    if wrong := arguments.lacking(args.traces, _files(args.parts, args.sizes)):
        parser.error(wrong)
    return args


def _files(parts: Sequence[str], sizes: Sequence[int]) -> Iterator[str]:
    """The traces that these parts read."""
    if "philly" in parts:
        yield from (TWO_WEEKS, VC_SHARES)
    for size in sizes if "shockwave" in parts else ():
        yield from (f"shockwave_{size}.csv.gz", f"shockwave_{size}_regimes.jsonl.gz")


def _references(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    with REFERENCE.open() as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            if int(row["jobs"]) in sizes:
                yield row


def _machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}"


# -- the page -------------------------------------------------------------------------------------------------


def _page(references: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]], seed: int) -> str:
    lines = [
        "# Published comparisons, made again",
        "",
        f"Made by `make reproduce` on {time.strftime('%Y-%m-%d', time.gmtime())}, seed {seed}, {_machine()}. "
        "Do not edit: run it again.",
    ]
    theirs = len(references)
    if references:
        lines += _shockwave(references, results[:theirs])
    if results[theirs:]:
        lines += _philly(results[theirs:])
    return "\n".join(lines) + "\n"


def _shockwave(references: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> list[str]:
    """Each metric: ours, theirs, and how far apart."""
    lines = [
        "",
        "## Shockwave's traces, by its own conventions",
        "",
        f"Rounds of {ROUND_SECONDS:g} s; {RESTART_SECONDS:g} s lost by a job that did not run in the one before; "
        "GPUs of an ended job idle until the round ends, recorded regimes. Theirs: its own simulator, run "
        "unchanged; like it, ours decides anew at most every 1000 s. Within 3 % (makespan, mean JCT) and 10 % "
        "(worst static rho) is near; `!` marks what is not.",
        "",
        "| jobs | GPUs | policy | makespan s | theirs | apart | mean JCT s | theirs | apart | worst rho static "
        "| theirs | apart |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for reference, result in zip(references, results, strict=True):
        cells = [str(result["jobs"]), str(result["gpus"]), f"`{result['policy']}`"]
        for key, near in NEAR.items():
            cells += _apart(float(result[key]), float(reference[key]), near, 2 if "ftf" in key else 0)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _apart(ours: float, theirs: float, near: float, digits: int) -> list[str]:
    off = ours / theirs - 1
    return [f"{ours:.{digits}f}", f"{theirs:.{digits}f}", f"{off:+.1%}{'' if abs(off) <= near else ' !'}"]


_COLUMNS = (
    ("sharing-loss jobs", "ltgf_job_loss_fraction", "%"),
    ("tenant unfairness", "ltgf_tenant_unfair_fraction", "%"),
    ("the same below 0.95", "far_below", "%"),
    ("Jain of tenants", "jain_tenants", ""),
    ("mean JCT h", "jct_mean_s", "h"),
    ("p95 JCT h", "jct_p95_s", "h"),
    ("mean slowdown", "slowdown_mean", ""),
    ("utilisation", "utilization", "%"),
    ("pre-emptions", "preemptions", "n"),
    ("a gang first h", "first_gang_s", "h"),
    ("number of looks", "looks", "n"),
)


def _philly(results: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "",
        "## Two weeks of Philly",
        "",
        f"Leases of {PHILLY_LEASE:g} s. Looks: every 10 s, or `auto`: at each change. "
        "Rolling: renewed for a quarter of a lease, all together that are over at a beat, and nodes are set "
        "aside for gangs, this controller's default; as in the paper: each ends by itself, is renewed for a "
        "whole lease, and no node is set aside; aligned: all end together. `fifo`, "
        "`slurm` and `yarn-cs` end none. Weights of the virtual clusters: `shares` are the published file, "
        "`requested` the GPUs that their jobs ask for, the rule in section 6.1.2 of Astraea's paper. "
        "Sharing-loss jobs: rho below 0.95 at their end. Tenant unfairness: hours with demand all along in "
        "which a tenant's rho was below 1, and below 0.95: a look every 10 s "
        "leaves short waits to everybody. A gang first: the longest time at a stretch that one gang of "
        f"{_WHOLE_NODE} GPUs or more, a node at least, stood first in the order and waited. "
        "No job of this trace has a declared run time: policies that go by "
        "run times were told the true one. Rows of `fair`, the controller's default policy, are in docs/fair.md.",
        "",
        "| weights | GPUs | policy | leases | looks | "
        + " | ".join(title for title, _, _ in _COLUMNS)
        + " |",
        "|---|---|---|---|---|" + "---|" * len(_COLUMNS),
    ]
    for result in results:
        cells = [str(result["weights"]), str(result["gpus"]), f"`{result['policy']}`", str(result["leases"])]
        cells.append(str(result["interval"]))
        cells += [_shown(result[key], unit) for _, key, unit in _COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + conclusions(results)


Row = dict[str, Any]
_NEAR_SHORTEST = 0.05  # a mean completion time within so much of the shortest is as short


def conclusions(results: Sequence[Row]) -> list[str]:
    """The lines that say of each claim on Astraea whether it holds, under each weighting and size."""
    sites = list(dict.fromkeys((str(row["weights"]), int(row["gpus"])) for row in results))
    heads = [f"{weights}, {gpus} GPUs" for weights, gpus in sites]
    lines = [
        "",
        "### What holds under which weights",
        "",
        "`astraea` and the others as in their papers, with a look every 10 s, but for the last three lines. In "
        "brackets: the figure of `astraea`, or of the first of the two named, and the other one.",
        "",
        f"| | {' | '.join(heads)} |",
        f"|---|{'---|' * len(sites)}",
    ]
    for claim, holds in CLAIMS:
        cells = [holds([r for r in results if (r["weights"], r["gpus"]) == site]) for site in sites]
        lines.append(f"| {claim} | {' | '.join(cells)} |")
    return lines


def _of_astraea(rows: Sequence[Row], leases: str, looks: str, key: str) -> float:
    way = ("astraea", leases, looks)
    return _number(next(r[key] for r in rows if (r["policy"], r["leases"], r["interval"]) == way))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _against_others(rows: Sequence[Row], key: str, unit: str, slack: float = 0.0) -> str:
    """A cell: yes where Astraea's figure is the least of all, or as near to it as `slack`."""
    mine = _of_astraea(rows, AS_IN_THE_PAPER, EVERY_TEN_SECONDS, key)
    least = min(_number(row[key]) for row in rows if row["policy"] != "astraea")
    return _yes_or_no(mine <= least * (1.0 + slack), mine, least, unit)


def _against_itself(
    rows: Sequence[Row], one: tuple[str, str], other: tuple[str, str], key: str, unit: str
) -> str:
    """A cell: yes where Astraea's figure is lower one way than the other."""
    first, second = (_of_astraea(rows, *way, key) for way in (one, other))
    return _yes_or_no(first < second, first, second, unit)


def _yes_or_no(holds: bool, first: float, second: float, unit: str) -> str:
    if math.isnan(first) or math.isnan(second):
        return "-"
    hours = " h" if unit == "h" else ""
    return f"{'yes' if holds else 'no'} ({_shown(first, unit)}{hours}, {_shown(second, unit)}{hours})"


CLAIMS: Sequence[tuple[str, Callable[[Sequence[Row]], str]]] = (
    (
        "no other policy has fewer sharing-loss jobs",
        lambda rows: _against_others(rows, "ltgf_job_loss_fraction", "%"),
    ),
    (
        "no other policy is less unfair to tenants (hours below 1)",
        lambda rows: _against_others(rows, "ltgf_tenant_unfair_fraction", "%"),
    ),
    ("the same below 0.95", lambda rows: _against_others(rows, "far_below", "%")),
    (
        f"its mean JCT is within {_NEAR_SHORTEST:.0%} of the shortest",
        lambda rows: _against_others(rows, "jct_mean_s", "h", _NEAR_SHORTEST),
    ),
    (
        "its mean JCT is shorter with rolling leases, this controller's default, than with aligned ones",
        lambda rows: _against_itself(rows, (ROLLING, AT_CHANGES), (ALIGNED, AT_CHANGES), "jct_mean_s", "h"),
    ),
    (
        "no gang stands first for as long with rolling leases as where no node is set aside",
        lambda rows: _against_itself(
            rows, (ROLLING, AT_CHANGES), (AS_IN_THE_PAPER, AT_CHANGES), "first_gang_s", "h"
        ),
    ),
    (
        "it has fewer sharing-loss jobs with looks at changes than with one every 10 s",
        lambda rows: _against_itself(
            rows, (ROLLING, AT_CHANGES), (ROLLING, EVERY_TEN_SECONDS), "ltgf_job_loss_fraction", "%"
        ),
    ),
)


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return {"%": f"{value:.1%}", "h": f"{value / 3600:.2f}", "n": f"{value:.0f}"}.get(unit, f"{value:.3f}")


if __name__ == "__main__":
    main()
