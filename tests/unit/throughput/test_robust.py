"""Robust means and weighted medians."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput.robust import robust_means, weighted_medians

ZERO = np.zeros(9, dtype=np.int64)


def test_without_outliers_it_is_the_mean() -> None:
    value = np.linspace(1.0, 2.0, 9)
    means = robust_means(ZERO, value, np.ones(9), 1)
    assert means.mean[0] == pytest.approx(1.5)
    assert means.deviation[0] == pytest.approx(value.std(), rel=0.01)
    assert means.weight.tolist() == [9.0]


@pytest.mark.parametrize("lies", [1, 2, 3, 4])
def test_fewer_than_half_cannot_move_it_out_of_what_the_others_say(lies: int) -> None:
    value = np.linspace(1.0, 2.0, 9)
    value[:lies] = 1e9
    assert 1.0 <= robust_means(ZERO, value, np.ones(9), 1).mean[0] <= 2.0 + 0.25 * lies


def test_groups_do_not_touch_one_another_and_an_empty_one_has_no_mean() -> None:
    group = np.array([0, 0, 2, 2])
    means = robust_means(group, np.array([1.0, 1.0, 5.0, 5.0]), np.ones(4), 3)
    assert means.mean[[0, 2]].tolist() == [1.0, 5.0]
    assert np.isnan(means.mean[1])
    assert np.isnan(means.deviation[1])


@pytest.mark.parametrize(
    ("values", "weights", "median"),
    [
        ([3.0, 1.0, 2.0], [1, 1, 1], 2.0),
        ([1.0, 2.0], [1, 1], 1.5),
        ([1.0, 2.0, 9.0], [1, 1, 5], 9.0),
        ([4.0], [0.1], 4.0),
    ],
)
def test_the_weighted_median_has_half_of_the_weight_on_either_side(
    values: list[float], weights: list[float], median: float
) -> None:
    group = np.zeros(len(values), dtype=np.int64)
    assert weighted_medians(group, np.array(values), np.array(weights, dtype=float), 1).tolist() == [median]
