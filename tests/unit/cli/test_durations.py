"""Durations on command lines."""

from __future__ import annotations

import math

import pytest

from slurm_fair.cli.durations import typed_seconds
from slurm_fair.cli.simulate.options import seconds_above_zero


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("1e3", 1000), ("45s", 45), ("5m", 300), ("1.5h", 5400), ("2d", 172_800), ("1w", 604_800),
        ("15:00", 900), ("1:00:00", 3600), ("1-12:00:00", 129_600),
        ("1-12:00", 129_600),
    ],
)  # fmt: skip
def test_seconds_units_and_slurms_own(text: str, seconds: float) -> None:
    assert typed_seconds(text) == seconds
    assert seconds_above_zero(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "5 m", "m", "-5m", "5M", "1h30m", "1-12", ":", "٥m", "9" * 400 + "m"]
)
def test_what_is_no_duration_is_told_apart(text: str) -> None:
    assert math.isnan(typed_seconds(text))
