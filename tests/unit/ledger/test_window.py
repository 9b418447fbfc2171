"""The runs of a window: what was charged already is not charged again."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.ledger.charging.window import (
    JobLives,
    JobRuns,
    Window,
    known_ends,
    rows_taken,
    seconds_charged,
    stacked,
)
from slurm_fair.model import ClosedRuns
from slurm_fair.model.columns import Floats, Ints
from tests.support.accounts import ledger
from tests.support.builders import job, snapshot


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def lives(*ended: bool) -> JobLives:
    nothing = {name: np.zeros(len(ended)) for name in JobLives._fields}
    return JobLives(**{**nothing, "ended": np.array(ended)})


def runs(starts: list[float], life: list[int] | None = None, **columns: Any) -> JobRuns:
    """Open runs of which nobody has been told, of lives 0, 1, 2... unless that is said."""
    nothing = {name: np.zeros(len(starts)) for name in JobRuns._fields}
    yes = np.ones(len(starts), dtype=bool)
    said = {"life": ints(*(life or range(len(starts)))), "start": floats(*starts), "open": yes, "news": yes}
    return JobRuns(**{**nothing, **said, **columns})


def closed(*of: tuple[int, float, float, float]) -> ClosedRuns:
    """Closed runs: key, start, end, GPU-seconds charged; each was submitted a second before it started."""
    key, start, end, charged = (np.array(column) for column in zip(*of, strict=True))
    nothing = np.zeros(len(of), dtype=np.int64)
    return ClosedRuns(key, start - 1, start, end, nothing, nothing, charged, np.ones(len(of)))


def test_a_run_that_was_closed_is_opened_again_with_what_it_was_charged() -> None:
    before = closed((7, 100.0, 130.0, 60.0), (8, 100.0, 110.0, 20.0), (7, 200.0, 210.0, 5.0))
    seen, left = runs([100.0, 150.0]).less_already_charged(ints(0, 1), ints(7, 8), before)
    assert seen.charged.tolist() == [60, 0]
    assert seen.charged_seconds.tolist() == [30, 0]
    assert seen.news.tolist() == [False, True]
    assert list(zip(left.key, left.start, strict=True)) == [(8, 100), (7, 200)]


def test_runs_that_are_no_news_and_ends_without_a_run_stay_closed() -> None:
    before = closed((7, 100.0, 130.0, 60.0), (8, 0.0, 110.0, 0.0))
    for fresh in (ints(), ints(1)):
        seen, left = runs([100.0, 0.0]).less_already_charged(fresh, ints(7, 8), before)
        assert seen.charged.tolist() == [0, 0]
        assert left.key.tolist() == [7, 8]
    seen, left = runs([100.0]).less_already_charged(ints(0), ints(7), ClosedRuns.none())
    assert (seen.news.tolist(), len(left)) == ([True], 0)


def test_a_window_knows_the_rows_that_want_more_work() -> None:
    these = runs([1.0, 2.0, 3.0], open=np.array([True, False, True]), news=np.array([False, True, True]))
    window = Window.of(lives(False, True), these)
    assert [rows.tolist() for rows in (window.ended, window.over, window.fresh)] == [[1], [1], [1, 2]]
    assert not window.in_order


def test_tables_are_stacked_and_their_rows_taken_column_by_column() -> None:
    both = stacked(runs([1.0, 2.0]), runs([3.0], life=[9]))
    assert both.start.tolist() == [1, 2, 3]
    taken = rows_taken(both, ints(2, 0))
    assert (taken.start.tolist(), taken.life.tolist()) == ([3, 1], [9, 0])


def test_an_end_is_known_by_the_key_and_the_submission() -> None:
    before = closed((7, 100.0, 130.0, 60.0), (8, 100.0, 110.0, 20.0))
    assert known_ends(before, ints(7, 7, 9), floats(99.0, 98.0, 99.0)).tolist() == [True, False, False]


def test_an_open_run_is_charged_from_its_start_on() -> None:
    jobs = ledger(snapshot(jobs=[job(1), job(2), job(3)])).jobs
    jobs = jobs.with_columns(run_start=floats(0.0, 40.0, 90.0))
    assert seconds_charged(jobs, ints(0, 1, 2, -1), 50.0).tolist() == [0, 10, 0, 0]
