"""The gain of a tenant that lies about its run times, and the cost for the honest ones, under each policy.

python benchmarks/liars.py --policy srtf,astraea --jobs 200 --gpus 32 --tenants 4 --seeds 3

Each tenant lies in turn, the others tell the truth; every run is compared with the one of the same seed in which
all of them do. Service is the GPU time had until the last submission, while the cluster is crowded. A declaration
is that of a silent job (nobody reports progress), or of one that reports its true progress. False progress is a
report of what is left, believed as it is; the daemon believes no more than the best paces of the job's like allow.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from slurm_fair.cli.base import ended_in_one_line
from slurm_fair.cli.simulate.setups import policies_of
from slurm_fair.errors import InputError
from slurm_fair.ledger.metrics.efficiency import completion_seconds
from slurm_fair.policy.registry import names
from slurm_fair.sim import Scenario, SimulationResult, rules_for, simulate
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import WORKLOADS, Trace, TraceWish, generate, read_trace, uniform

MEASURES = ("liar_service", "liar_jct", "honest_service", "honest_jct")
HEADS = ("policy", "lie", "runs", "liar: service", "liar: JCT", "honest: service", "honest: JCT")
_USUAL = ("srtf", "srsf", "astraea", "tiresias", "fair")


@dataclass(frozen=True, slots=True)
class Lie:
    """A lie: what the liar declares and reports as left, times the truth, and whether anybody reports."""

    words: str
    progress: Literal["reported", "silent"]
    declares: float = 1.0
    left: float = 1.0

    def truthfulness(self, tenant: str) -> Truthfulness:
        """The truth that is told in a scenario in which this tenant lies."""
        return Truthfulness(self.progress, declares={tenant: self.declares}, reports_left={tenant: self.left})


LIES = (
    *(Lie(f"declares {factor:g} x, silent", "silent", factor) for factor in (0.1, 0.5, 2.0, 10.0)),
    *(Lie(f"declares {factor:g} x, reports", "reported", factor) for factor in (0.1, 0.5, 2.0, 10.0)),
    *(Lie(f"reports {factor:g} x left", "reported", left=factor) for factor in (0.1, 10.0)),
)


def main(words: Sequence[str]) -> None:
    """Measure, and print one of the three forms."""
    options = options_of(words)
    rows = list(rows_of(options))
    if options.json:
        print(json.dumps({"name": "liars", "machine": machine(), "rows": rows}))
        return
    lines = [HEADS, *lines_of(rows)]
    if options.markdown:
        lines.insert(1, ("---",) * len(HEADS))
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(w) if at < 2 else text.rjust(w)
                        for at, (text, w) in enumerate(zip(line, widths, strict=True))))  # fmt: skip


def machine() -> str:
    """The machine, in words."""
    return (
        f"{platform.machine()} {platform.system()} Python {platform.python_version()} numpy {np.__version__}"
    )


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the commands do."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}: --help lists the options")


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The measurements that the command line asks for."""
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = ",".join(name for name in _USUAL if name in names())
    parser.add_argument("--policy", type=policies_of, default=usual, help=f"A or A,B; {usual} unless given")
    parser.add_argument("--trace", type=Path, help="without one, a trace is made up for each seed")
    parser.add_argument("--jobs", type=_count, default=200, help="of a made-up trace")
    parser.add_argument("--tenants", type=_count, default=4, help="of a made-up trace, all alike")
    parser.add_argument("--load", type=float, default=1.3, help="of a made-up trace")
    parser.add_argument("--gpus", type=_count, default=32)
    parser.add_argument(
        "--liars", type=_count, default=4, help="how many of the tenants lie, one in each run"
    )
    parser.add_argument(
        "--lie", choices=[lie.words for lie in LIES], action="append", help="all unless given"
    )
    parser.add_argument("--seeds", type=_count, default=3)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true", help="the table for a page")
    return parser.parse_args(words)


