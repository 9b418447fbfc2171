"""Times of a step that the theory is fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import Keeping
from slurm_fair.throughput.aged import aged
from slurm_fair.throughput.observations import (
    FROM_PHASES,
    MOST_BATCHES,
    MOST_OBSERVATIONS,
    Observations,
    observations,
)
from tests.support.speed_samples import OTHER, samples

QUIET: dict[str, Any] = {}


def observed(*rows: dict[str, Any]) -> Observations:
    return observations(aged(samples(*rows), 0.0, Keeping()))


def seconds(of: Observations, group: int = 0) -> list[tuple[float, float, float]]:
    """GPUs, batch of one GPU and seconds of a step of each entry that is there."""
    at = np.flatnonzero(of.there[group])
    batch = of.batches[group, of.batch[group, at]]
    columns = (of.gpus[group, at], batch, np.exp(of.log_step[group, at]))
    return sorted(
        (float(gpus), round(float(size), 3), round(float(step), 6))
        for gpus, size, step in zip(*columns, strict=True)
    )


def test_a_step_is_the_batch_of_all_gpus_over_the_rate() -> None:
    rows: list[dict[str, Any]] = [
        {"batch_size": 32.0, "rate": 64.0},
        {"batch_size": 64.0, "gpus": 2, "rate": 32.0},
        {"batch_size": 64.0, "rate": 64.0},
        {"batch_size": 32.0, "rate": 0.01, "node": "n1"},  # of a node, which tells of no type
    ]
    of = observed(*rows)
    assert seconds(of) == [(1, 32, 0.5), (1, 64, 1.0), (2, 32, 2.0)]
    assert of.batches == pytest.approx(np.array([[32.0, 64.0]]))
    assert of.batches[0, of.usual] == pytest.approx([32.0])


def test_groups_of_different_size_are_filled_up_with_what_says_nothing() -> None:
    of = observed({"batch_size": 32.0}, {"batch_size": 64.0}, {"cls": OTHER, "batch_size": 8.0})
    assert of.there.tolist() == [[True, True], [True, False]]
    assert (of.gpus[1, 1], of.nodes[1, 1], of.most[1, 1], of.log_step[1, 1]) == (1, 1, 1, 0)
    assert np.isnan(of.batches[1]).tolist() == [False, True]


def test_samples_of_one_shape_are_one_observation_that_is_surer() -> None:
    one, many = observed(QUIET), observed(*[QUIET] * 9)
    assert (one.there.sum(), many.there.sum()) == (1, 1)
    assert many.doubt[0, 0] == pytest.approx(one.doubt[0, 0] / 3)


def test_phases_say_what_one_gpu_would_do_alone() -> None:
    of = observed({"gpus": 8, "batch_size": 256.0, "forward": 0.2, "backward": 0.5, "update": 0.3})
    (one, *_), eight = seconds(of)[0], seconds(of)[1]
    assert (one, eight[0]) == (1, 8)
    assert seconds(of)[0][1:] == pytest.approx((32.0, 1.0), rel=0.01)
    assert sorted(of.doubt[0])[-1] == FROM_PHASES


def test_of_very_many_batch_sizes_those_with_the_most_samples_stay() -> None:
    few, many = (
        [2.0 ** (at / 8) for at in range(first, first + count)]
        for first, count in ((8, 5), (17, MOST_BATCHES))
    )
    rows: list[dict[str, Any]] = [{"batch_size": size} for size in [*few, *many, *many]]
    of = observed(*rows)
    assert of.batches.shape == (1, MOST_BATCHES)
    assert of.batches.min() > max(few)


def test_of_very_many_shapes_some_of_each_scale_stay() -> None:
    shapes = [(gpus, nodes) for gpus in range(64, 64 + MOST_OBSERVATIONS) for nodes in (8, 9)] + [
        (1, 1),
        (2, 2),
    ]
    of = observed(*({"gpus": gpus, "nodes": nodes, "batch_size": 32.0 * gpus} for gpus, nodes in shapes))
    assert of.there.sum() == MOST_OBSERVATIONS
    assert {1.0, 2.0} < set(of.gpus[0].tolist())
