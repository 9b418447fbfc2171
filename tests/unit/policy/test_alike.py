"""Numbers that differ by rounding alone are compared as equals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.policy import alike

NUMBERS = st.floats(min_value=1e-12, max_value=1e15)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50), st.integers(1, 10**6))
def test_a_sum_in_many_parts_is_like_the_sum_in_one(parts: list[int], weight: int) -> None:
    """Each part is rounded for itself; a quotient of whole numbers stays the same number."""
    in_parts, at_once = 0.0, sum(parts) / weight
    for part in parts:
        in_parts += part / weight
    one, other = alike(np.array([in_parts, at_once]))
    assert abs(one - other) <= 4e-9 * at_once
    assert alike(np.array([1.5, 1.5000000000000004, 1.4999999999999998])).tolist() == [1.5, 1.5, 1.5]


@given(NUMBERS, st.sampled_from([1.0, -1.0]))
def test_a_number_moves_by_two_billionths_at_most(number: float, sign: float) -> None:
    moved = alike(np.array([sign * number])).item()
    assert abs(moved - sign * number) <= 2e-9 * number


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_the_order_stays(numbers: list[float]) -> None:
    assert (np.diff(alike(np.array(sorted(numbers)))) >= 0).all()


def test_numbers_without_digits_stay() -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf])
    assert alike(values).tolist() == values.tolist()
    assert np.isnan(alike(np.array([np.nan]))).all()