def _count(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def rows_of(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each policy, seed, lie and liar."""
    lies = [lie for lie in LIES if not options.lie or lie.words in options.lie]
    for policy in options.policy:
        for seed in range(options.seeds):
            trace = _trace(options, seed)
            plain = Scenario(trace, uniform(options.gpus, 8))
            honest = {
                progress: _simulated(replace(plain, truthfulness=Truthfulness(progress)), policy, seed)
                for progress in dict.fromkeys(lie.progress for lie in lies)
            }
            for lie in lies:
                for liar in _liars(trace, options.liars):
                    yield _row(plain, policy, seed, lie, liar, honest[lie.progress])


def _row(
    plain: Scenario, policy: str, seed: int, lie: Lie, liar: str, honest: SimulationResult
) -> dict[str, Any]:
    began, cpu, trace = time.perf_counter(), time.process_time(), plain.trace
    lied = _simulated(replace(plain, truthfulness=lie.truthfulness(liar)), policy, seed)
    crowded = float(trace.submit_s.max() - trace.submit_s.min())
    return {
        "size": {"jobs": len(trace), "gpus": plain.machines.total_gpus, "tenants": len(trace.tenants)},
        "method": policy,
        "lie": lie.words,
        "liar": liar,
        "seed": seed,
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
        **compared(honest, lied, liar, crowded),
    }


def _trace(options: argparse.Namespace, seed: int) -> Trace:
    if options.trace:
        return read_trace(options.trace).trace
    wish = TraceWish(
        options.jobs, None, options.load, options.gpus, options.tenants, 0.0, WORKLOADS["shockwave"]
    )
    return generate(wish, np.random.default_rng(seed))


def _liars(trace: Trace, most: int) -> list[str]:
    """The tenants that ask for the most GPU time."""
    asked = np.bincount(trace.tenant, np.nan_to_num(trace.gpu_seconds), len(trace.tenants))
    return [trace.tenants[row] for row in np.argsort(-asked, kind="stable")[:most].tolist()]


def _simulated(scenario: Scenario, policy: str, seed: int) -> SimulationResult:
    return simulate(scenario, rules_for(policy, {}, aligned=False, seed=seed), wants=())


def compared(
    honest: SimulationResult, lied: SimulationResult, liar: str, crowded_seconds: float
) -> dict[str, float]:
    """The changes of service and mean JCT, of the liar and of the others, as parts of what they were."""
    before, after = (_of_both(result, liar, crowded_seconds) for result in (honest, lied))
    if not all(before):
        raise InputError("a side had no GPU time before the last submission: give a longer trace")
    changes = [now / then - 1.0 for then, now in zip(before, after, strict=True)]
    return dict(zip(MEASURES, changes, strict=True))


def _of_both(
    result: SimulationResult, liar: str, crowded_seconds: float
) -> tuple[float, float, float, float]:
    """Service and mean JCT of the liar, then of the others."""
    outcomes = result.outcomes
    mine = outcomes.tenants.index(liar)
    windows = result.tenants_between(result.epoch + np.array([0.0, max(crowded_seconds, 1.0)]))
    had, taken = windows.had[:, 0], completion_seconds(outcomes)
    his = outcomes.tenant == mine
    if his.all():
        raise InputError("all jobs are of one tenant: give a trace of several")
    return (
        float(had[mine]), float(taken[his].mean()),
        float(had.sum() - had[mine]), float(taken[~his].mean()),
    )  # fmt: skip


def lines_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A line for each policy and lie: mean changes over liars and seeds, and the standard error of the mean."""
    lines = []
    for policy, lie in dict.fromkeys((row["method"], row["lie"]) for row in rows):
        some = [row for row in rows if (row["method"], row["lie"]) == (policy, lie)]
        values = (_mean([row[measure] for row in some]) for measure in MEASURES)
        lines.append((policy, lie, str(len(some)), *values))
    return lines


def _mean(changes: Sequence[float]) -> str:
    error = statistics.stdev(changes) / math.sqrt(len(changes)) if len(changes) > 1 else math.nan
    text = f"{100 * statistics.fmean(changes):+.1f} %"
    return text if math.isnan(error) else f"{text} +- {100 * error:.1f}"


if __name__ == "__main__":
    sys.exit(ended_in_one_line(lambda: main(sys.argv[1:])))
