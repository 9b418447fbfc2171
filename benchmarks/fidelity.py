"""Real runs of some hundred jobs on a private Slurm beside simulations of the same jobs, as one page.

python -m benchmarks.fidelity --folder RUNS --write docs/fidelity.md

Runs that lie in the folder from before are taken as they are; those that lack are played, seven minutes each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from benchmarks.fidelity_compare import Numbers, compared
from benchmarks.fidelity_page import Followed, WayResult, page
from benchmarks.fidelity_recording import Measured, RealRun, measured
from benchmarks.fidelity_stage import WAYS, Way, played
from benchmarks.fidelity_steps import DrawnSteps, steps_as_recorded
from benchmarks.fidelity_trace import GPUS_PER_NODE, NODES, WEIGHTS, PlannedJob, planned
from benchmarks.fidelity_virtual import as_the_daemon, follow, plain_costs, simulated


def main() -> None:
    """Play, simulate, compare, write."""
    parser = _parser()
    args = parser.parse_args()
    jobs = planned(args.jobs, args.over, args.load, args.seed)
    if args.folder and (wrong := _of_other_arguments(args.folder, args.runs, jobs)):
        parser.error(f"argument --folder: {wrong}")
    with _folder(args.folder) as folder:
        for number in range(1, args.runs + 1):
            for way in WAYS:
                _play(way, jobs, folder / f"{way.name}-{number}")
        results = [_result(way, jobs, folder, args) for way in WAYS]
    if args.json:
        machine = f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores"
        rows = [row for result in results for row in _rows(result, args)]
        print(json.dumps({"name": "fidelity", "machine": machine, "rows": rows}))
        return
    facts = {
        "jobs": args.jobs,
        "over": args.over,
        "load": args.load,
        "gpus": NODES * GPUS_PER_NODE,
        "nodes": NODES,
    }
    text = page(facts, results, tuple(WEIGHTS)) + f"\n{time.strftime('%Y-%m-%d')}, seed {args.seed}\n"
    if args.write:
        args.write.write_text(text)
    else:
        sys.stdout.write(text)


def _parser() -> arguments.Parser:
    parser = arguments.Parser(__doc__)
    parser.add_argument("--jobs", type=arguments.count, default=300)
    parser.add_argument(
        "--over", type=arguments.number, default=220.0, help="seconds in which they are submitted"
    )
    parser.add_argument(
        "--load",
        type=arguments.number,
        default=1.25,
        help="GPU time that they want / that there is meanwhile",
    )
    parser.add_argument("--seed", type=arguments.whole, default=1)
    parser.add_argument("--runs", type=arguments.count, default=3, help="real runs of each kind")
    parser.add_argument("--simulations", type=arguments.count, default=20, help="of each kind")
    parser.add_argument(
        "--folder", type=Path, help="folder in which the real runs are kept; else they go away"
    )
    parser.add_argument("--write", type=arguments.page, help="the page; else it is printed")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


def _of_other_arguments(folder: Path, runs: int, jobs: Sequence[PlannedJob]) -> str:
    """The complaint about a recording of another way or of other jobs; empty where all that are there fit."""
    for way in WAYS:
        for number in range(1, runs + 1):
            file = folder / f"{way.name}-{number}" / "recording.json"
            if not file.exists():
                continue
            said = json.loads(file.read_text())
            kept = [{name: job.get(name) for name in asdict(jobs[0])} for job in said["jobs"]]
            if [said["way"], kept] != [asdict(way), [asdict(job) for job in jobs]]:
                return f"{file} was recorded with other arguments: give those, or another folder"
    return ""


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="slurm-fair-fidelity-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def _play(way: Way, jobs: Sequence[PlannedJob], folder: Path) -> None:
    if (folder / "recording.json").exists():
        return
    print(f"{time.strftime('%X')} {folder.name}", file=sys.stderr)
    played(way, jobs, folder)


def _result(way: Way, jobs: Sequence[PlannedJob], folder: Path, args: argparse.Namespace) -> WayResult:
    runs = [RealRun.read(folder / f"{way.name}-{number}") for number in range(1, args.runs + 1)]
    real, found = [run.numbers() for run in runs], measured(runs)
    numbers = range(1, args.simulations + 1)
    daemons = [_as_the_daemon(way, jobs, found, [args.seed, number]) for number in numbers]
    plain = [_plain(way, jobs, found, [args.seed, number]) for number in numbers]
    print(f"{time.strftime('%X')} {way.name} simulated", file=sys.stderr)
    each = [_followed(run, at) for at, run in enumerate(runs, 1)]
    return WayResult(
        way, compared(real, daemons), compared(real, plain), each, found, [run.load for run in runs]
    )


def _as_the_daemon(way: Way, jobs: Sequence[PlannedJob], found: Measured, seed: list[int]) -> Numbers:
    steps = DrawnSteps(found.costs(), found.every, np.random.default_rng([*seed, 1]))
    return simulated(way, jobs, found.costs(), np.random.default_rng(seed), as_the_daemon(way, found), steps)


def _plain(way: Way, jobs: Sequence[PlannedJob], found: Measured, seed: list[int]) -> Numbers:
    return simulated(way, jobs, plain_costs(found), np.random.default_rng(seed))


def _followed(run: RealRun, number: int) -> Followed:
    own = measured([run])
    numbers, parted = follow(run, own.costs(), steps_as_recorded(run, own))
    return Followed(f"{run.way.name} {number}", run.numbers(), numbers, parted)


def _rows(result: WayResult, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One for each real run and each simulation."""
    size = {"jobs": args.jobs, "gpus": NODES * GPUS_PER_NODE}
    for method, columns in (("simulated", result.means), ("plain", result.plain)):
        for at in range(len(columns[0].simulated)):
            values = {one.name: one.simulated[at] for one in columns}
            yield {"size": size, "way": result.way.name, "method": method, "seed": at + 1, **values}
    for at in range(len(result.means[0].real)):
        values = {one.name: one.real[at] for one in result.means}
        yield {"size": size, "way": result.way.name, "method": "real", "seed": args.seed, **values}


if __name__ == "__main__":
    main()
