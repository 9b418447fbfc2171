"""One cell of a table as a value, or one line that says what it should be."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import pytest

from slurm_fair.trace import cells
from slurm_fair.trace.cells import CENTURY, MOST, MOST_SIZES
from slurm_fair.trace.faults import BadCell


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (cells.read_number, "-1.5e3", -1500.0),
        (cells.read_number, f"{MOST:.0f}", MOST),
        (cells.positive, ".5", 0.5),
        (cells.not_negative, "0", 0.0),
        (cells.read_instant, "12.5", 12.5),
        (cells.duration_or_nan, f"{CENTURY:.0f}", CENTURY),
        (cells.whole, "4.0", 4),
        (cells.whole, "0", 0),
        (cells.one_or_more_or_nan, "1", 1.0),
        (cells.weight, "1e-12", 1e-12),
        (cells.weight_or_one, "", 1.0),
        (cells.weight_or_one, "2", 2.0),
        (cells.whole_or_zero, "", 0),
        (cells.whole_or_zero, "3", 3),
        (cells.words, "", ""),
        (cells.words, "x" * 200, "x" * 200),
        (cells.name, "a b", "a b"),
        (cells.free, "a\r\nb\rc\n", "a\nb\nc\n"),
        (cells.choices, "", ()),
        (cells.choices, "4|1| 2", (1, 2, 4)),
        (cells.choices, "2-8:2", (2, 4, 6, 8)),
        (cells.choices, "2-4", (2, 3, 4)),
        (cells.choices, f"1-{MOST_SIZES}", tuple(range(1, MOST_SIZES + 1))),
    ],
)
def test_a_cell_is_read(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


def test_a_run_time_that_is_not_given_is_no_number() -> None:
    assert isnan(cells.duration_or_nan(""))
    assert isnan(cells.one_or_more_or_nan(""))


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (cells.read_number, " ", "is empty: give a number"),
        (cells.read_number, "nan", "'nan' is no number"),
        (cells.read_number, "1_0", "'1_0' is no number"),
        (cells.read_number, "1e13", "'1e13' is beyond 1e"),
        (cells.read_number, "-1e13", "'-1e13' is beyond 1e"),
        (cells.positive, "0", "must be above 0"),
        (cells.not_negative, "-1", "must be 0 or more"),
        (cells.read_instant, f"{CENTURY + 1:.0f}", "more than a hundred years"),
        (cells.duration_or_nan, f"{CENTURY + 1:.0f}", "more than a hundred years"),
        (cells.duration_or_nan, "0", "must be above 0"),
        (cells.whole, "1.5", "is no whole number"),
        (cells.whole, "9999999999999", "is too large: at most 12 digits"),
        (cells.whole, "-1", "is no whole number"),
        (cells.one_or_more_or_nan, "0.5", "must be 1 or more"),
        (cells.weight, "1e-13", "is too small"),
        (cells.words, "a\tb", "cannot be printed"),
        (cells.words, "x" * 201, "longer than 200 characters"),
        (cells.name, "", "is empty: give a name"),
        (cells.choices, "0|1", "numbers of GPUs above 0"),
        (cells.choices, "a|1", "with | between them"),
        (cells.choices, "1,2", "with | between them"),
        (cells.choices, "1-8:x", "MIN-MAX:STEP"),
        (cells.choices, "8-2", "must be MIN-MAX"),
        (cells.choices, "2-8:0", "must be MIN-MAX"),
        (cells.choices, f"1-{MOST_SIZES + 1}", f"are {MOST_SIZES + 1} sizes"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_in_words(
    read: Callable[[str], object], text: str, words: str
) -> None:
    with pytest.raises(BadCell) as refused:
        read(text)
    assert words in str(refused.value)
