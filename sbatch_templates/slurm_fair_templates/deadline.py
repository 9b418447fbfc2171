"""The longest time that the gate of a job with a deadline may stay shut: sbatch refuses a begin time behind it."""

from __future__ import annotations

import re
import time

from slurm_fair.slurm_text.durations import UNIT_SECONDS, seconds_in

# Numbers with more digits are sbatch's to refuse: here they are words that we do not know.
BLIND_SECONDS = 60  # the gate where we cannot tell when the deadline is: the controller makes it longer
_RELATIVE = re.compile(r"now(?:\+ *([0-9]{1,12})(?:(second|minute|hour|day|week)s?)?)?", re.IGNORECASE)
_EPOCH = re.compile(r"uts([0-9]{1,12})")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?)?")
_OF_DAY = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")


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
    return max(min(wanted, (ahead - (seconds_in(time_limit) or 0)) // 2), 1)


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


def _at(text: str, now: float) -> int | None:
    """Seconds from now to a local time; None where there is no such day or hour."""
    try:
        return int(time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S")) - now)
    except (ValueError, OverflowError):
        return None
