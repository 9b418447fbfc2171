"""CPU and memory of a simulated trace under a policy, and their growth with the trace's length.

python benchmarks/simulate.py --trace trace.csv.gz --policy astraea,fifo --gpus 560 --scale 1,2,4

Each repeat is a process of its own, so that its peak memory is its own. Its CPU counts the whole command: imports,
reading the trace, and the summary too; `simulation_cpu_s` is the part of the simulation itself. With --scale the
first 1/4, 1/2 and whole of the trace are simulated, and what that means in events stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks.arguments import count, number
from slurm_fair.cli.base import ended_in_one_line
from slurm_fair.cli.simulate.setups import policies_of
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.trace import WORKLOADS, Trace, TraceWish, generate, read_trace, write_trace

# What is measured: the command as a person runs it, with its own use of the machine on standard error.
_CHILD = """
import os, resource, sys
from slurm_fair.cli.base import ended_in_one_line
from slurm_fair.cli.main import cli
code = ended_in_one_line(lambda: cli.main(sys.argv[1:], prog_name="slurm-fair", standalone_mode=False))
own = resource.getrusage(resource.RUSAGE_SELF)
print(own.ru_utime + own.ru_stime, own.ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""
_RESULT_KEYS = (
    "makespan_s",
    "jct_mean_s",
    "utilization",
    "ltgf_job_loss_fraction",
    "decision_p50_s",
    "looks",
)
HEADS = ("policy", "jobs", "gpus", "events", "repeats", "cpu s", "of it sim", "wall s", "MiB", "us/event")
_LONGEST_SECONDS = 10_800
_ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main(words: Sequence[str]) -> None:
    """One row per repeat."""
    options = options_of(words)
    rows = rows_of(options)
    if options.json:
        print(json.dumps({"name": "simulate", "machine": machine(), "rows": rows}))
    elif options.markdown:
        _print_markdown(rows)
    else:
        _print_table(rows)


def rows_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every measurement that was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            row
            for seed in range(options.seeds)
            for scale, path, trace in _traces(options, seed, Path(folder))
            for policy in options.policy
            for row in measure(options, policy, seed, scale, path, trace)
        ]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the commands do."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}: --help lists the options")


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The measurements that the command line asks for."""
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="without one, a trace is made up for each seed")
    parser.add_argument("--policy", type=policies_of, default="astraea", help="A or A,B")
    parser.add_argument("--gpus", type=count, default=64)
    parser.add_argument("--gpus-per-node", type=count, default=8)
    parser.add_argument(
        "--jobs", type=count, help="only the first so many of the trace; 500 of a made-up one"
    )
    parser.add_argument(
        "--scale", type=_scales, default="1", help="parts of the trace that double: 1,2,4 is 1/4, 1/2, whole"
    )
    parser.add_argument(
        "--load", type=number, default=1.2, help="of a made-up trace: GPUs wanted, of those there"
    )
    parser.add_argument(
        "--copies", type=count, default=1, help="of each job of --trace: a larger crowd, as dense"
    )
    parser.add_argument("--lease", type=float)
    parser.add_argument("--interval", type=float, help="the command's own unless given")
    parser.add_argument("--arguments", default="", help="further options of slurm-fair simulate, in one text")
    parser.add_argument(
        "--seeds", type=count, default=1, help="how many made-up traces, and seeds of the policies"
    )
    parser.add_argument("--repeat", type=count, default=5, help="processes measured for each")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true", help="the medians as a table for a page")
    return parser.parse_args(words)


def _scales(text: str) -> list[int]:
    """Ascending numbers, each once."""
    return sorted({count(part) for part in text.split(",")})


def _traces(options: argparse.Namespace, seed: int, folder: Path) -> list[tuple[int, Path, Trace]]:
    """The parts of the trace that are simulated, each in a file of its own."""
    whole = _whole(options, seed)
    if options.jobs:
        whole = whole.take(np.arange(min(options.jobs, len(whole))))
    found = []
    for scale in options.scale:
        part = whole.take(np.arange(max(len(whole) * scale // options.scale[-1], 1)))
        path = folder / f"trace-{seed}-{scale}.csv.gz"
        write_trace(part, path)
        found.append((scale, path, part))
    return found


def _whole(options: argparse.Namespace, seed: int) -> Trace:
    if options.trace:
        return _copied(read_trace(options.trace).trace, options.copies)
    wish = TraceWish(options.jobs or 500, None, options.load, options.gpus, 8, 1.0, WORKLOADS["shockwave"])
    return generate(wish, np.random.default_rng(seed))


def _copied(trace: Trace, times: int) -> Trace:
    """Each job so many times, side by side, under ids of their own."""
    if times == 1:
        return trace
    copies = trace.take(np.arange(len(trace)).repeat(times))
    ids = [f"{number % times}-{job}" for number, job in enumerate(copies.job_id)]
    return copies.with_columns(job_id=np.array(ids, dtype=copies.job_id.dtype))


def measure(
    options: argparse.Namespace, policy: str, seed: int, scale: int, path: Path, trace: Trace
) -> list[dict[str, Any]]:
    """The command, once a repeat."""
    arguments = [
        "simulate", str(path), "--policy", policy, "--gpus", str(options.gpus), "--gpus-per-node",
        str(options.gpus_per_node), "--seed", str(seed), "--json",
        *(["--lease", str(options.lease)] if options.lease is not None else []),
        *(["--interval", str(options.interval)] if options.interval is not None else []),
        *options.arguments.split(),
    ]  # fmt: skip
    return [_measured(arguments, policy, seed, scale, trace, options.gpus) for _ in range(options.repeat)]


def _measured(
    arguments: list[str], policy: str, seed: int, scale: int, trace: Trace, gpus: int
) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, timeout=_LONGEST_SECONDS,
            check=False, env={**os.environ, **_ONE_CORE},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SlurmFairError(
            f"{policy} took more than {_LONGEST_SECONDS} s: measure a part, --jobs N"
        ) from None
    wall = time.perf_counter() - began
    if done.returncode:
        raise _refused(done)
    cpu, peak = map(float, done.stderr.split()[-2:])
    result = _only_result(done.stdout)
    # Submissions, starts, stops and ends.
    events = 3 * result["jobs_total"] + 2 * result["preemptions"]
    return {
        "size": {"jobs": len(trace), "gpus": gpus, "events": events, "scale": scale},
        "method": policy,
        "seed": seed,
        "wall_s": wall,
        "cpu_s": cpu,
        "peak_rss_mb": peak,
        "simulation_cpu_s": result["cpu_s"],
        **{key: result[key] for key in _RESULT_KEYS},
    }


def _refused(done: subprocess.CompletedProcess[str]) -> SlurmFairError:
    """The last line of the command's complaint, without its name."""
    said = [line for line in done.stderr.splitlines() if line.startswith("slurm-fair: ")] or ["no word why"]
    kind = InputError if done.returncode == InputError.exit_code else SlurmFairError
    return kind(said[-1].removeprefix("slurm-fair: "))


