"""`benchmarks/hops_models.py`: Table 2 of the Hops paper, and measured speeds that stand for its models."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.estimator import FILE
from benchmarks.hops_models import MOST_GPUS, TABLE_2, measured, with_models
from slurm_fair.trace import TraceWish, generate
from slurm_fair.trace.classes import HOUR, WORKLOADS
from slurm_fair.trace.throughputs import SPREAD

HEADER = "application,gpu_type,kind,placement,num_nodes,num_replicas,local_bsz,step_time_s,sync_time_s"
SHAPES = {
    "1": 1.0,
    "2": 1.25,
    "4": 1.25,
    "8": 2.0,
    "11": 2.5,
    "13": 5.0,
    "22": 2.5,
    "88": 4.0,
}  # seconds of a step


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder of traces with the step times of every application, alike in all."""
    names = sorted({entry.application for entry in TABLE_2})
    rows = [f"{name},rtx,placements,{at},,,16,{step}," for name in names for at, step in SHAPES.items()]
    rows += [f"{name},rtx,placements,1,,,1000000,9.0," for name in names]  # a batch size that is far from all
    with gzip.open(tmp_path / FILE, "wt") as file:
        file.write("\n".join([HEADER, *rows]) + "\n")
    return tmp_path


def test_a_model_has_the_samples_per_second_of_what_stands_for_it(traces: Path) -> None:
    found = measured(traces)
    rates = [found.steps_per_second("gpt2-wikitext", 8, gpus) for gpus in (1, 2, 4, 8, 16)]
    assert rates == pytest.approx([16 / 1.0, 32 / 1.25, 64 / 1.25, 128 / 2.0, 256 / 4.0])


def test_between_measured_numbers_each_gpu_does_what_its_neighbours_do(traces: Path) -> None:
    found = measured(traces)
    assert found.steps_per_second("gpt2-wikitext", 8, 3) == pytest.approx(3 * 16 / 1.25)


def test_apart_is_on_one_server_more_than_needed_as_evenly_as_measured(traces: Path) -> None:
    found = measured(traces)
    assert found.steps_per_second("vit-food101", 48, 4, placement=SPREAD) == pytest.approx(64 / 2.5)


def test_every_job_has_a_model_of_its_class_and_that_has_every_size(traces: Path) -> None:
    dice = np.random.default_rng(1)
    trace = with_models(generate(TraceWish(400, rate_per_hour=100.0, workload=WORKLOADS["hops"]), dice), dice)
    category = {entry.name: entry.category for entry in TABLE_2}
    bounds = {each.name: (each.least_gpu_hours, each.most_gpu_hours) for each in WORKLOADS["hops"].classes}
    seen = Counter(trace.models[model] for model in trace.model.tolist())
    assert set(seen) == set(category), "all of Table 2"
    for model, gpus, seconds in zip(trace.model, trace.gpus, trace.duration_s, strict=True):
        least, most = bounds[category[trace.models[model]]]
        assert least - 1e-6 <= gpus * seconds / HOUR <= most + 1e-6
    known, entry = measured(traces), {each.name: each.batch for each in TABLE_2}
    assert all(
        known.steps_per_second(name, entry[name], gpus) for name in seen for gpus in range(1, MOST_GPUS + 1)
    )
