"""Optimus: GPUs where another one adds most to the speed (Themis, NSDI 2020, section 6.1: throughput scaling)."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair_plugins.optimus import Optimus, last_gpu_ratio
from tests.support.builders import job
from tests.support.outcome_rows import NAN, floats
from tests.support.told_play import ToldPlay

# Speed of the gang against one GPU, and by hand speed(g) / speed(g - 1) with a step of a / k + b.
CURVES = [
    ("one GPU, which is the first", 1, NAN, np.inf),
    ("not measured: linear, 2 / 1", 2, NAN, 2.0),
    ("not measured: linear, 4 / 3", 4, NAN, 4 / 3),
    ("measured as linear", 4, 4.0, 4 / 3),
    ("half of two GPUs is lost: 1 / (1 / 1.5)", 2, 1.5, 1.5),
    ("a = 2/3, b = 1/3: (2/9 + 1/3) / (2/12 + 1/3)", 4, 2.0, (5 / 9) / (1 / 2)),
    ("no faster at all", 8, 1.0, 1.0),
]


@pytest.mark.parametrize(
    ("gpus", "scaling", "expected"), [case[1:] for case in CURVES], ids=[c[0] for c in CURVES]
)
def test_the_ratio_of_new_to_old_throughput_follows_from_the_curve(
    gpus: int, scaling: float, expected: float
) -> None:
    assert last_gpu_ratio(np.array([gpus]), floats(scaling))[0] == pytest.approx(expected)


def test_the_highest_throughput_scaling_goes_first() -> None:
    """Themis 6.1, worked out: ratios of 1.5 (2 GPUs), 4/3 (4 that scale well) and 10/9 (4 that do not)."""
    jobs = [job(1, gpus=4), job(2, gpus=4), job(3, gpus=2)]
    scaling = {"1": 2.0, "2": 4.0, "3": 1.5}
    play = ToldPlay(jobs, {"n1": 6}, left=dict.fromkeys("123", 1e3), scaling=scaling)
    assert play.round(Optimus()) == {"2", "3"}
    assert ToldPlay(jobs, {"n1": 4}, left=dict.fromkeys("123", 1e3), scaling=scaling).round(Optimus()) == {
        "3"
    }


def test_a_gang_that_scales_badly_gives_way_to_one_that_scales_well() -> None:
    jobs = [job(1, gpus=4), job(2, gpus=4, submit=1500)]
    play = ToldPlay(jobs, {"n1": 4}, left=dict.fromkeys("12", 1e5), scaling={"1": 2.5, "2": 3.9})
    assert play.play(Optimus(), 2) == [{"1"}, {"2"}]


def test_small_gangs_first_and_of_those_the_shortest_where_nothing_was_measured() -> None:
    left = {"1": 1e3, "2": 9e3, "3": 2e3, "4": 5e3}
    play = ToldPlay([job(1, gpus=4), job(2), job(3), job(4, gpus=2)], {"n1": 4}, left=left)
    assert play.round(Optimus()) == {"2", "3", "4"}
    assert ToldPlay(play.jobs, {"n1": 1}, left=left).round(Optimus()) == {"3"}


def test_a_job_of_unknown_length_comes_last_among_equals() -> None:
    play = ToldPlay([job(1), job(2)], {"n1": 1}, left={"2": 9e5})
    assert play.round(Optimus()) == {"2"}
