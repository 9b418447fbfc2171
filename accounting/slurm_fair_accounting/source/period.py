"""Periods as sreport takes them, in the local time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_fair.errors import InputError
from slurm_fair.slurm_text.durations import UNIT_SECONDS

_HOURS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16}
_NOW = re.compile(r"now(?:([+-])(\d{1,9})(second|minute|hour|day|week)?s?)?")
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?\s*(?P<half>am|pm)?"
_FORMS = [
    re.compile(rf"(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?:[t ]{_TIME})?"),
    re.compile(rf"(?P<month>\d{{1,2}})([/.])(?P<day>\d{{1,2}})(?:\2(?P<year>\d{{2}}))?(?:-{_TIME})?"),
    re.compile(rf"(?P<month>\d{{2}})(?P<day>\d{{2}})(?P<year>\d{{2}})?(?:-{_TIME})?"),
    re.compile(_TIME),
]


_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_FIRST_YEAR, _LAST_YEAR = 1970, 9998  # of the epoch, and of the calendar with a day to follow
_LEAST_SECONDS, _MOST_SECONDS = -86400.0, 253370764800.0  # between them every instant has a year


@dataclass(frozen=True, slots=True)
class Period:
    """[start, end) in epoch seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.end - self.start


def parse_when(text: str, now: float) -> float:
    """Epoch seconds of an instant as sreport's --start and --end take it."""
    time = _seconds(text, now)
    within = _LEAST_SECONDS <= time < _MOST_SECONDS
    if not (within and _FIRST_YEAR <= datetime.fromtimestamp(time).year <= _LAST_YEAR):
        raise InputError(f"'{text}' is no time: years go from {_FIRST_YEAR} to {_LAST_YEAR}")
    return time


def _seconds(text: str, now: float) -> float:
    word = text.strip().lower()
    today = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    if relative := _NOW.fullmatch(word):
        sign, count, unit = relative.groups()
        return now + int(f"{sign or '+'}{count or 0}") * UNIT_SECONDS[unit or "second"]
    if word in ("today", "tomorrow"):
        return (today + timedelta(days=word == "tomorrow")).timestamp()
    if word in _HOURS:
        return today.replace(hour=_HOURS[word]).timestamp()
    for form in _FORMS:
        if match := form.fullmatch(word):
            return _instant(text, match.groupdict(), today)
    raise InputError(
        f"'{text}' is no time: give YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], HH:MM, now-1days, today or midnight"
    )


def _instant(text: str, found: dict[str, str | None], today: datetime) -> float:
    hour, minute, second = (int(found.get(part) or 0) for part in ("hour", "minute", "second"))
    if half := found.get("half"):
        hour = hour % 12 + (12 if half == "pm" else 0)
    month, day = (int(found.get(part) or 0) for part in ("month", "day"))
    written = found.get("year")
    if found.get("month") is None:
        year, month, day = today.year, today.month, today.day
    elif written is None:
        year = today.year - (month > today.month)  # a month that lies ahead is last year's
    else:
        year = int(written) + (2000 if len(written) == 2 else 0)
    try:
        return datetime(year, month, day, hour, minute, second).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(f"'{text}' is no time: {error}") from error


def choose(start: str | None, end: str | None, now: float, began: Callable[[], float | None]) -> Period:
    """The period asked for; without one the last full month, or the whole life of a younger journal."""
    until = now if end is None else parse_when(end, now)
    if start is None and end is None:
        period = last_month(now)
        first = began()
        if first is not None and first > period.start:
            period = Period(min(first, now), now)
    else:
        period = Period(began() or 0.0 if start is None else parse_when(start, now), until)
    if period.seconds < 0 or (period.seconds == 0 and start is not None):
        raise InputError(_backwards(start, end, period))
    return period


def _backwards(start: str | None, end: str | None, period: Period) -> str:
    """The mistake in a period that ends before it starts, in words of what was given."""
    if start is None:
        known = f"the beginning of what is known, {_iso(period.start)}"
        return f"--end {_as_read(end or 'now', period.end)} is before {known}: give a later one"
    if end is None:
        return f"--start {_as_read(start, period.start)} is not before now: give an earlier one, or --end"
    if period.seconds == 0:
        both = _as_read(start, period.start)
        return f"--start {both} is --end {end} too: a period has a beginning and a later end"
    first, last = _as_read(start, period.start), _as_read(end, period.end)
    return f"--start {first} is not before --end {last}: swap them"


def _as_read(text: str, time: float) -> str:
    """An instant as it was written, and how it was read, where that is not the same."""
    read = _iso(time)
    return text if read.startswith(text.strip().upper()) else f"{text} (read as {read})"


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time).isoformat(timespec="seconds")


def span_of(
    month: str | None, start: str | None, end: str | None, now: float
) -> tuple[str | None, str | None]:
    """--start and --end, or those that a calendar month stands for; one that is not over ends now."""
    if month is None:
        return start, end
    if start is not None or end is not None:
        raise InputError("--month is a whole period: leave out --start and --end")
    found = _MONTH.fullmatch(month)
    if found is None or int(found[1]) < _FIRST_YEAR:
        raise InputError(f"'{month[:60]}' is no month: write YYYY-MM, such as 2026-10")
    year, number = int(found[1]), int(found[2])
    first = f"{year:04}-{number:02}-01"
    if parse_when(first, now) >= now:
        raise InputError(f"--month {month} has not begun: give an earlier one")
    following = f"{year + number // 12:04}-{number % 12 + 1:02}-01"
    return first, following if parse_when(following, now) <= now else None


def last_month(now: float) -> Period:
    """The last full calendar month."""
    first = datetime.fromtimestamp(now).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    before = (first - timedelta(days=1)).replace(day=1)
    return Period(before.timestamp(), first.timestamp())


def days(start: float, end: float) -> list[Period]:
    """The calendar days of a period, the first and the last one cut to it; a day may have 23 or 25 hours."""
    found: list[Period] = []
    at = start
    while at < end:
        day = datetime.fromtimestamp(at).replace(hour=0, minute=0, second=0, microsecond=0)
        following = (day + timedelta(days=1)).timestamp()
        found.append(Period(at, min(following, end)))
        at = following
    return found
