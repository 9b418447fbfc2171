"""All metrics of a run in one row."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.ledger import (
    Outcomes,
    RunFacts,
    Runs,
    Steps,
    Summary,
    exact_windows,
    ratio_of,
    summarise,
)
from slurm_fair.ledger.metrics.summary import Fates, job_finish_time_ratios, job_latency_ratio
from tests.support.outcome_rows import NAN, floats, row, table


def two() -> Outcomes:
    """Two jobs of two tenants on two GPUs: the second waits 10 s for the first and then runs 20."""
    common = {"owed": 10.0, "preemptions": 1, "restarts": 2, "expected_seconds": 20.0}
    first = row(0, 10, gpus=2, ran=10.0, exclusive_seconds=10.0, spread_seconds=12.0, **common)
    second = row(0, 30, gpus=1, ran=20.0, exclusive_seconds=20.0, spread_seconds=30.0, **common)
    return table(first | {"tenant": 0}, second | {"tenant": 1}, tenants=("a", "b"))


def facts() -> RunFacts:
    stretches = Runs.given(np.array([0, 1]), np.array([2, 1]), floats(0, 10), floats(10, 30))
    windows = exact_windows(two(), stretches, floats(1, 1), 2.0, floats(0, 10, 20, 30))
    return RunFacts(
        2.0, None, lost_gpu_seconds=4.0, fragments_mean=0.5, windows=windows, tenant_had=floats(20, 20),
        tenant_owed=floats(10, 30), tenant_weight=floats(1, 2), runs=stretches, capacity=Steps.steady(2.0, 0.0),
    )  # fmt: skip


BY_HAND = {
    "makespan_s": 30.0,
    "jct_mean_s": 20.0,
    "jct_p50_s": 20.0,
    "jct_p95_s": 29.0,
    "jct_p99_s": 29.8,
    "wait_mean_s": 5.0,
    "slowdown_mean": 1.25,
    "slowdown_p95": 1.475,
    "utilization": 40 / 60,
    "gpu_seconds": 40.0,
    "fragments_mean": 0.5,
    "preemptions": 2,
    "restarts": 4,
    "overhead_fraction": 0.1,
    "ftf_themis_worst": 30 / (20 * 40 / 30),  # N_avg = (10*2 + 20*1) / 30; the first: 10 / (10*2)
    "ftf_themis_unfair": 0.5,
    "ftf_shockwave_worst": 1.5,
    "ftf_shockwave_unfair": 0.5,
    "ftf_static_worst": 1.5,
    "ftf_static_unfair": 0.5,
    "ftf_sia_worst": 0.75,
    "ftf_sia_unfair": 0.0,
    "latency_ratio_max": 0.5,
    "latency_ratio_mean": 0.25,
    "ltgf_job_loss_fraction": 0.0,
    "ltgf_tenant_unfair_fraction": 0.25,  # of a's one window and b's three, b's first
    "jain_tenants": (2 + 2 / 3) ** 2 / (2 * (4 + 4 / 9)),
    "jobs_completed": 2,
    "jobs_total": 2,
    "ftf_themis_mean": (10 / (10 * 2) + 30 / (20 * 40 / 30)) / 2,
    "ftf_shockwave_mean": 1.25,
    "ftf_static_mean": 1.25,
    "ftf_sia_mean": (10 / (12 * 2) + 30 / (30 * 40 / 30)) / 2,
    "latency_ratio_recent": 0.25,
    "utilization_loaded": 1.0,  # only in the first 10 s more is asked for than there is
    "largest_envy_gpu_seconds": 10.0,
}
KEYS = list(BY_HAND)  # as they are promised, in their order


@pytest.mark.parametrize("key", KEYS)
def test_each_metric(key: str) -> None:
    assert summarise(two(), facts()).to_dict()[key] == pytest.approx(BY_HAND[key])


def test_the_keys_are_those_of_the_simulators_document() -> None:
    assert [field.name for field in fields(Summary)] == KEYS == list(summarise(two(), facts()).to_dict())


def test_the_page_on_metrics_names_every_key_and_functions_that_exist() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in page] == []
    named = re.findall(r"`(\w+)\.(\w+)`", page)
    assert len(named) > 20
    homes = {
        "outcomes": "slurm_fair.ledger.outcomes",
        "expected": "slurm_fair.ledger.outcomes",
        "formulas": "slurm_fair.ledger",
    }
    where = {module: f"{homes.get(module, 'slurm_fair.ledger.metrics')}.{module}" for module, _ in named}
    missing = [pair for pair in named if not hasattr(import_module(where[pair[0]]), pair[1])]
    assert missing == []


def test_what_is_not_known_is_null_in_json() -> None:
    document = summarise(two(), RunFacts(2.0)).to_dict()
    unknown = {key for key, value in document.items() if value is None}
    assert unknown == {
        "fragments_mean",
        "overhead_fraction",
        "ltgf_tenant_unfair_fraction",
        "jain_tenants",
        "utilization_loaded",
        "largest_envy_gpu_seconds",
    }
    json.dumps(document, allow_nan=False)


def test_nobody_has_no_metrics() -> None:
    summary = summarise(table(), RunFacts(2.0))
    known = {key: value for key, value in summary.to_dict().items() if value is not None}
    assert known == {
        "gpu_seconds": 0.0,
        "preemptions": 0,
        "restarts": 0,
        "jobs_completed": 0,
        "jobs_total": 0,
    }


def test_jobs_that_are_not_over_or_never_ran_count_but_have_no_times() -> None:
    jobs = table(row(0, 10, ran=10.0), row(5, NAN, ran=3.0), row(2, 6, ran=0.0), until=20)
    summary = summarise(replace(jobs, completed=np.array([True, False, False])), RunFacts(1.0))
    assert (summary.jobs_total, summary.jobs_completed) == (3, 1)
    assert (summary.jct_mean_s, summary.slowdown_mean, summary.makespan_s) == (7.0, 1.0, 10.0)
    assert summary.gpu_seconds == 13.0
    assert summary.utilization == 13 / 20  # the open job makes the span reach to now


def test_a_capacity_that_changed_is_told() -> None:
    assert summarise(two(), RunFacts(2.0, capacity_gpu_seconds=50.0)).utilization == 0.8


def test_a_tenant_that_was_owed_nothing_is_left_out_of_jains_index() -> None:
    told = RunFacts(2.0, tenant_had=floats(5, 5, 9), tenant_owed=floats(10, 10, 0))
    assert summarise(two(), told).jain_tenants == 1.0


def test_the_recent_latency_ratio_is_of_the_jobs_that_ended_on_the_last_day() -> None:
    jobs = table(
        row(0, 100, ran=50.0, expected_seconds=50.0), row(1e5, 100_050, ran=50.0, expected_seconds=50.0)
    )
    summary = summarise(jobs, RunFacts(1.0))
    assert (summary.latency_ratio_mean, summary.latency_ratio_recent) == (0.5, 0.0)


def test_losing_jobs_are_counted_among_those_that_have_ended() -> None:
    jobs = table(row(0, 9, ran=9.0, owed=10.0), row(0, 9, ran=9.0, owed=9.0), row(0, NAN, ran=1.0, owed=9.0))
    assert summarise(jobs, RunFacts(1.0)).ltgf_job_loss_fraction == 0.5


def test_each_jobs_own_figures() -> None:
    jobs = two()
    assert job_latency_ratio(jobs).tolist() == [0.0, 0.5]
    rho = job_finish_time_ratios(jobs, 2.0)
    assert set(rho) == {"themis", "shockwave", "static", "sia"}
    assert all(ratio_of(jobs, name, 2.0).tolist() == values.tolist() for name, values in rho.items())
    assert math.isnan(job_latency_ratio(table(row(0), until=9))[0])
    lives = table(row(0, ran=5.0, expected_seconds=5.0), until=9)
    assert math.isnan(job_latency_ratio(lives)[0]), "it may wait longer yet"


def test_jobs_of_one_tenant_are_measured_against_all_of_them() -> None:
    whole = Fates.of(two(), 2.0)
    found = whole.figures(two().tenant == 1)
    assert (found["ftf_sia_worst"], found["ftf_sia_mean"], found["latency_ratio_max"]) == (0.75, 0.75, 0.5)
    summary = summarise(two(), facts()).to_dict()
    assert whole.figures() == {key: summary[key] for key in found}
    assert math.isnan(whole.figures(two().tenant == 7)["ftf_static_worst"])
