"""A scenario once more: shaken by less than two looks, or with its jobs submitted so many times as fast."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.sim import NodeEvent, Outage, Scenario
from slurm_fair.sim.repeat import shaken, under_load
from slurm_fair.trace import uniform
from tests.support.simulated import arrival, trace

OUTAGES = (Outage(50.0, "n1", NodeEvent.DOWN), Outage(90.0, "n1", NodeEvent.UP))


def scenario(*submitted: float, until: float = float("inf")) -> Scenario:
    """Jobs that are submitted then; each runs for a second more than the one before."""
    jobs = [arrival(at, job_id=f"j{number}", seconds=60.0 + number) for number, at in enumerate(submitted)]
    return Scenario(trace(jobs), uniform(8), outages=OUTAGES, until_s=until)


def dice(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- shaken


def test_two_changes_lie_as_far_apart_as_before_and_the_end_behind_them() -> None:
    moved = shaken(scenario(0.0, until=500.0), 10.0, dice())
    first, second = (outage.time_s for outage in moved.outages)
    assert first != 50.0
    assert second - first == pytest.approx(40.0)
    assert moved.until_s - first == pytest.approx(450.0)
    assert [outage.event for outage in moved.outages] == [NodeEvent.DOWN, NodeEvent.UP]


def test_a_scenario_without_an_end_has_none_afterwards() -> None:
    assert shaken(scenario(0.0), 10.0, dice()).until_s == float("inf")


def test_a_job_that_comes_later_now_stands_later_with_all_that_is_its_own() -> None:
    jobs = scenario(*(at / 10.0 for at in range(200)))
    moved = shaken(jobs, 60.0, dice()).trace
    names = moved.job_id.tolist()
    assert names != jobs.trace.job_id.tolist()
    assert sorted(names) == sorted(jobs.trace.job_id.tolist())
    assert [f"j{seconds - 60.0:g}" for seconds in moved.duration_s.tolist()] == names


def test_the_same_dice_shake_alike_and_others_do_not() -> None:
    jobs = scenario(0.0, 5.0, 9.0)
    one, two, other = (shaken(jobs, 10.0, dice(seed)).trace.submit_s.tolist() for seed in (3, 3, 4))
    assert one == two
    assert one != other


def test_the_scenario_that_was_given_stays_as_it_is() -> None:
    jobs = scenario(0.0, 5.0)
    shaken(jobs, 10.0, dice())
    assert jobs.trace.submit_s.tolist() == [0.0, 5.0]
    assert jobs.outages == OUTAGES


def test_looks_that_are_no_time_apart_leave_everything_where_it_is() -> None:
    at_once = [5.0] * 300
    still = shaken(scenario(*at_once, 7.0, until=9.0), 0.0, dice())
    assert still.trace.submit_s.tolist() == [*at_once, 7.0]
    assert still.trace.job_id.tolist() == [f"j{number}" for number in range(301)], "equals stay in order"
    assert (still.outages, still.until_s) == (OUTAGES, 9.0)


def test_where_nobody_comes_the_outages_are_moved_all_the_same() -> None:
    empty = Scenario(trace([arrival(0.0)]).take(np.zeros(0, dtype=np.int64)), uniform(8), outages=OUTAGES)
    moved = shaken(empty, 10.0, dice())
    assert len(moved.trace) == 0
    assert moved.outages[0].time_s > 50.0


# --- under load


@pytest.mark.parametrize(
    ("load", "submitted"),
    [(2.0, [100.0, 105.0, 150.0]), (0.5, [100.0, 120.0, 300.0]), (1e9, [100.0, 100.0, 100.0])],
)
def test_jobs_come_so_many_times_as_fast_from_the_first_one_on(load: float, submitted: list[float]) -> None:
    faster = under_load(scenario(100.0, 110.0, 200.0), load)
    assert faster.trace.submit_s.tolist() == pytest.approx(submitted, abs=1e-6)


def test_run_times_outages_and_the_end_stay_under_any_load() -> None:
    jobs = scenario(100.0, 110.0, until=700.0)
    faster = under_load(jobs, 4.0)
    assert faster.trace.duration_s.tolist() == [60.0, 61.0]
    assert (faster.outages, faster.until_s) == (OUTAGES, 700.0)


def test_a_load_of_one_and_a_trace_without_jobs_change_nothing() -> None:
    jobs = scenario(100.0, 110.0)
    assert under_load(jobs, 1.0) is jobs
    empty = Scenario(jobs.trace.take(np.zeros(0, dtype=np.int64)), uniform(8))
    assert under_load(empty, 5.0) is empty


def test_a_single_job_comes_when_it_came() -> None:
    assert under_load(scenario(100.0), 7.0).trace.submit_s.tolist() == [100.0]