def _only_result(text: str) -> dict[str, Any]:
    """The one result that --json prints; --arguments may ask for something else."""
    try:
        (result,) = json.loads(text)["results"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "--arguments: they change what simulate prints: give no --help and no --policy"
        ) from None
    return dict(result)


def machine() -> str:
    """The machine, in words."""
    return (
        f"{platform.machine()} {platform.system()} Python {platform.python_version()} numpy {np.__version__}"
    )


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Medians of the repeats; the time of one event shows how cost grows."""
    print(machine())
    print(" ".join(f"{head:>12}" for head in HEADS))
    for cells in medians(rows):
        print(" ".join(f"{cell:>12}" for cell in cells))


def _print_markdown(rows: Sequence[dict[str, Any]]) -> None:
    for cells in (HEADS, ["---"] * len(HEADS), *medians(rows)):
        print(f"| {' | '.join(cells)} |")
    print(f"\n{machine()}")


def medians(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A line for each policy and size, as HEADS names its cells."""
    lines = []
    for key in dict.fromkeys((row["method"], row["size"]["scale"]) for row in rows):
        some = [row for row in rows if (row["method"], row["size"]["scale"]) == key]
        size = some[0]["size"]
        cpu, sim, wall, peak = (
            statistics.median(row[name] for row in some)
            for name in ("cpu_s", "simulation_cpu_s", "wall_s", "peak_rss_mb")
        )
        events = statistics.median(row["size"]["events"] for row in some)
        repeats = len(some) // len({row["seed"] for row in some})
        cells = [key[0], str(size["jobs"]), str(size["gpus"]), f"{events:.0f}", str(repeats)]
        lines.append(
            [
                *cells,
                f"{cpu:.2f}",
                f"{sim:.2f}",
                f"{wall:.2f}",
                f"{peak:.0f}",
                f"{1000000.0 * sim / events:.0f}",
            ]
        )
    return lines


if __name__ == "__main__":
    sys.exit(ended_in_one_line(lambda: main(sys.argv[1:])))
