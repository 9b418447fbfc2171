"""The progress of a job in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.cli.progress import said_of_progress

SILENT = dict.fromkeys(
    ("step", "steps", "epoch", "epochs", "steps_per_second", "samples_per_second", "batch_size", "believed")
)
AS_FAST = "as fast as jobs of its class have been seen to be"


def said(reported: Mapping[str, Any] | None = None, **columns: Any) -> list[str]:
    report = None if reported is None else {**SILENT, "clamped": False, "age_seconds": 30.0, **reported}
    return said_of_progress(
        {"reported": report, "left_seconds": None, "left_spread": None, "job_class": "", **columns}
    )


@pytest.mark.parametrize(
    ("report", "line"),
    [
        ({"step": 10, "steps": 100.0}, "it reported step 10 of 100 (00:00:30 ago)"),
        ({"epoch": 2.5, "batch_size": 64.0}, "it reported epoch 2.5, 64 samples a step (00:00:30 ago)"),
        (
            {"steps_per_second": 3.0, "samples_per_second": 96.0},
            "it reported 3 steps/s, 96 samples/s (00:00:30 ago)",
        ),
        ({}, "it reported that it runs (00:00:30 ago)"),
        (
            {"step": 90, "clamped": True, "believed": 50.0},
            "it reported step 90 (00:00:30 ago); believed: step 50, " + AS_FAST,
        ),
        (
            {"epoch": 9, "clamped": True, "believed": 5.0},
            "it reported epoch 9 (00:00:30 ago); believed: epoch 5, " + AS_FAST,
        ),
        ({"step": 90, "clamped": True}, "it reported step 90 (00:00:30 ago)"),
    ],
)
def test_a_report_is_told_with_what_is_believed_of_it(report: Mapping[str, Any], line: str) -> None:
    assert said(report) == [line]


def test_what_is_left_is_told_with_its_span_where_others_tell_it() -> None:
    assert said(left_seconds=600.0) == ["about 00:10:00 of its work is left"]
    (line,) = said(left_seconds=600.0, left_spread=0.6931471805599453)
    assert line == "jobs like it that ended would have about 00:10:00 left (00:05:00 to 00:20:00)"


def test_of_whom_nothing_is_known_nothing_is_said() -> None:
    assert said() == []
    assert said(job_class="model=bert") == ["its speed is known by its class: model=bert"]
