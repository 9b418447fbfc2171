"""Time is divided by sorting where all GPUs are of one type, and what is left is given out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model.columns import Floats
from slurm_fair.solve.filling import centred, densest_first, floor_of, lowest_peak, topped_up, water_filled

NOBODY = np.zeros(0)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def test_everybody_gets_all_its_time_where_that_is_less() -> None:
    assert water_filled(floats(4, 4), floats(1, 9), 8.0).tolist() == [1.0, 1.0]
    assert water_filled(NOBODY, NOBODY, 8.0).tolist() == []


def test_gpu_time_per_weight_is_alike_for_all_who_have_not_all_their_time() -> None:
    assert water_filled(floats(8, 2, 8), floats(1, 1, 1), 9.0).tolist() == [3.5 / 8, 1.0, 3.5 / 8]
    assert water_filled(floats(8, 8), floats(3, 1), 8.0).tolist() == [6 / 8, 2 / 8]
    assert water_filled(floats(2, 8), floats(1, 3), 8.0).tolist() == [1.0, 6 / 8]
    assert water_filled(floats(4, 4), floats(1, 1), 0.0).tolist() == [0.0, 0.0]


gangs = st.lists(st.tuples(st.integers(1, 16), st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=6)


@given(gangs, st.integers(0, 40))
def test_all_gpus_are_in_use_and_nobody_has_more_per_weight_than_one_who_wants_more(
    jobs: list[tuple[int, float]], gpus: int
) -> None:
    gang, weight = (floats(*column) for column in zip(*jobs, strict=True))
    had = gang * water_filled(gang, weight, float(gpus))
    assert had.sum() == pytest.approx(min(gpus, gang.sum()))
    wants = had < gang * (1 - 1e-9)
    if wants.any():
        level = (had / weight)[wants].min()
        assert (had <= level * weight + 1e-9).all()


def test_the_best_value_for_a_gpu_comes_first_and_equal_ones_share_alike() -> None:
    value, gang = floats(4, 8, 3, 1), floats(4, 8, 1, 4)  # for a GPU 1, 1, 3 and 0.25
    assert densest_first(value, gang, 7.0).tolist() == [0.5, 0.5, 1.0, 0.0]
    assert densest_first(value, gang, 15.0).tolist() == [1.0, 1.0, 1.0, 0.5]
    assert densest_first(value, gang, 99.0).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert densest_first(value, gang, 0.0).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert densest_first(floats(0, 1), floats(1, 1), 8.0).tolist() == [0.0, 1.0]


def test_what_is_left_is_given_out_in_equal_parts_to_those_who_can_take_more() -> None:
    assert topped_up(floats(0.5, 0, 1), floats(4, 8, 2), 10.0).tolist() == [1.0, 4 / 8, 1.0]
    assert topped_up(floats(0, 0), floats(8, 8), 8.0).tolist() == [0.5, 0.5]
    assert topped_up(floats(0.5, 0), floats(8, 8), 8.0).tolist() == [6 / 8, 2 / 8]
    assert topped_up(floats(0.25, 0.5), floats(4, 4), 99.0).tolist() == [1.0, 1.0]


def test_where_nothing_is_left_shares_stay() -> None:
    for fraction, gpus in ((floats(0.5, 0.5), 4.0), (floats(1, 1), 99.0), (NOBODY, 8.0)):
        gang = np.full(len(fraction), 4.0)
        assert topped_up(fraction, gang, gpus) is fraction


def slack(x: Floats, least: Floats, gang: Floats, gpus: float) -> float:
    """The logarithms of all slacks, summed up."""
    return float(
        np.log(x - least).sum() + np.log(x).sum() + np.log(1 - x).sum() + np.log(gpus - (gang * x).sum())
    )


@pytest.mark.parametrize("gpus", [4.0, 9.0, 500.0])
def test_the_centre_is_farther_from_every_bound_than_all_around_it(gpus: float) -> None:
    least, gang = floats(0.1, 0.0, 0.4), floats(2, 8, 4)
    x = centred(least, gang, gpus)
    best = slack(x, least, gang, gpus)
    for at in range(3):
        for step in (-1e-3, 1e-3):
            other = x.copy()
            other[at] += step
            assert slack(other, least, gang, gpus) < best


def test_jobs_that_are_alike_stand_alike_and_who_has_all_its_time_keeps_it() -> None:
    x = centred(floats(0, 1, 0), floats(4, 2, 4), 6.0)
    assert x[1] == 1.0
    assert x[0] == pytest.approx(x[2])
    alone = centred(floats(0, 0), floats(4, 4), 4.0)
    assert x[[0, 2]] == pytest.approx(alone)
    assert (x > 0).all()
    assert float((floats(4, 2, 4) * x).sum()) < 6.0


def test_nobody_is_moved_where_nothing_is_left() -> None:
    for least, gpus in ((floats(0.5, 0.5), 4.0), (floats(1, 1), 99.0), (NOBODY, 1.0)):
        assert centred(least, np.full(len(least), 4.0), gpus) is least


def test_the_least_peak_is_the_one_that_the_gpus_just_allow() -> None:
    peak, x = lowest_peak(floats(0, 0), floats(10, 10), floats(10, 10), floats(8, 8), 8.0)
    assert [peak, *x.tolist()] == pytest.approx([2.0, 0.5, 0.5])
    peak, x = lowest_peak(floats(0, 0), floats(10, 10), floats(10, 10), floats(8, 8), 1.0)
    assert [peak, *x.tolist()] == pytest.approx([16.0, 1 / 16, 1 / 16])
    # The first has waited for 10: (10 + 10 / x) / 10 and (10 / y) / 10 are alike, and x + y = 1.
    peak, x = lowest_peak(floats(10, 0), floats(10, 10), floats(10, 10), floats(1, 1), 1.0)
    assert (floats(10, 0) + 10 / x) / 10 == pytest.approx(peak)
    assert x.sum() == pytest.approx(1.0)


def test_who_has_nothing_left_needs_no_time_and_nobody_more_than_all() -> None:
    peak, x = lowest_peak(floats(30, 0, 4), floats(0, 10, 6), floats(10, 10, 10), floats(8, 4, 4), 8.0)
    assert (peak, x.tolist()) == (3.0, pytest.approx([0.0, 1 / 3, 6 / 26]))
    assert lowest_peak(NOBODY, NOBODY, NOBODY, NOBODY, 8.0)[0] == 0.0
    peak, x = lowest_peak(floats(0), floats(10), floats(5), floats(8), 8.0)
    assert (peak, x.tolist()) == (2.0, [1.0])


def test_the_floor_goes_by_the_neediest_and_by_all_gpus_and_only_by_those_who_can_run() -> None:
    need, gang, can = floats(0.5, 0.25, 9, 0), floats(4, 4, 4, 4), np.array([True, True, False, True])
    assert floor_of(need, gang, 100.0, can) == 2.0
    assert floor_of(need, gang, 1.5, can) == 0.5
    assert floor_of(need, gang, 1.5, np.zeros(4, dtype=bool)) == 0.0
    assert floor_of(floats(0, 0), gang[:2], 8.0, can[:2]) == 0.0
