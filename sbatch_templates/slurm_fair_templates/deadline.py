"""The longest time that the gate of a job with a deadline may stay shut: sbatch refuses a begin time behind it."""

from __future__ import annotations

import re
import time

# Numbers with more digits are sbatch's to refuse: here they are words that we do not know.
BLIND_SECONDS = 60  # the gate where we cannot tell when the deadline is: the controller makes it longer
UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_RELATIVE = re.compile(r"now(?:\+ *([0-9]{1,12})(?:(second|minute|hour|day|week)s?)?)?", re.IGNORECASE)
_EPOCH = re.compile(r"uts([0-9]{1,12})")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?)?")
_OF_DAY = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")
_LIMIT = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")


def gate_seconds(wanted: int, deadline: str | None, time_limit: str, now: float | None) -> int:
    """The wanted gate, shortened to half of the time in which the job must start.

    So it can still make its deadline where no controller opens the gate. `now` is None where the job is submitted
    some other time.
    """
    if deadline is None:
        return wanted
    ahead = seconds_ahead(deadline, now)
    if ahead is None:
        return min(wanted, BLIND_SECONDS)
    return max(min(wanted, (ahead - limit_seconds(time_limit)) // 2), 1)


def seconds_ahead(deadline: str, now: float | None) -> int | None:
    """Seconds up to a deadline in sbatch's words; None for its rarer ones (American dates, teatime)."""
    if relative := _RELATIVE.fullmatch(deadline):
        return int(relative[1] or 0) * UNIT_SECONDS[(relative[2] or "second").lower()]
    if now is None:
        return None
    if epoch := _EPOCH.fullmatch(deadline):
        return int(epoch[1]) - int(now)
    if moment := _MOMENT.fullmatch(deadline):
        text = f"{moment[1]} {moment[2] or '00:00'}{moment[3] or ':00'}"
        return _at(text, now)
    if of_day := _OF_DAY.fullmatch(deadline):
        clock = f"{of_day[1]}:{of_day[2]}:{of_day[3] or '00'}"
        days = (time.strftime("%Y-%m-%d", time.localtime(now + add)) for add in (0, UNIT_SECONDS["day"]))
        ahead = (_at(f"{day} {clock}", now) for day in days)
        return next((seconds for seconds in ahead if seconds is not None and seconds > 0), None)
    return None


def limit_seconds(text: str) -> int:
    """A time limit in sbatch's words: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S; 0 for none."""
    if not (found := _LIMIT.fullmatch(text)):
        return 0
    days, first, second, third = found.groups()
    if days is not None or third is not None:
        return int(days or 0) * 86_400 + int(first) * 3600 + int(second or 0) * 60 + int(third or 0)
    return int(first) * 60 + int(second or 0)


def _at(text: str, now: float) -> int | None:
    """Seconds from now to a local time; None where there is no such day or hour."""
    try:
        return int(time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S")) - now)
    except (ValueError, OverflowError):
        return None
