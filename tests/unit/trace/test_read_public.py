"""Real workloads, where they lie beside the checkout ($SLURM_FAIR_SHARED, else ../shared): what they hold."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.trace import (
    describe,
    read_regimes,
    read_throughputs,
    read_trace,
    read_weights,
    write_trace,
)

SHARED = Path(os.environ.get("SLURM_FAIR_SHARED") or Path(__file__).parents[3].parent / "shared")
TRACES = SHARED / "traces"

pytestmark = pytest.mark.skipif(
    not TRACES.is_dir(),
    reason=f"no public traces at {TRACES}: set SLURM_FAIR_SHARED to the folder that has traces/",
)


@pytest.mark.parametrize(
    ("name", "jobs", "span_hours", "tenants", "gpu_hours", "max_gpus", "fractional"),
    [
        ("philly_sia_full", 82_247, 2613.5, 15, 978_078, 128, 0),
        ("philly_sia_2week", 26_936, 335.8, 11, 183_234, 16, 0),
        ("alibaba_openb_v2023", 6_203, 3583.8, 4, 51_471, 8, 2_573),
        ("shockwave_120", 120, 1.4, 120, 176.6, 4, 0),
        ("shockwave_460", 460, 1.3, 460, 769.9, 8, 0),
    ],
)
def test_a_public_trace_holds_what_its_publishers_say(
    name: str, jobs: int, span_hours: float, tenants: int, gpu_hours: float, max_gpus: int, fractional: int
) -> None:
    told = describe(read_trace(TRACES / f"{name}.csv.gz"))
    assert (told.jobs, told.tenants, told.max_gpus, told.bad_rows) == (jobs, tenants, max_gpus, 0)
    assert round(told.span_s / 3600, 1) == span_hours
    assert round(told.gpu_seconds / 3600, 0 if gpu_hours > 1000 else 1) == gpu_hours
    assert told.jobs_with_fractional_gpus == fractional


def test_running_and_failed_pods_are_told_apart() -> None:
    told = describe(read_trace(TRACES / "alibaba_openb_v2023.csv.gz"))
    assert told.statuses == {"COMPLETED": 185, "FAILED": 1_869, "RUNNING": 4_149}


@pytest.mark.parametrize(("name", "jobs"), [("pollux_workloads", 7_680), ("sia_workloads_philly", 1_280)])
def test_workloads_without_run_times_can_be_read_where_none_are_needed(name: str, jobs: int) -> None:
    told = describe(read_trace(TRACES / f"{name}.csv.gz", need_durations=False))
    assert (told.jobs, told.jobs_without_duration, told.models) == (jobs, jobs, 6 if jobs > 2_000 else 5)


def test_measured_throughputs_have_four_sources() -> None:
    rates = read_throughputs(TRACES / "throughputs.csv.gz")
    assert rates.sources == ("shockwave_tacc", "shockwave_wisr", "gavel_simulation", "gavel_physical")
    sizes = [len(read_throughputs(TRACES / "throughputs.csv.gz", name).rates) for name in rates.sources]
    assert sum(sizes) == 1_968


def test_throughputs_give_the_run_times_that_shockwaves_users_declared(tmp_path: Path) -> None:
    lines = gzip.decompress((TRACES / "shockwave_120.csv.gz").read_bytes()).decode().splitlines()
    at = lines[0].split(",").index("duration_s")
    cut = [
        ",".join("" if place == at else cell for place, cell in enumerate(line.split(",")))
        for line in lines[1:]
    ]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *cut]))
    rates = read_throughputs(TRACES / "throughputs.csv.gz", "shockwave_tacc")
    trace = read_trace(tmp_path / "t.csv", throughputs=rates).trace
    assert trace.duration_s == pytest.approx(trace.declared_s, abs=1)


@pytest.mark.parametrize("jobs", [120, 460])
def test_regimes_last_as_long_as_their_jobs(jobs: int) -> None:
    trace = read_trace(TRACES / f"shockwave_{jobs}.csv.gz").trace
    regimes = read_regimes(TRACES / f"shockwave_{jobs}_regimes.jsonl.gz")
    assert list(regimes) == list(trace.job_id)
    assert [regimes[job].seconds for job in trace.job_id] == pytest.approx(trace.duration_s, rel=1e-3)
    assert [regimes[job].mode for job in trace.job_id] == trace.mode.tolist()
    assert [regimes[job].gpus for job in trace.job_id] == trace.gpus.tolist()


def test_the_shares_of_phillys_tenants_name_its_tenants() -> None:
    weights = read_weights(TRACES / "philly_vc_shares_astraea.csv")
    assert set(weights) == set(read_trace(TRACES / "philly_sia_full.csv.gz").trace.tenants)


def test_a_public_trace_reads_back_as_it_was_written(tmp_path: Path) -> None:
    trace = read_trace(TRACES / "alibaba_openb_v2023.csv.gz").trace
    write_trace(trace, tmp_path / "t.csv.gz")
    again = read_trace(tmp_path / "t.csv.gz").trace
    assert all(
        np.array_equal(one, again._arrays()[name], equal_nan=one.dtype == np.float64)
        for name, one in trace._arrays().items()
    )
