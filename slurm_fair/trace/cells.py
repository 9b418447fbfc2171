"""One cell of a table as a value, or a BadCell that says what it should be."""

from __future__ import annotations

import math
import re

from slurm_fair.model.tenant import LEAST_WEIGHT
from slurm_fair.trace.faults import BadCell, shown

# Far beyond any cluster or century, and small enough that products and sums stay exact.
MOST = 1e12
CENTURY = 100 * 365.25 * 86_400.0  # seconds; no job runs so long, and no trace spans more
_MOST_TEXT = 200
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
MOST_SIZES = 16  # of MIN-MAX:STEP, as for fair-sbatch
_SPAN = re.compile(r"([0-9]{1,6})-([0-9]{1,6})(?::([0-9]{1,6}))?")
_WHOLE_DIGITS = 12
_WHOLE = re.compile(r"[0-9]{1,12}(?:\.0{1,9})?")


def read_number(text: str) -> float:
    """The cell as a finite number."""
    if _NUMBER.fullmatch(text) is None:
        words = "is empty: give a number" if not text.strip() else f"{shown(text)} is no number"
        raise BadCell(words)
    value = float(text)
    if not -MOST <= value <= MOST:
        raise BadCell(f"{shown(text)} is beyond {MOST:g}")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    value = read_number(text)
    if not value > 0:
        raise BadCell(f"{shown(text)} must be above 0")
    return value


def not_negative(text: str) -> float:
    """A number of 0 or more."""
    value = read_number(text)
    if value < 0:
        raise BadCell(f"{shown(text)} must be 0 or more")
    return value + 0.0  # -0 is 0


def read_instant(text: str) -> float:
    """Seconds since some beginning."""
    return _within_a_century(text, not_negative(_as_seconds(text)))


def duration_or_nan(text: str) -> float:
    """Seconds above 0; NaN where they are not given."""
    return _within_a_century(text, positive(_as_seconds(text))) if text else math.nan


def _as_seconds(text: str) -> str:
    """The cell, unless it is a time in some other form, such as 10m or 1:00:00."""
    if text.strip() and _NUMBER.fullmatch(text) is None:
        raise BadCell(f"{shown(text)} is no number: give seconds")
    return text


def _within_a_century(text: str, seconds: float) -> float:
    if seconds > CENTURY:
        raise BadCell(f"{shown(text)} is more than a hundred years ({CENTURY:.0f} s)")
    return seconds


def whole(text: str) -> int:
    """A whole number of 0 or more; `4.0` is one too."""
    if text.isascii() and text.isdigit() and len(text.lstrip("0")) > _WHOLE_DIGITS:
        raise BadCell(f"{shown(text)} is too large: at most {_WHOLE_DIGITS} digits")
    if _WHOLE.fullmatch(text) is None:
        raise BadCell(f"{shown(text)} is no whole number of 0 or more")
    return int(text.partition(".")[0])


def one_or_more_or_nan(text: str) -> float:
    """A number of 1 or more; NaN where it is not given."""
    value = read_number(text) if text else math.nan
    if value < 1:
        raise BadCell(f"{shown(text)} must be 1 or more")
    return value


def weight(text: str) -> float:
    """A weight: a number above 0."""
    value = positive(text)
    if value < LEAST_WEIGHT:
        raise BadCell(f"{shown(text)} is too small: give a number from {LEAST_WEIGHT:g} to {MOST:g}")
    return value


def weight_or_one(text: str) -> float:
    """A weight; 1 where it is not given."""
    return weight(text) if text else 1.0


def whole_or_zero(text: str) -> int:
    """A whole number; 0 where it is not given."""
    return whole(text) if text else 0


def words(text: str) -> str:
    """A printable text of a sane length, which may be empty."""
    if not text.isprintable():
        raise BadCell(f"{shown(text)} holds characters that cannot be printed")
    if len(text) > _MOST_TEXT:
        raise BadCell(f"{shown(text)} is longer than {_MOST_TEXT} characters")
    return text


def name(text: str) -> str:
    """A printable text that is not empty."""
    if not text:
        raise BadCell("is empty: give a name")
    return words(text)


def free(text: str) -> str:
    """Any text; all its line ends are alike, because Python writes a lone carriage return without quotes."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def choices(text: str) -> tuple[int, ...]:
    """`1|2|4`, or `2-8:2`, from 2 to 8 by steps of 2: numbers of GPUs that the job could run with, ascending."""
    if not text:
        return ()
    if span := _SPAN.fullmatch(text.strip()):
        sizes = _within(text, int(span[1]), int(span[2]), int(span[3] or 1))
    else:
        try:
            sizes = {whole(part.strip()) for part in text.split("|")}
        except BadCell:
            sizes = {0}
    if 0 in sizes:
        raise BadCell(
            f"{shown(text)} must be numbers of GPUs above 0 with | between them, or MIN-MAX:STEP such as 2-8:2"
        )
    return tuple(sorted(sizes))


def _within(text: str, least: int, most: int, step: int) -> set[int]:
    """The sizes of MIN-MAX:STEP; as many as one job can name."""
    if step < 1 or least > most:
        raise BadCell(f"{shown(text)} must be MIN-MAX or MIN-MAX:STEP, such as 2-8:2")
    sizes = range(least, most + 1, step)
    if len(sizes) > MOST_SIZES:
        raise BadCell(f"{shown(text)} are {len(sizes)} sizes: at most {MOST_SIZES}; give a larger step")
    return set(sizes)
