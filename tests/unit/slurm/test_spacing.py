"""Waiting jobs are asked about again at times, and at once when somebody released them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from slurm_fair.model import JobState
from slurm_fair.slurm.reading.queue import RAW
from slurm_fair.slurm.reading.spacing import AskedAgain, Spacing


def _rows(*jobs: tuple[int, int, JobState]) -> NDArray[np.void]:
    """Rows by record, priority and state."""
    rows = np.zeros(len(jobs), RAW)
    for row, (record, priority, state) in enumerate(jobs):
        rows["record"][row], rows["priority"][row], rows["state"][row] = record, priority, state
    return rows


@pytest.mark.parametrize(
    ("took", "later", "due"),
    [
        (0.0, 9.9, False),
        (0.0, 10.0, True),
        (0.2, 9.9, False),
        (2.0, 99.9, False),
        (2.0, 100.0, True),
        (20.0, 299.9, False),
        (20.0, 300.0, True),
        (-5.0, 10.0, True),
        (0.0, -0.1, True),
    ],
)
def test_a_question_that_takes_long_is_asked_seldom(took: float, later: float, due: bool) -> None:
    spacing = Spacing()
    assert spacing.due(0.0)
    spacing.note(100.0, 100.0 + took)
    assert spacing.due(100.0 + took + later) is due


def test_all_that_wait_are_asked_about_together_and_then_nobody_for_a_while() -> None:
    rows = _rows((1, 5, JobState.WAITING), (2, 0, JobState.WAITING), (3, 5, JobState.RUNNING))
    again = AskedAgain()
    assert list(again.among(rows, 50.0)) == [(1, 0), (2, 0)]
    again.note([(1, 0), (2, 0)], 50.0, 50.1)
    assert list(again.among(rows, 60.0)) == []
    again.note([], 60.0, 60.0)
    assert list(again.among(rows, 60.2)) == [(1, 0), (2, 0)]


def test_nobody_to_ask_about_is_no_question() -> None:
    again = AskedAgain()
    again.note(again.among(_rows(), 50.0), 50.0, 50.0)
    assert list(again.among(_rows((1, 5, JobState.WAITING)), 51.0)) == [(1, 0)]


def test_a_job_that_was_released_is_asked_about_at_once_and_only_then() -> None:
    again = AskedAgain()
    held, free = _rows((1, 0, JobState.WAITING)), _rows((1, 5, JobState.WAITING), (2, 5, JobState.WAITING))
    again.note(again.among(held, 50.0), 50.0, 50.0)
    for rows, now, asked in ((held, 51.0, []), (free, 52.0, [(1, 0)]), (free, 53.0, [])):
        assert list(again.among(rows, now)) == asked
        again.note(asked, now, now)
    assert list(again.among(free, 60.0)) == [(1, 0), (2, 0)]


def test_a_question_that_fails_is_asked_again_soon_and_later_each_time() -> None:
    spacing, now, pauses = Spacing(), 0.0, list[int]()
    for _ in range(7):
        began, now = now, now + 20.0
        spacing.note(began, now, answered=False)
        pause = next(second for second in range(1000) if spacing.due(now + second))
        pauses, now = [*pauses, pause], now + pause
    assert pauses == [20, 40, 80, 160, 300, 300, 300]
    spacing.note(now, now + 0.1)
    spacing.note(now + 10.0, now + 10.1, answered=False)
    assert spacing.due(now + 20.2)


def test_a_release_is_asked_about_until_slurm_has_answered() -> None:
    again = AskedAgain()
    again.note(again.among(_rows((1, 0, JobState.WAITING), (2, 5, JobState.WAITING)), 50.0), 50.0, 50.0)
    looks = [
        (51.0, _rows((1, 5, JobState.WAITING), (2, 0, JobState.WAITING)), [(1, 0)], False),
        (52.0, _rows((1, 5, JobState.WAITING), (2, 5, JobState.WAITING)), [(1, 0), (2, 0)], False),
        (53.0, _rows((1, 5, JobState.WAITING), (2, 5, JobState.WAITING)), [(1, 0), (2, 0)], True),
        (54.0, _rows((1, 5, JobState.WAITING), (2, 5, JobState.WAITING)), [], True),
    ]
    for time, rows, asked, answered in looks:
        assert list(again.among(rows, time)) == asked
        again.note(asked, time, time, answered=answered)


def test_a_release_is_asked_about_where_the_look_ended_before_its_question() -> None:
    again, free = AskedAgain(), _rows((1, 5, JobState.WAITING))
    again.note(again.among(_rows((1, 0, JobState.WAITING)), 50.0), 50.0, 50.0)
    assert list(again.among(free, 51.0)) == [(1, 0)]
    assert list(again.among(free, 52.0)) == [(1, 0)]
