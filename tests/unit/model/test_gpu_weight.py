"""GPUs count by the weight of their type, and weights that somebody wrote are checked in words."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import JobState
from slurm_fair.model.gpu_weight import (
    MOST_WEIGHT,
    UNTYPED,
    fault_in,
    mean_weight,
    misfit,
    named,
    of_jobs,
    of_types,
)
from tests.support.builders import job, node, snapshot

GOOD: list[dict[str, object]] = [{}, {"a100": 1}, {"a": 0, "b": 0.0}, {"a": 1e-3}, {"a": MOST_WEIGHT}]
BAD: list[dict[str, object]] = [
    {"a": -1}, {"a": 9e-4}, {"a": 1.1 * MOST_WEIGHT}, {"a": True}, {"a": False}, {"a": "1"}, {"a": None},
    {"a": float("nan")}, {"a": float("inf")}, {"b": 1, "a": -1},
]  # fmt: skip
NO_TYPES = ["", "a b", "a,b", "a=b", "a:b", "a\n", "\x00"]


@pytest.mark.parametrize("given", GOOD)
def test_weights_may_be_nothing_or_from_a_thousandth_to_a_million(given: dict[str, object]) -> None:
    assert fault_in(given) == ""


@pytest.mark.parametrize("given", BAD, ids=str)
def test_other_weights_are_refused_by_the_name_of_the_type(given: dict[str, object]) -> None:
    assert fault_in(given).startswith("a must count 0, or from 0.001 to 1e+06")


@pytest.mark.parametrize("name", NO_TYPES)
def test_what_slurm_would_not_take_as_a_type_is_none(name: str) -> None:
    assert fault_in({name: 1}).endswith("is no GPU type")


def test_weights_name_types_that_are_there_and_leave_one_that_counts() -> None:
    assert misfit({}, ["x"]) == misfit({"x": 0.0}, ["x", "y"]) == misfit({UNTYPED: 2.0}, ["", "x"]) == ""
    assert "no GPUs of type 'z'" in misfit({"x": 1.0, "z": 1.0}, ["x", "y"])
    assert "all GPUs would count 0" in misfit({"x": 0.0, "y": 0.0}, ["y", "x"])
    assert "all GPUs would count 0" in misfit({UNTYPED: 0.0}, [""])
    assert "no GPUs of type" in misfit({"x": 0.0}, [])


def test_types_that_are_not_named_count_one() -> None:
    assert of_types({}, ["x"]) is None
    found = of_types({"y": 0.0, UNTYPED: 3.0}, ["y", "", "x"])
    assert found is not None
    assert found.tolist() == [0.0, 3.0, 1.0]
    assert (named(""), named("x")) == (UNTYPED, "x")


def test_on_average_nodes_count_by_their_gpus() -> None:
    weights, kind = np.array([1.0, 4.0]), np.array([1, 0, 1])
    assert mean_weight(weights, kind, np.array([2, 6, 0])) == (2 * 4 + 6 * 1) / 8
    assert mean_weight(weights, kind, np.array([0, 0, 0])) == 1.0
    assert mean_weight(weights, kind[:0], kind[:0]) == 1.0


def test_a_job_counts_by_what_it_holds_else_by_what_it_asks_for_else_by_the_mean() -> None:
    runs = {"gpus": 4, "state": JobState.RUNNING}
    shown = snapshot(
        nodes={"n1": node(8, gpu_type="x"), "n2": node(4, gpu_type="y")},
        jobs=[
            job(1, gpu_type="y"), job(2), job(3, on={"n1": 3, "n2": 1}, gpu_type="y", **runs),
            job(4, gpu_type="x"), job(5, on={"n1": 4}, **runs),
        ],
    )  # fmt: skip
    weights = np.array([1.0, 4.0])
    found = of_jobs(weights, shown.nodes, shown.held, shown.jobs.gpu_type)
    assert found.tolist() == [4.0, (8 * 1 + 4 * 4) / 12, (3 * 1 + 1 * 4) / 4, 1.0, 1.0]
    assert weights.tolist() == [1.0, 4.0]
