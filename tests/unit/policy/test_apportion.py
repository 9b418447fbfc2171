"""GPUs are shared out whole, and all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.policy import whole_parts

CASES: list[tuple[int, list[float], list[int]]] = [
    (8, [1, 1], [4, 4]),
    (8, [1, 3], [2, 6]),
    (10, [1, 1, 1], [4, 3, 3]),  # equal remainders: by order
    (11, [1, 1, 1], [4, 4, 3]),
    (10, [2, 3, 2], [3, 4, 3]),  # 2.86, 4.29, 2.86
    (7, [0, 1], [0, 7]),
    (0, [1, 2], [0, 0]),
    (5, [0, 0], [0, 0]),
    (1, [1, 2, 2], [0, 1, 0]),
    (10, [0.1, 0.2, 0.7], [1, 2, 7]),  # 0.1 + 0.2 + 0.7 is no whole number of floats
    (5, [], []),
]


@pytest.mark.parametrize(("gpus", "weight", "parts"), CASES)
def test_the_largest_remainders_are_rounded_up(gpus: int, weight: list[float], parts: list[int]) -> None:
    found = whole_parts(gpus, np.array(weight, dtype=np.float64))
    assert found.tolist() == parts
    assert found.dtype == np.int64


@given(st.integers(0, 500), st.lists(st.floats(0.0, 9.0), min_size=1, max_size=9))
def test_parts_add_up_and_lie_within_one_of_what_is_exact(gpus: int, weights: list[float]) -> None:
    weight = np.array(weights)
    parts = whole_parts(gpus, weight)
    if weight.sum() > 0:
        assert parts.sum() == gpus
        assert (np.abs(parts - gpus * (weight / weight.sum())) < 1 + 1e-6).all()
