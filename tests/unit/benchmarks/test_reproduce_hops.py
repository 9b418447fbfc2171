"""`benchmarks/reproduce_hops.py`: fragments are counted by rounds."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reproduce_hops import ROUND_SECONDS, RoundEnds, parts_of
from tests.support.simulated import Rounds, arrival, simulated


def test_a_round_counts_with_what_its_last_plan_leaves_idle_and_with_none_where_nobody_waits() -> None:
    """Job 1 leaves one of four GPUs idle beside job 2, which waits for two rounds and a half."""
    jobs = [
        arrival(0, gpus=3, seconds=2.5 * ROUND_SECONDS),
        arrival(1, gpus=2, seconds=2.0 * ROUND_SECONDS),
    ]
    rounds = RoundEnds()
    simulated(
        jobs,
        "fifo",
        gpus=4,
        gpus_per_node=4,
        how=Rounds(lease=ROUND_SECONDS, interval=30.0),
        listen=rounds.take,
    )
    idle = [count for _, count in sorted(rounds.idle.items())]
    assert idle[:2] == [1, 1]
    assert not any(idle[2:])
    assert rounds.fragments == pytest.approx(2 / len(idle))


def test_latency_ratios_are_of_jobs_that_are_over() -> None:
    assert parts_of(np.array([np.nan, *range(101), np.nan])) == [50.0, 90.0, 99.0]
