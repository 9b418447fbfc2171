"""Run times of ended jobs, as an estimate for others of their class."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput import JobClass, Keeping, Known, expected_run_times, learned_ends
from slurm_fair.throughput.history import RunTimes
from tests.support.speed_samples import BERT, DAY, OTHER, ends


def expected(seconds: list[float], ran: float = 0.0, cls: JobClass = BERT, now: float = 0.0) -> RunTimes:
    """The run time expected of a job of a class, where those of BERT ran for so long."""
    known = learned_ends(Known(), ends(seconds), 0.0, Keeping())
    return expected_run_times(known, [cls], np.array([ran]), now, Keeping())


def test_it_is_the_median_with_its_spread() -> None:
    told = expected([100.0, 200.0, 400.0])
    assert told.seconds[0] == pytest.approx(200.0)
    assert 0.3 < told.deviation[0] < 1.0
    assert told.count.tolist() == [3.0]


def test_one_job_of_a_year_moves_little() -> None:
    honest = [100.0 + job for job in range(9)]
    assert expected([*honest, 3e7]).seconds[0] == pytest.approx(expected(honest).seconds[0], rel=0.02)


def test_a_class_without_ended_jobs_is_not_known() -> None:
    told = expected([100.0], cls=OTHER)
    assert np.isnan(told.seconds[0])
    assert told.count.tolist() == [0.0]


def test_a_job_that_ran_longer_than_some_is_compared_with_the_others() -> None:
    assert expected([10.0, 20.0, 1000.0, 2000.0], ran=500.0).seconds[0] == pytest.approx(1414.2, rel=1e-3)


def test_a_job_that_outlived_all_of_its_class_is_expected_to_run_for_as_long_again() -> None:
    told = expected([10.0, 20.0], ran=600.0)
    assert told.seconds.tolist() == [1200.0]
    assert told.count.tolist() == [0.0]


def test_old_run_times_count_less() -> None:
    assert expected([10.0], now=28 * DAY).count[0] == pytest.approx(0.25)


def test_nothing_is_known_of_nobody() -> None:
    told = expected_run_times(Known(), [BERT, OTHER], np.zeros(2), 0.0, Keeping())
    assert np.isnan(told.seconds).all()
    assert len(expected_run_times(Known(), [], np.zeros(0), 0.0, Keeping()).seconds) == 0
