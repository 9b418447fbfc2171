"""Small traces for tests of `simulate`, and what a run of it leaves behind."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.trace import WORKLOADS, TraceWish, generate, write_trace
from tests.support.command_line import Said, call

HEADER = "job_id,tenant,submit_s,gpus,duration_s"
COSTS = ("--restart-cost", "20", "--checkpoint-cost", "5", "--requeue-delay", "30")
# Keys whose values are the machine's, not the simulation's.
TIMINGS = {
    "decision_p50_s",
    "decision_p95_s",
    "decision_max_s",
    "plans_solved_s",
    "wall_s",
    "cpu_s",
    "peak_rss_mb",
}


def made(folder: Path, jobs: int = 40, seed: int = 1) -> Path:
    """A trace that keeps 16 GPUs busy for some hours, of four tenants."""
    path = folder / "trace.csv"
    wish = TraceWish(jobs, None, 1.3, 16, 4, 1.0, WORKLOADS["shockwave"])
    trace = generate(wish, np.random.default_rng(seed))
    shorter = {name: np.round(getattr(trace, name) / 10, 3) for name in ("submit_s", "duration_s")}
    write_trace(trace.with_columns(**shorter), path)
    return path


def written(folder: Path, *rows: str, header: str = HEADER, name: str = "trace.csv") -> Path:
    """A trace of these rows."""
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def simulated(trace: Path, *arguments: str) -> Said:
    """`slurm-fair simulate TRACE --gpus 16 ARGUMENTS`."""
    return call("simulate", str(trace), "--gpus", "16", *arguments)


def document(trace: Path, *arguments: str) -> dict[str, Any]:
    """The output of --json."""
    said = simulated(trace, "--json", *arguments)
    assert (said.code, said.err) == (0, "")
    found: dict[str, Any] = json.loads(said.out)
    return found


def results(trace: Path, *arguments: str) -> list[dict[str, Any]]:
    """The policies' results without the machine's own numbers."""
    return [
        {key: value for key, value in result.items() if key not in TIMINGS}
        for result in document(trace, *arguments)["results"]
    ]


def only(trace: Path, *arguments: str) -> dict[str, Any]:
    """The result of one policy."""
    (result,) = results(trace, *arguments)
    return result


def jobs_of(path: Path) -> list[dict[str, str]]:
    """The rows of --jobs-out."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
