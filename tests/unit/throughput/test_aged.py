"""Samples in groups of a class on a GPU type, with their weights and the batch size of one GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import Keeping
from slurm_fair.throughput.aged import aged, batch_scale, batches_of, groups_asked
from tests.support.speed_samples import BERT, DAY, OTHER, samples

KEEPING = Keeping(half_life_days=1.0)


def test_near_batch_sizes_are_one_and_a_doubling_is_not() -> None:
    size = batch_scale(np.array([1.0, 64.0, 64.3, 128.0]))
    assert size[0] == 0
    assert size[1] == size[2]
    assert batches_of(size) == pytest.approx([1.0, 64.0, 64.0, 128.0])


def test_a_group_is_a_class_on_a_gpu_type() -> None:
    rows: list[dict[str, Any]] = [
        {"cls": BERT},
        {"cls": OTHER},
        {"cls": BERT, "kind": "v100"},
        {"cls": BERT, "gpus": 4},
    ]
    known = aged(samples(*rows), 0.0, KEEPING)
    assert known.group.tolist() == [0, 2, 1, 0]
    assert list(zip(known.job_class, known.gpu_type, strict=True)) == [(0, 0), (0, 1), (1, 0)]
    asked = groups_asked(known, np.array([1, 0, 1]), np.array([0, 1, 1]))
    assert asked.tolist() == [2, 1, -1]


def test_samples_of_a_node_alone_are_left_out_where_its_type_has_none() -> None:
    rows: list[dict[str, Any]] = [{"node": "n1"}, {"node": "n2", "kind": "v100"}, {}]
    known = aged(samples(*rows), 0.0, KEEPING)
    assert known.samples.node.tolist() == [0, -1]
    assert known.anywhere.tolist() == [False, True]


def test_a_sample_is_weighed_by_its_age() -> None:
    known = aged(samples({"time": 0.0}, {"time": DAY}), DAY, KEEPING)
    assert known.weight.tolist() == [0.5, 1.0]


def test_the_batch_is_that_of_one_gpu_and_as_usual_where_nobody_said_it() -> None:
    rows: list[dict[str, Any]] = [
        {"gpus": 4, "batch_size": 256.0},
        {"gpus": 1, "batch_size": 64.0},
        {"gpus": 1, "batch_size": 8.0},
        {"gpus": 2},
        {"cls": OTHER},
    ]
    known = aged(samples(*rows), 0.0, KEEPING)
    assert batches_of(known.usual) == pytest.approx([64.0, 1.0])
    assert batches_of(known.size) == pytest.approx([64.0, 64.0, 8.0, 64.0, 1.0])


def test_the_usual_size_is_one_that_was_seen_nearest_to_the_middle() -> None:
    rows: list[dict[str, Any]] = [{"batch_size": size} for size in (8.0, 16.0, 128.0, 256.0)]
    assert batches_of(aged(samples(*rows), 0.0, KEEPING).usual) == pytest.approx([16.0])
    of_node = [{"batch_size": 512.0, "node": "n1"}] * 9
    assert batches_of(aged(samples(*rows, *of_node), 0.0, KEEPING).usual) == pytest.approx([16.0])
