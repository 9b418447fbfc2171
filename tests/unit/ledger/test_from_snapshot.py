"""A look tells which lives go on, which are over and since when, and which runs there were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.ledger import LedgerSettings
from slurm_fair.ledger.charging.from_snapshot import window_seen
from slurm_fair.ledger.charging.window import Window
from slurm_fair.model import Blocked, JobState
from slurm_fair.model.ids import label
from tests.support.builders import JobSpec, job, snapshot
from tests.support.ledger_watch import BEGAN, Watch

RUNNING, WAITING, DONE, ENDING = JobState.RUNNING, JobState.WAITING, JobState.DONE, JobState.ENDING
SETTINGS = LedgerSettings()


def runs(base: int = 1, start: float = 1010.0, **more: Any) -> JobSpec:
    return job(base, **{"gpus": 2, "submit": BEGAN, "state": RUNNING, "start": start, **more})


def after(*looks: tuple[float, list[JobSpec]]) -> Watch:
    """A ledger after these looks."""
    watch = Watch()
    for time, jobs in looks:
        watch.look(time, *jobs)
    return watch


def seen(watch: Watch, now: float, *jobs: JobSpec) -> Window:
    """The window from the last look until these are shown."""
    shown = snapshot(time=now, jobs=jobs)
    tenants = watch.ledger.tenants.names
    rows = np.array([tenants.index(name) for name in shown.tenants.names], dtype=np.int64)
    return window_seen(watch.ledger, shown.jobs, now, rows, SETTINGS)


def lives(window: Window) -> list[tuple[str, float, bool]]:
    """Each life, until when it may claim, and whether it is over."""
    of = window.lives
    rows = zip(of.key.tolist(), of.active_to.tolist(), of.ended.tolist(), strict=True)
    return [(label(key), until, ended) for key, until, ended in rows]


def spans(window: Window) -> list[tuple[str, float, float, bool, bool]]:
    """Each run: of which job, from when, until when, whether it is open, whether it is news."""
    of = window.runs
    columns = (of.life.tolist(), of.start.tolist(), of.end.tolist(), of.open.tolist(), of.news.tolist())
    return [(label(window.lives.key[life]), *rest) for life, *rest in zip(*columns, strict=True)]


def test_who_is_there_as_before_lives_on_and_its_run_is_open() -> None:
    waits = job(3, submit=BEGAN)
    window = seen(after((1020.0, [runs(), waits])), 1030.0, runs(), waits)
    assert lives(window) == [("1", 1030.0, False), ("3", 1030.0, False)]
    assert spans(window) == [("1", 1010.0, 1030.0, True, False)]
    assert window.runs.charged_seconds.tolist() == [10.0]
    assert window.runs.charged.tolist() == [20.0]
    assert window.in_order
    assert lives(seen(Watch(), 1010.0)) == []


def test_a_start_that_slurm_corrects_is_the_start_and_what_was_charged_before_is_known() -> None:
    window = seen(after((1020.0, [runs(start=1010.0)])), 1030.0, runs(start=1012.0))
    assert spans(window) == [("1", 1012.0, 1030.0, True, False)]
    assert window.runs.charged_seconds.tolist() == [10.0]


def test_a_run_that_is_news_was_charged_nothing_and_one_that_is_to_come_has_no_length() -> None:
    for start, end in ((1015.0, 1030.0), (1035.0, 1035.0)):
        window = seen(after((1020.0, [job(1, gpus=2, submit=BEGAN)])), 1030.0, runs(start=start))
        assert spans(window) == [("1", start, end, True, True)]
        assert (window.runs.charged.tolist(), window.runs.charged_seconds.tolist()) == ([0.0], [0.0])


def test_a_job_that_ended_ends_when_slurm_says_and_never_after_the_look() -> None:
    for end, until in ((1027.0, 1027.0), (1031.0, 1030.0), (1015.0, 1015.0)):
        window = seen(after((1020.0, [runs()])), 1030.0, runs(state=DONE, end=end))
        assert lives(window) == [("1", until, True)]
        assert spans(window) == [("1", 1010.0, until, False, False)]


def test_a_job_that_is_gone_ends_at_the_look_that_shows_it_no_more() -> None:
    window = seen(after((1020.0, [runs(), runs(2)])), 1030.0, runs(2))
    assert lives(window) == [("1", 1030.0, True), ("2", 1030.0, False)]
    assert spans(window) == [("1", 1010.0, 1030.0, False, False), ("2", 1010.0, 1030.0, True, False)]
    assert not window.in_order
    assert (window.lives.incarnation[0], window.lives.restarts[0]) == (BEGAN, 0)


def test_another_job_under_the_id_ends_the_one_that_was_known_when_it_was_submitted() -> None:
    window = seen(after((1020.0, [runs()])), 1030.0, job(1, gpus=5, submit=1024.0))
    assert lives(window) == [("1", 1024.0, True), ("1", 1030.0, False)]
    assert spans(window) == [("1", 1010.0, 1024.0, False, False)]
    assert window.lives.submit.tolist() == [BEGAN, 1024.0]
    assert window.lives.gpus.tolist() == [2, 5]


def test_a_requeued_job_lives_on_and_its_run_ended_when_it_was_requeued() -> None:
    window = seen(after((1020.0, [runs()])), 1030.0, job(1, gpus=2, submit=1025.0, restarts=1))
    assert lives(window) == [("1", 1030.0, False)]
    assert spans(window) == [("1", 1010.0, 1025.0, False, False)]
    (life,) = zip(
        *(getattr(window.lives, name) for name in ("submit", "incarnation", "restarts")), strict=True
    )
    assert life == (BEGAN, 1025.0, 1)


def test_a_requeued_job_that_runs_again_has_two_runs() -> None:
    window = seen(after((1020.0, [runs()])), 1030.0, runs(start=1028.0, submit=1025.0, restarts=1))
    assert spans(window) == [("1", 1010.0, 1025.0, False, False), ("1", 1028.0, 1030.0, True, True)]
    assert window.runs.incarnation.tolist() == [BEGAN, 1025.0]
    assert window.runs.restarts.tolist() == [0, 1]
    over = runs(start=1026.0, submit=1025.0, restarts=1, state=DONE, end=1029.0)
    window = seen(after((1020.0, [runs()])), 1030.0, over)
    assert spans(window) == [("1", 1010.0, 1025.0, False, False), ("1", 1026.0, 1029.0, False, True)]


def test_a_requeue_that_is_under_way_is_not_over() -> None:
    """Restarts is counted first; SubmitTime moves when the job waits again."""
    window = seen(after((1020.0, [runs()])), 1030.0, runs(restarts=1, state=ENDING))
    assert lives(window) == [("1", 1030.0, False)]
    assert spans(window) == [("1", 1010.0, 1030.0, True, False)]
    assert (window.lives.restarts.tolist(), window.lives.incarnation.tolist()) == ([0], [BEGAN])


def test_a_job_whose_restarts_went_back_is_the_same_one_if_it_asks_for_the_same() -> None:
    """A slurmctld that was killed comes back with its last saved state."""
    known = after((1020.0, [runs()]), (1040.0, [job(1, gpus=2, submit=1030.0, restarts=1)]))
    window = seen(known, 1050.0, job(1, gpus=2, submit=BEGAN))
    assert lives(window) == [("1", 1050.0, False)]
    assert (window.lives.submit.tolist(), window.lives.restarts.tolist()) == ([BEGAN], [0])
    window = seen(known, 1050.0, job(1, gpus=3, submit=BEGAN))
    assert [ended for _, _, ended in lives(window)] == [True, False]


@pytest.mark.parametrize(("end", "opened"), [(1015.0, 0), (1015.5, 1), (1020.0, 1), (1029.0, 1)])
def test_of_those_that_ended_unseen_only_news_is_opened(end: float, opened: int) -> None:
    """News is at most five seconds older than the last look, at 1020."""
    window = seen(
        after((1020.0, [job(7, submit=BEGAN)])), 1030.0, runs(state=DONE, end=end), job(7, submit=BEGAN)
    )
    assert [key for key, _, _ in lives(window)] == ["7"] + ["1"] * opened
    assert spans(window) == [("1", 1010.0, end, False, True)] * opened


def test_an_end_that_stays_listed_is_told_once() -> None:
    over = runs(state=DONE, end=1019.0)
    window = seen(after((1010.0, [runs()]), (1020.0, [over])), 1030.0, over)
    assert (lives(window), spans(window)) == ([], [])


def test_a_new_job_claims_from_its_submission_on_unless_it_is_kept_back() -> None:
    for blocked, since in ((Blocked.NOT_BLOCKED, 1013.0), (Blocked.USER_HOLD, 1030.0)):
        window = seen(after((1020.0, [job(7, submit=BEGAN)])), 1030.0, job(7, submit=BEGAN),
                      job(9, submit=1013.0, blocked=blocked))  # fmt: skip
        assert window.lives.active_from.tolist() == [1020.0, since]
        assert window.lives.waits_from.tolist() == [1020.0, since]


def test_a_job_that_was_kept_back_claims_from_its_start_on() -> None:
    held = job(1, gpus=2, submit=BEGAN, blocked=Blocked.DEPENDENCY)
    cases = (
        (runs(start=1026.0), 1026.0),
        (runs(start=1016.0), 1020.0),
        (runs(start=1022.0, state=DONE, end=1025.0), 1022.0),
        (job(1, gpus=2, submit=BEGAN), 1030.0),
        (job(1, gpus=2, submit=BEGAN, state=DONE, end=1025.0), 1025.0),
    )
    for shown, since in cases:
        window = seen(after((1020.0, [held])), 1030.0, shown)
        assert window.lives.active_from.tolist() == [since]


def test_what_a_job_claims_now_counts_from_now_on_and_a_run_keeps_its_gpus() -> None:
    known = after((1020.0, [runs(gpus=2, weight=1.0)]))
    window = seen(known, 1030.0, runs(gpus=4, usual_gpus=3, weight=5.0))
    of = window.lives
    assert (of.gpus.tolist(), of.then_gpus.tolist()) == ([2], [3])
    assert (of.weight.tolist(), of.then_weight.tolist()) == ([1.0], [5.0])
    assert (window.runs.gpus.tolist(), window.runs.then_gpus.tolist()) == ([2], [4])


def test_a_run_keeps_the_weight_of_its_gpus_until_it_is_over() -> None:
    known = after((1020.0, [runs(gpu_weight=0.5)]))
    for start, submit, restarts, weights in ((1010.0, BEGAN, 0, [0.5]), (1028.0, 1025.0, 1, [0.5, 0.25])):
        window = seen(known, 1030.0, runs(start=start, submit=submit, restarts=restarts, gpu_weight=0.25))
        assert window.runs.gpu_weight.tolist() == weights
        assert window.lives.then_gpu_weight.tolist() == weights[-1:]
