"""Samples of speeds out of reports."""

from __future__ import annotations

import pytest

from slurm_fair.model import Snapshot
from tests.support.reporting import Looks, known_rate, running, told


def profiles(seen: Snapshot) -> tuple[list[int], list[float], list[list[bool]]]:
    """Class, steps and known GPU types of each job that asks to be profiled."""
    assert seen.profiles is not None
    each = seen.profiles
    return each.job_class.tolist(), each.steps.tolist(), each.measured.tolist()


def test_no_sample_is_taken_of_the_pace_of_another_run() -> None:
    looks = Looks()
    looks.profiled = True
    for time in (10, 20, 40):
        looks.look(time, [running(1, on={"a1": 1})], {1: {"step": 5.0 * time, "steps": 1e5}})
    again = [running(1, on={"v1": 1}, start=100.0, restarts=1)]
    seen = looks.look(110, again, {1: {"step": 220, "steps": 1e5}})
    assert profiles(seen)[2] == [[True, False]], "its pace is still that of its run on the other type"
    assert told(seen, "steps_per_second", 1) > 0
    seen = looks.look(135, again, {1: {"step": 270, "steps": 1e5}})
    assert profiles(seen)[1:] == ([70.0], [[True, True]])
    assert known_rate(seen, 1, "v100", 1) == pytest.approx(2.0)
