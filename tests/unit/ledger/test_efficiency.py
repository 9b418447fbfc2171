"""Times, use of the cluster and overheads, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import Distribution, Outcomes, Steps
from slurm_fair.ledger.metrics import efficiency
from tests.support.outcome_rows import NAN, floats, row, table


def four() -> Outcomes:
    """Ran at once; waited; was cancelled before it ran; still runs."""
    return table(
        row(100, 160, gpus=2, ran=60, had=120),
        row(110, 190, gpus=4, ran=20, had=80),
        row(120, 150, gpus=1, ran=0, had=0),
        row(130, NAN, gpus=1, ran=70, had=70),
        until=200,
    )


def test_the_times_of_each_job() -> None:
    jobs = four()
    assert efficiency.completion_seconds(jobs).tolist() == pytest.approx([60, 80, 30, NAN], nan_ok=True)
    assert efficiency.wait_seconds(jobs).tolist() == pytest.approx([0, 60, 30, NAN], nan_ok=True)
    assert efficiency.slowdown(jobs).tolist() == pytest.approx([1, 4, NAN, NAN], nan_ok=True)


def test_the_makespan_ends_with_the_last_end_and_the_span_with_what_lives() -> None:
    assert efficiency.makespan(four()) == 90.0
    assert efficiency.span(four()) == (100.0, 200.0)
    assert efficiency.span(four().take(np.arange(3))) == (100.0, 190.0)


def test_gpu_time_and_utilisation() -> None:
    assert efficiency.gpu_seconds_held(four()) == 270.0
    assert efficiency.utilization(270.0, 5 * 100.0) == 0.54
    assert np.isnan(efficiency.utilization(0.0, 0.0))


LOADED = [
    # M, utilisation while as many GPUs were asked for as there are
    (2.0, 0.75),  # 10..30: 10 s of 1, 10 s of 2, of 40
    (3.0, 2 / 3),  # 20..30: two of three are held
    (4.0, NAN),
]


@pytest.mark.parametrize(("total_gpus", "expected"), LOADED)
def test_the_loaded_interval_is_when_all_gpus_are_asked_for(total_gpus: float, expected: float) -> None:
    demand = Steps.of(floats(0, 10, 20), floats(30, 40, 30))
    held = Steps.of(floats(0, 20), floats(30, 40))
    capacity = Steps.steady(total_gpus, 0.0)
    found = efficiency.loaded_utilization(held, demand, capacity, until=40.0)
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_cluster_that_shrinks_is_loaded_sooner() -> None:
    demand, held = Steps.of(floats(0), floats(20), floats(2)), Steps.of(floats(0), floats(20), floats(1))
    capacity = Steps(floats(0, 10), floats(4, 1))
    assert efficiency.loaded_utilization(held, demand, capacity, until=20.0) == 1.0


def test_what_comes_after_the_end_of_the_time_looked_at_does_not_count() -> None:
    """Neither a demand that begins later nor what is held of one that goes on."""
    demand = Steps.of(floats(0, 30), floats(20, 40), floats(2, 2))
    held = Steps.of(floats(0, 30), floats(5, 40), floats(2, 2))
    assert efficiency.loaded_utilization(held, demand, Steps.steady(2.0, 0.0), until=10.0) == 0.5


def test_fragments_are_idle_gpus_of_the_rounds_in_which_somebody_waits() -> None:
    assert efficiency.mean_fragments({3: 1, 0: 1, 4: 1}) == pytest.approx(7 / 3)
    assert efficiency.mean_fragments({3: 1, 4: 2, 0: 7}) == pytest.approx(11 / 10)
    assert efficiency.mean_fragments({}) == 0.0


def test_the_placement_score_is_the_mean_of_the_inverse_slowdowns() -> None:
    assert efficiency.placement_score({1.0: 1, 2.0: 1, 1.25: 2}) == pytest.approx((1 + 0.5 + 2 * 0.8) / 4)
    assert np.isnan(efficiency.placement_score({}))


def test_overhead_is_what_was_lost_of_what_was_held() -> None:
    assert efficiency.overhead_fraction(30.0, 120.0) == 0.25
    assert efficiency.overhead_fraction(0.0, 0.0) == 0.0
    assert np.isnan(efficiency.overhead_fraction(NAN, 120.0))


def test_a_spread_leaves_out_what_is_unknown() -> None:
    spread = Distribution.of(floats(*range(101), NAN))
    assert (spread.count, spread.mean, spread.p50, spread.p95, spread.p99, spread.most) == (
        101,
        50.0,
        50.0,
        95.0,
        99.0,
        100.0,
    )


def test_nobody_has_no_times() -> None:
    nobody = table()
    spread = Distribution.of(efficiency.completion_seconds(nobody))
    assert spread.count == 0
    assert np.isnan([spread.mean, spread.p50, spread.most, efficiency.makespan(nobody)]).all()
    assert efficiency.gpu_seconds_held(nobody) == 0.0
    assert efficiency.span(nobody) == (0.0, 0.0)


def test_a_makespan_needs_an_end_and_a_beginning() -> None:
    assert np.isnan(efficiency.makespan(table(row(5), until=20)))
    assert np.isnan(efficiency.makespan(table(row(NAN, 10))))


def test_where_no_beginning_is_known_no_time_is_spoken_of() -> None:
    assert efficiency.span(table(row(NAN, NAN), until=50)) == (50.0, 50.0)


def test_the_mean_of_the_gpus_is_over_the_time_until_the_last_job_that_lives() -> None:
    growing = Steps(floats(0, 120), floats(4, 8))
    assert efficiency.mean_gpus(growing, table(row(100, 110), row(100, NAN), until=140)) == 6.0


def test_a_run_that_slurms_whole_seconds_make_longer_than_its_job_leaves_no_wait_below_none() -> None:
    assert efficiency.wait_seconds(table(row(100.7, 160.0, ran=60.0))).tolist() == [0.0]


_JOBS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 4)), min_size=1, max_size=12
)


@given(_JOBS)
def test_waiting_and_running_make_up_the_whole_time(jobs: list[tuple[int, int, int]]) -> None:
    outcomes = table(*(row(s, s + length, ran=length * quarters / 4) for s, length, quarters in jobs))
    whole = efficiency.wait_seconds(outcomes) + outcomes.ran
    assert whole.tolist() == efficiency.completion_seconds(outcomes).tolist()
    slow = efficiency.slowdown(outcomes)
    assert (slow[outcomes.ran > 0] >= 1).all()
    assert np.isnan(slow[outcomes.ran == 0]).all()
