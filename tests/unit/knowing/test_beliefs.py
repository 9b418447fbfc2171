"""Beliefs: the progress that jobs report, as far as it can be."""

from __future__ import annotations

import math

import pytest

from tests.support.reporting import Looks, known_rate, row_of, running, told, waiting, with_liar


def test_a_report_that_is_not_renewed_fades() -> None:
    looks, jobs = Looks(), [running(1)]
    left = told(looks.trains(jobs, 5.0, 120), "left_seconds", 1)
    said = {"step": 600, "steps": 1e5, "read": 120.0}
    same = looks.look(180, jobs, {1: {**said, "silent_seconds": 60.0}})
    later = looks.look(780, jobs, {1: {**said, "silent_seconds": 660.0}})
    assert told(same, "left_seconds", 1) == pytest.approx(left)
    assert told(later, "left_seconds", 1) == pytest.approx(2 * left), "half of its pace is left"
    assert told(later, "done_seconds", 1) == pytest.approx(120)


def test_a_job_that_was_requeued_keeps_what_is_believed_of_it_and_may_resume_earlier() -> None:
    looks = Looks()
    looks.trains([running(1)], 5.0, 120)
    seen = looks.look(150, [waiting(1, restarts=1, submit=140)])
    assert told(seen, "done_seconds", 1) == pytest.approx(120)
    again = [running(1, start=200, restarts=1)]
    seen = looks.look(230, again, {1: {"step": 550, "steps": 1e5}})
    assert seen.reported is not None
    assert (seen.reported.believed.tolist(), seen.reported.clamped.tolist()) == ([550.0], [False])
    seen = looks.look(260, again, {1: {"step": 500, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.tolist() == [550.0], "within a run progress does not go back"


def test_the_next_bearer_of_an_id_begins_at_nothing() -> None:
    looks = Looks()
    looks.trains([running(1)], 5.0, 120)
    assert math.isnan(told(looks.look(500, [waiting(1, submit=400)]), "done_seconds", 1))


def test_jobs_that_count_epochs_alone_are_known_too() -> None:
    looks = Looks()
    job = running(1)
    for time in (30, 60, 90, 120):
        seen = looks.look(time, [job, waiting(2)], {1: {"epoch": time / 60, "epochs": 20}})
    assert told(seen, "left_seconds", 1) == pytest.approx(20 * 60 - 120)
    assert (told(seen, "epoch", 1), told(seen, "epochs", 1)) == (2, 20)
    assert math.isnan(told(seen, "steps_per_second", 1))
    assert known_rate(seen, 2, "a100", 1) == pytest.approx(1 / 60, rel=0.05)


@pytest.mark.parametrize("lie", [10.0, 1000.0])
def test_false_progress_is_believed_no_faster_than_the_class_has_been_seen_to_be(lie: float) -> None:
    _, after = with_liar(lie, "progress", 600)
    reported = after.reported
    assert reported is not None
    at = reported.row.tolist().index(row_of(after, 7))
    assert reported.clamped[at]
    assert 3000 <= reported.believed[at] <= 3000 * math.exp(2 * 0.1) + 1
    assert told(after, "steps_per_second", 7) <= 5.0 * math.exp(2 * 0.1) + 1e-9
    assert told(after, "left_seconds", 7) > 0.8 * (1e5 - 3700) / 5
    assert not any(
        reported.clamped[reported.row.tolist().index(row_of(after, n))] for n in (1, 2, 3, 4, 5, 9)
    )


def test_a_clock_that_was_set_back_keeps_no_report_from_being_weighed() -> None:
    looks, jobs = Looks(), [running(1)]
    looks.trains(jobs, 5.0, 300)
    seen = looks.look(200, jobs, {1: {"step": 1600, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.tolist() == pytest.approx([1600], abs=500)
    assert looks.knowing._beliefs.read.tolist() == [200]
