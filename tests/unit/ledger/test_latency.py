"""The latency ratio and its estimates of run time, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger.metrics import latency
from slurm_fair.ledger.outcomes import expected as run_times
from tests.support.outcome_rows import NAN, floats


def test_the_age_is_the_mean_over_types_of_the_time_on_the_mean_requirement() -> None:
    # Half the GPUs do 10 samples a second, a quarter 20 and a quarter 5; requirements 1, 2 and 3: mean 2.
    part, mean_gpus = floats(0.5, 0.25, 0.25), floats(2.0)
    age = latency.modelled_seconds(floats(1200.0), np.array([[10.0, 20.0, 5.0]]), part, mean_gpus)
    assert age.tolist() == [0.5 * 60 + 0.25 * 30 + 0.25 * 120]


def test_a_type_of_unknown_throughput_is_left_out_of_the_mean() -> None:
    part = floats(0.5, 0.5)
    throughput = np.array([[10.0, NAN], [0.0, 20.0], [NAN, NAN]])
    age = latency.modelled_seconds(np.full(3, 1200.0), throughput, part, np.ones(3))
    assert age[:2].tolist() == [120.0, 60.0]
    assert np.isnan(age[2])


ORDER = [
    # throughput model, declared, usual, limit -> expected
    ((1.0, 2.0, 3.0, 4.0), 1.0),
    ((NAN, 2.0, 3.0, 4.0), 2.0),
    ((NAN, NAN, 3.0, 4.0), 3.0),
    ((NAN, NAN, NAN, 4.0), 4.0),
    ((NAN, 0.0, -1.0, np.inf), NAN),
    ((0.0, np.inf, 3.0, NAN), 3.0),
]


@pytest.mark.parametrize(("estimates", "expected"), ORDER)
def test_the_best_estimate_at_hand_is_taken(estimates: tuple[float, ...], expected: float) -> None:
    found = run_times.expected_seconds(*(floats(estimate) for estimate in estimates))
    assert found.tolist() == pytest.approx([expected], nan_ok=True)


def test_the_ratio_counts_all_waiting_against_the_expected_run_time() -> None:
    ratio = latency.latency_ratio(floats(30, 0, 0, 30, 5), floats(60, 60, NAN, 0, np.inf))
    assert ratio.tolist() == pytest.approx([0.5, 0.0, NAN, NAN, NAN], nan_ok=True)


def test_the_usual_run_time_is_the_median_of_what_had_ended_before() -> None:
    group = np.array([0, 0, 0, 0, 1, -1, 0])
    submit = floats(0, 0, 20, 31, 40, 40, 40)
    end = floats(10, 30, 40, NAN, NAN, 50, NAN)
    ran = floats(10, 20, 5, 0, 0, 10, 0)
    usual = run_times.usual_seconds(group, submit, end, ran)
    # The third knows of one run of 10; the fourth of 10 and 20; the last, submitted as the third ends, of 5 too.
    assert usual.tolist() == pytest.approx([NAN, NAN, 10.0, 15.0, NAN, NAN, 10.0], nan_ok=True)


def test_a_job_that_never_ran_is_no_example() -> None:
    usual = run_times.usual_seconds(np.zeros(2, np.int64), floats(0, 9), floats(5, NAN), floats(0, 0))
    assert np.isnan(usual).all()


def test_a_group_is_one_user_and_one_name() -> None:
    group = run_times.user_and_name(np.array([0, 0, 1, 0, -1, 1]), np.array([7, 8, 7, 7, 7, -1]))
    assert group[0] == group[3]
    assert len({group[0], group[1], group[2]}) == 3
    assert (group[4], group[5]) == (-1, -1)


def test_the_recent_average_takes_jobs_that_ended_in_the_last_hours() -> None:
    ratio, end = floats(1.0, 2.0, 6.0, NAN, 9.0), floats(3600, 3601, 7200, 7000, 7201)
    assert latency.recent_latency_ratio(ratio, end, now=7200, hours=1) == 4.0
    assert latency.recent_latency_ratio(ratio, end, now=7200, hours=2) == 3.0
    assert np.isnan(latency.recent_latency_ratio(ratio, end, now=100.0, hours=0.01))
    assert np.isnan(latency.recent_latency_ratio(floats(), floats(), now=0.0, hours=1))


def test_nobody_has_no_latency() -> None:
    nothing, ints = floats(), np.zeros(0, np.int64)
    assert run_times.usual_seconds(ints, nothing, nothing, nothing).size == 0
    assert run_times.user_and_name(ints, ints).size == 0
    assert latency.modelled_seconds(nothing, np.zeros((0, 2)), floats(0.5, 0.5), nothing).size == 0


_JOBS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5)), max_size=20
)


@given(_JOBS)
def test_the_usual_run_time_equals_the_median_taken_one_by_one(jobs: list[tuple[int, int, int, int]]) -> None:
    group = np.array([job[0] for job in jobs], dtype=np.int64)
    submit = np.array([job[1] for job in jobs], dtype=np.float64)
    end = submit + np.array([job[2] for job in jobs], dtype=np.float64)
    ran = np.array([job[3] for job in jobs], dtype=np.float64)
    expected = []
    for mine, now in zip(group, submit, strict=True):
        past = ran[(group == mine) & (mine >= 0) & (end <= now) & (ran > 0)]
        expected.append(float(np.median(past)) if past.size else NAN)
    assert run_times.usual_seconds(group, submit, end, ran).tolist() == pytest.approx(expected, nan_ok=True)
