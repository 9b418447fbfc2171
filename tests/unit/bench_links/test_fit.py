"""Rates of links out of times of all-reduces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slurm_fair.bench_links import Rates, Timing, rates_of
from slurm_fair.throughput.timing import link_factors

ON_ONE = [(2, 1, 2), (4, 1, 4), (8, 1, 8)]
ACROSS = [(2, 2, 1), (4, 2, 2), (8, 2, 4), (16, 2, 8)]


def timings(shapes: list[tuple[int, int, int]], *seconds: float) -> list[Timing]:
    """Times of groups of these shapes where link, net, bus and host take so many seconds for each parameter."""
    table = np.array(shapes, dtype=np.float64).T
    each = link_factors(*table) @ np.array(seconds)
    return [Timing(*shape, took) for shape, took in zip(shapes, each.tolist(), strict=True)]


def of(rates: Rates) -> list[float]:
    return [rates.link, rates.net, rates.bus, rates.host]


def test_times_on_one_node_and_across_tell_link_net_bus_and_host() -> None:
    found = rates_of(timings([*ON_ONE, *ACROSS], 1e-10, 2e-9, 5e-12, 3e-11))
    assert of(found) == pytest.approx([1e10, 5e8, 2e11, 1 / 3e-11], rel=1e-6)
    assert found.off == pytest.approx(0, abs=1e-9)


def test_a_link_that_takes_no_time_is_none_that_takes_less() -> None:
    slower_alone = [Timing(2, 1, 2, 4e-10), Timing(4, 1, 4, 2e-10), *timings(ACROSS[:2], 0, 2e-9, 0, 0)]
    found = rates_of(slower_alone)
    assert all(rate > 0 or math.isnan(rate) for rate in of(found))
    assert found.bus == math.inf
    assert found.off > 0.1, "it says that the times do not fit"


def test_what_no_group_tells_is_not_known() -> None:
    link, net, bus, host = of(rates_of(timings(ON_ONE, 1e-10, 0, 5e-12, 0)))
    assert (link, bus) == pytest.approx((1e10, 2e11))
    assert math.isnan(net)
    assert math.isnan(host)
    one = rates_of(timings(ON_ONE[:1], 1e-10, 0, 0, 0))
    assert one.link == pytest.approx(1e10)
    assert math.isnan(one.bus)
