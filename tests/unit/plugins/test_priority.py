"""Priorities of jobs: latency ratios, and those that they are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.policy import load
from slurm_fair_plugins.priority import Name, expected_run_seconds, priorities
from tests.support.accounts import places
from tests.support.builders import NodeSpec, job, node
from tests.support.hops_views import plan, sight


def test_a_latency_ratio_is_the_wait_over_the_expected_run_time() -> None:
    seen = sight([job(1), job(2)], waited={"1": 100.0, "2": 100.0}, declared_seconds=[50.0, 400.0])
    assert priorities(seen, np.arange(2), "lr").tolist() == [2.0, 0.25]


def test_the_expected_time_is_over_types_by_their_part_and_over_sizes_by_their_mean() -> None:
    nodes: dict[str, int | NodeSpec] = {"n1": node(6, gpu_type="x"), "n2": node(2, gpu_type="y")}
    seen = sight(
        [job(1, gpus=2)],
        nodes,
        elastic={0: (2, 4)},
        rates=[[1.0, 2.0]],
        declared_seconds=[300.0],
        scaling=[2.0],
    )  # with one GPU half as fast as with two: 0.75 * 300 / (0.5 * 3) + 0.25 * 300 / (1 * 3)
    assert expected_run_seconds(seen, np.arange(1)).tolist() == pytest.approx([0.75 * 200 + 0.25 * 100])


def test_a_job_of_which_nobody_knows_how_long_it_runs_counts_as_the_median() -> None:
    jobs = [job(1), job(2), job(3, time_limit_seconds=float("inf"))]
    seen = sight(jobs, declared_seconds=[100.0, 300.0, float("nan")])
    assert expected_run_seconds(seen, np.arange(3)).tolist() == [100.0, 300.0, 200.0]


@pytest.mark.parametrize("name", ["lr", "sjf"])
def test_what_a_job_or_its_class_says_goes_before_a_time_limit(name: Name) -> None:
    """On a real Slurm nobody declares: job 1 is known to have a minute left, job 2 more than eight hours."""
    jobs = [job(base, time_limit_seconds=36_000.0) for base in (1, 2, 3)]
    seen = sight(jobs, waited=dict.fromkeys("123", 60.0), left_seconds=[60.0, 30_000.0, float("nan")])
    found = priorities(seen, np.arange(3), name)
    assert found.argsort()[::-1].tolist() == [0, 1, 2]
    assert expected_run_seconds(seen, np.arange(3)).tolist() == [60.0, 30_000.0, 36_000.0]


@pytest.mark.parametrize(
    ("name", "first"),
    [("lr", "2"), ("sjf", "2"), ("srtf", "3"), ("las", "1"), ("ftf", "2"), ("ltgf", "1")],
)
def test_priorities_by_name(name: str, first: str) -> None:
    seen = sight(
        [job(1, gpus=8), job(2, gpus=8), job(3, gpus=8)], {"n1": 8},
        waited={"2": 50.0}, declared_seconds=[900.0, 60.0, 600.0], left_seconds=[900.0, 60.0, 5.0],
    )  # fmt: skip
    jobs = seen.ledger.jobs
    had = np.array([0.0, 100.0, 100.0])
    seen = replace(seen, ledger=replace(seen.ledger, jobs=jobs.with_columns(had=had, owed=had + 1)))
    assert list(plan(seen, priority=name)) == [first]


@pytest.mark.parametrize(("queue", "first"), [("age", "1"), ("lr", "2")])
@pytest.mark.parametrize("name", ["gavel", "sia", "pollux"])
def test_between_equals_the_first_of_the_queue_goes(name: str, queue: str, first: str) -> None:
    jobs = [job(1, gpus=8, submit=100), job(2, gpus=8, submit=200)]
    waited = {"1": 9900.0, "2": 9800.0}
    seen = sight(jobs, {"n1": 8}, waited=waited, declared_seconds=[9000.0, 90.0])
    assert places(seen.snapshot, load(name, {"queue": queue}).plan(seen)) == {first: {"n1": 8}}
