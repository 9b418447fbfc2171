"""Slurm's durations."""

from __future__ import annotations

import pytest

from slurm_fair.slurm_text.durations import clock_seconds, seconds_in


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 300),
        ("5:30", 330),
        ("1:05:30", 3930),
        ("2-3", 183_600),
        ("2-3:04", 183_840),
        ("2-3:04:05", 183_845),
        ("UNLIMITED", None),
        ("1:2:3:4", None),
        ("5 ", None),
        ("\u0665:30", None),
        ("", None),
    ],
)
def test_durations_are_read_as_sbatch_reads_them(text: str, seconds: int | None) -> None:
    assert seconds_in(text) == seconds
    assert clock_seconds(text) == (seconds if ":" in text else None)
