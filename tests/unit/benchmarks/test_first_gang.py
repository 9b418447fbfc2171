"""`benchmarks/first_gang.py`: how long one gang stands first, told from the ticks of a simulation."""

from __future__ import annotations

import math

import pytest

from benchmarks.first_gang import FirstGang
from tests.support.simulated import Rounds, arrival, simulated

# One job has all 8 GPUs for good; a gang comes behind it, and later a job of one GPU.
FULL = arrival(0.0, gpus=8, seconds=3_000.0, tenant="a")
GANG = arrival(500.0, gpus=8, seconds=100.0, tenant="b")
SMALL = arrival(600.0, gpus=1, seconds=100.0, tenant="c")


@pytest.mark.parametrize(("least", "seconds"), [(8, 2_500.0), (9, 0.0)], ids=["followed", "too small"])
def test_a_gang_that_stands_first_is_followed_until_it_has_its_gpus(least: int, seconds: float) -> None:
    first = FirstGang(least)
    simulated([FULL, GANG, SMALL], "fifo", how=Rounds(lease=math.inf), listen=first, wants=())
    assert first.longest_s == pytest.approx(seconds, abs=20.0)


def test_a_gang_behind_another_job_does_not_stand_first() -> None:
    """The job of one GPU came before it; once that one runs, the gang is first."""
    first = FirstGang(8)
    before = arrival(400.0, gpus=1, seconds=1_000.0, tenant="c")
    simulated([FULL, GANG, before], "fifo", how=Rounds(lease=math.inf), listen=first, wants=())
    assert first.longest_s == pytest.approx(1_000.0, abs=20.0)


def test_two_gangs_one_after_the_other_are_not_one_stretch() -> None:
    first = FirstGang(8)
    gangs = [
        arrival(500.0, gpus=8, seconds=100.0, tenant="b"),
        arrival(510.0, gpus=8, seconds=100.0, tenant="c"),
    ]
    simulated([FULL, *gangs], "fifo", how=Rounds(lease=math.inf), listen=first, wants=())
    assert first.longest_s == pytest.approx(2_500.0, abs=20.0)
