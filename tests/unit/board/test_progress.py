"""The columns of a board that say how far jobs are."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from slurm_fair.board.progress import known, progress_columns
from slurm_fair.model import Reported, Snapshot, Told
from tests.support.builders import job, snapshot

NAN = float("nan")


def shown() -> Snapshot:
    return snapshot(time=1000.0, jobs=[job(1), job(2)])


def report(**columns: Any) -> Reported:
    """A report of the second job, which says nothing but these."""
    given: dict[str, Any] = {f.name: np.full(1, NAN) for f in fields(Reported) if f.name != "models"}
    exact = {"row": np.array([1]), "clamped": np.array([False]), "written": np.array([990.0])}
    return Reported(**{**given, **exact, **{name: np.array([value]) for name, value in columns.items()}})


def test_where_nothing_is_known_all_columns_are_empty() -> None:
    assert progress_columns(shown()) == {
        "reported": [None, None],
        "left_seconds": [None, None],
        "left_spread": [None, None],
        "job_class": ["", ""],
    }


def test_what_is_left_is_what_was_told() -> None:
    told = Told.nothing(2, 1).with_columns(
        left_seconds=np.array([60.0, NAN]), left_spread=np.array([NAN, 0.5])
    )
    columns = progress_columns(replace(shown(), told=told))
    assert columns["left_seconds"] == [60.0, None]
    assert columns["left_spread"] == [None, 0.5]


def test_a_report_stands_beside_its_job_with_its_age() -> None:
    first, second = progress_columns(replace(shown(), reported=report(step=5.0, clamped=True)))["reported"]
    assert first is None
    assert second["step"] == 5.0
    assert second["steps"] is None
    assert (second["clamped"], second["age_seconds"]) == (True, 10.0)


def test_a_report_from_the_future_is_new() -> None:
    ahead = progress_columns(replace(shown(), reported=report(written=1200.0)))["reported"][1]
    assert (ahead["clamped"], ahead["age_seconds"]) == (False, 0.0)


def test_numbers_that_are_none_are_none() -> None:
    assert known(np.array([1.5, NAN, np.inf])) == [1.5, None, None]
