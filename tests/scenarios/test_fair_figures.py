"""Figures that `fair` promises: on Shockwave's traces, on loads of short jobs, and where its solver pays."""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks import frontier
from tests.support.command_line import call
from tests.support.simulated import Arrival, Rounds, arrival, simulated

TRACES = Path(os.environ.get("SLURM_FAIR_SHARED") or Path(__file__).parents[2].parent / "shared") / "traces"


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no public traces at {TRACES}: set SLURM_FAIR_SHARED")
@pytest.mark.parametrize(
    ("jobs", "gpus", "makespan", "jct", "worst", "unfair"),
    [(120, 32, 23_100, 7_550, 1.0, 0.005), (460, 128, 24_000, 7_150, 1.7, 0.017)],
)
def test_shockwaves_traces(
    jobs: int, gpus: int, makespan: float, jct: float, worst: float, unfair: float
) -> None:
    """Ahead of every policy of the reference results in all four columns."""
    name = f"{TRACES}/shockwave_{jobs}"
    said = call(
        "simulate", f"{name}.csv.gz", "--regimes", f"{name}_regimes.jsonl.gz", "--gpus", str(gpus),
        "--gpus-per-node", "1", "--rounds", "gavel", "--lease", "120", "--restart-cost", "20",
        "--policy", "fair", "--counted", "all", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    (figures,) = json.loads(said.out)["results"]
    assert figures["makespan_s"] <= makespan
    assert figures["jct_mean_s"] <= jct
    assert figures["ftf_static_worst"] <= worst
    assert figures["ftf_static_unfair"] <= unfair


def short_jobs(seed: int) -> list[Arrival]:
    """Jobs of which most are done within a lease or two."""
    dice, at, jobs = random.Random(seed), 0.0, list[Arrival]()
    for _ in range(400):
        at += dice.expovariate(1 / 75)
        tenant, gpus = f"u{dice.randrange(4)}", dice.choice((1, 1, 1, 2, 4))
        jobs.append(
            arrival(round(at), gpus=gpus, seconds=float(dice.choice((30, 60, 120, 300, 900))), tenant=tenant)
        )
    return jobs


def mean_completion(jobs: list[Arrival], makespan_weight: float) -> float:
    how = Rounds(lease=900.0, aligned=False, everyone=True)
    done = simulated(jobs, "fair", settings={"makespan_weight": makespan_weight}, how=how).outcomes
    return float(np.mean(done.end - done.submit))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_all_jobs_are_short_the_makespan_costs_next_to_no_completion_time(seed: int) -> None:
    jobs = short_jobs(seed)
    assert mean_completion(jobs, 1000.0) <= 1.08 * mean_completion(jobs, 0.0)


@pytest.mark.parametrize("aligned", [True, False])
def test_where_types_and_sizes_differ_the_solver_is_worth_it(aligned: bool) -> None:
    """Gangs and elastic jobs on three GPU types."""
    args = argparse.Namespace(jobs=60)
    done = {how: frontier._shaped("fair", {"solver": how}, aligned, 0, args) for how in ("auto", "off")}
    jct, makespan = ({how: done[how][key] for how in done} for key in ("jct_mean_s", "makespan_s"))
    assert jct["auto"] <= 0.97 * jct["off"]
    assert makespan["auto"] <= 0.9 * makespan["off"]
