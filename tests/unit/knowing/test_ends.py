"""Run times of jobs that ended."""

from __future__ import annotations

import math

import pytest

from tests.support.reporting import Looks, ended, running, told, waiting


def test_run_times_of_ended_jobs_tell_what_is_left_of_the_next_ones() -> None:
    looks = Looks()
    looks.look(10, [running(number) for number in (1, 2, 3, 4)])
    events = [ended(1, 3000, 20), ended(2, 3600, 20), ended(3, 4000, 20), ended(4, 5, 20, "CANCELLED")]
    looks.knowing.hear(events, looks.standing(20), 20)
    seen = looks.look(1020, [waiting(5), running(6, start=20)])
    assert told(seen, "left_seconds", 5) == pytest.approx(3600)
    assert told(seen, "left_seconds", 6) == pytest.approx(2600)
    assert 0.05 < told(seen, "left_spread", 5) < 0.5
    assert math.isnan(told(seen, "declared_seconds", 5)), "nobody declared anything"


def test_what_a_job_reports_goes_before_what_others_took() -> None:
    looks = Looks()
    looks.look(10, [running(1)])
    looks.knowing.hear([ended(1, 3600, 20)], looks.standing(20), 20)
    seen = looks.trains([running(2, start=20)], 5.0, 120, since=20)
    assert told(seen, "left_seconds", 2) == pytest.approx(1e5 / 5 - 120)
    assert math.isnan(told(seen, "left_spread", 2))
