"""A sample counts less as it grows older, and as newer ones come."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.throughput.ages import weights
from slurm_fair.throughput.known import Keeping

GROUP, TIME = np.array([0, 1, 0, 0]), np.array([0.0, 0.0, 7.0, 14.0]) * DAY_SECONDS
NOW = 14 * DAY_SECONDS


def test_a_sample_counts_half_after_each_half_life() -> None:
    weight = weights(GROUP, TIME, NOW, Keeping(half_life_days=7.0))
    assert weight.tolist() == [0.25, 0.25, 0.5, 1.0]


def test_a_sample_from_the_future_is_new() -> None:
    assert weights(GROUP, TIME, 0.0, Keeping(half_life_days=7.0)).tolist() == [1, 1, 1, 1]


def test_newer_samples_of_its_own_group_make_it_count_less() -> None:
    keeping = Keeping(half_life_days=float("inf"), half_life_samples=1.0)
    assert weights(GROUP, TIME, NOW, keeping).tolist() == [0.25, 1.0, 0.5, 1.0]
    both = weights(GROUP, TIME, NOW, Keeping(half_life_days=14.0, half_life_samples=1.0))
    assert both == pytest.approx([0.125, 0.5, 0.5 * 0.5**0.5, 1.0])


@pytest.mark.parametrize("samples", [1.0, float("inf")])
def test_nothing_weighs_nothing(samples: float) -> None:
    nothing = np.zeros(0)
    keeping = Keeping(half_life_samples=samples)
    assert weights(nothing.astype(np.int64), nothing, NOW, keeping).tolist() == []
