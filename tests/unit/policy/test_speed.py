"""Speeds of jobs in other shapes."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Sizes, Speeds, Told
from slurm_fair.policy import View, sizes_of, speed_in, usual_gpus
from tests.support.accounts import view
from tests.support.builders import job, snapshot

# Job 1 usually has 4 GPUs and can have 2 or 8; job 2 has 2.
SIZES = Sizes(np.array([0, 0, 0]), np.array([2, 4, 8]), np.array([False, True, False]))
SEEN = replace(snapshot(time=0.0, nodes={"n1": 8}, jobs=[job(1, gpus=8), job(2, gpus=2)]), sizes=SIZES)


def sight(speeds: Speeds | None = None, **told: float) -> View:
    nothing = Told.nothing(2, 1)
    said = {name: np.full_like(getattr(nothing, name), value) for name, value in told.items()}
    return view(replace(SEEN, told=nothing.with_columns(**said), speeds=speeds))


def speeds_of_job_1(seen: View, gpus: list[int], apart: bool = False) -> list[float]:
    rows = np.zeros(len(gpus), dtype=np.int64)
    found: list[float] = speed_in(seen, rows, rows, np.array(gpus), np.full(len(gpus), apart)).tolist()
    return found


def test_the_usual_size_is_asked_for_whatever_the_job_has_now() -> None:
    assert usual_gpus(sight()).tolist() == [4, 2]
    assert sizes_of(sight()).gpus.tolist() == [2, 4, 8, 2]


def test_where_nobody_measured_speed_is_a_power_of_the_gpus() -> None:
    assert speeds_of_job_1(sight(), [2, 4, 8]) == pytest.approx([0.5**0.9, 1.0, 2.0**0.9])


def test_speed_follows_the_scaling_that_was_measured() -> None:
    assert speeds_of_job_1(sight(scaling=2.0), [1, 4, 16]) == pytest.approx([0.5, 1.0, 2.0])


def test_no_job_is_told_to_scale_better_than_its_gpus() -> None:
    assert speeds_of_job_1(sight(scaling=64.0), [8]) == [2.0]


def test_apart_and_on_another_type_a_job_is_as_fast_as_told() -> None:
    assert speeds_of_job_1(sight(rate=0.5), [4]) == [0.5]
    assert speeds_of_job_1(sight(rate=0.5, spread_rate=0.8), [4], apart=True) == [0.4]


def test_what_is_known_of_the_class_comes_first() -> None:
    rate = np.array([[[[30.0, np.nan], [40.0, 20.0], [50.0, 44.0]]]])
    known = Speeds(np.array([0, -1]), np.array([2, 4, 8]), rate, rate * 0)
    seen = sight(known, spread_rate=0.9, scaling=4.0)
    assert speeds_of_job_1(seen, [2, 4, 8]) == [0.75, 1.0, 1.25]
    assert speeds_of_job_1(seen, [2, 4, 8], apart=True) == pytest.approx([0.75 * 0.9, 0.5, 1.1])
