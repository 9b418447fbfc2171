"""The equations of a step, term by term."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput import Pattern
from slurm_fair.throughput.timing import StepParts, link_factors, longest_of, step_seconds


def parts(data: float = 0.0, miss: float = 0.0, misses: float = 0.0, pattern: int = 1) -> StepParts:
    """T_f = 1, T_b = 2, T_u = 0.5."""
    one = np.ones(1)
    return StepParts(one, 2 * one, 0.5 * one, data * one, miss * one, misses * one, pattern * one)


def seconds(of: StepParts, communication: float = 0.0, waiting: float = 0.0) -> float:
    return float(step_seconds(of, np.array([communication]), np.array([waiting]))[0])


@pytest.mark.parametrize(("communication", "expected"), [(0.0, 3.5), (1.0, 3.5 + 0.2), (10.0, 11.5)])
def test_communication_hides_behind_backward_propagation_but_for_a_fifth(
    communication: float, expected: float
) -> None:
    assert seconds(parts(), communication) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("pattern", "expected"), [(1, 3.5), (2, 4.5)])
def test_short_data_cost_nothing_in_the_first_pattern_and_all_in_the_second(
    pattern: int, expected: float
) -> None:
    assert seconds(parts(data=1.0, pattern=pattern)) == pytest.approx(expected, rel=0.02)


def test_long_data_set_the_pace_in_the_first_pattern() -> None:
    assert seconds(parts(data=9.0)) == pytest.approx(10.0, rel=0.02)


def test_the_expected_step_weighs_hits_and_misses() -> None:
    hit, miss = seconds(parts(data=0.1, pattern=2)), seconds(parts(data=8.0, pattern=2))
    both = seconds(parts(data=0.1, miss=8.0, misses=0.25, pattern=2))
    assert both == pytest.approx(0.75 * hit + 0.25 * miss)


def test_waiting_for_the_slowest_is_added() -> None:
    assert seconds(parts(), waiting=0.7) - seconds(parts()) == pytest.approx(0.7)


def test_nobody_who_said_no_pattern_is_taken_to_wait_for_data() -> None:
    said = seconds(parts(data=1.0, pattern=Pattern.NOT_SAID))
    assert said == seconds(parts(data=1.0, pattern=Pattern.DATA_OVERLAPS))


def test_the_ring_factor_holds_on_one_node_and_on_several() -> None:
    factors = link_factors(np.array([1.0, 4.0, 8.0]), np.array([1.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]))
    assert factors.tolist() == [[0, 0, 0, 0], [0.75, 0, 3, 0.75], [0, 0.875, 3, 0.75]]


def test_the_slowest_of_several_processes_is_as_late_as_order_statistics_say() -> None:
    dice = np.random.default_rng(3)
    counts = np.array([2, 8, 64])
    drawn = [dice.normal(size=(20_000, count)).max(axis=1).mean() for count in counts.tolist()]
    assert longest_of(counts.astype(float)) == pytest.approx(drawn, abs=0.03)
    assert longest_of(np.ones(1)).tolist() == [0.0]
