"""The two normals of the times in which data are loaded."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput.data_times import two_normals


def test_two_normals_are_told_apart() -> None:
    dice = np.random.default_rng(7)
    missed = dice.random(400) < 0.3
    value = np.where(missed, dice.normal(0.5, 0.05, 400), dice.normal(0.02, 0.004, 400))
    times = two_normals(np.zeros(400, dtype=np.int64), value, np.ones(400), 1)
    assert times.hit[0] == pytest.approx(0.02, rel=0.05)
    assert times.miss[0] == pytest.approx(0.5, rel=0.05)
    assert times.hit_deviation[0] == pytest.approx(0.004, rel=0.15)
    assert times.miss_deviation[0] == pytest.approx(0.05, rel=0.15)
    assert times.misses[0] == pytest.approx(missed.mean(), abs=0.01)


def test_one_normal_is_not_torn_in_two() -> None:
    value = np.random.default_rng(7).normal(0.1, 0.01, 200)
    times = two_normals(np.zeros(200, dtype=np.int64), value, np.ones(200), 1)
    assert times.misses.tolist() == [0.0]
    assert times.hit[0] == times.miss[0] == pytest.approx(value.mean())


def test_a_few_samples_are_one_normal_and_none_are_none() -> None:
    times = two_normals(np.array([1, 1]), np.array([0.1, 9.0]), np.ones(2), 2)
    assert times.misses[1] == 0.0
    assert times.hit[1] == pytest.approx(4.55)
    assert np.isnan([times.hit[0], times.misses[0]]).all()


def test_the_two_normals_move_with_what_is_kept() -> None:
    """An old sample counts as little as its weight."""
    value = np.concatenate([np.full(20, 0.1), np.full(20, 0.4)]) * np.linspace(0.99, 1.01, 40)
    group = np.zeros(40, dtype=np.int64)
    rare = two_normals(group, value, np.concatenate([np.ones(20), np.full(20, 0.25)]), 1)
    assert rare.misses[0] == pytest.approx(0.2, abs=0.01)
