"""Durations on command lines: seconds, as people write them (5m, 1.5h), and as Slurm does (15:00, 1-12:00:00)."""

from __future__ import annotations

import math
import re
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_OF_PEOPLE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhdw])", re.ASCII)
_OF_SLURM = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,6})", re.ASCII)


def seconds_in(text: str) -> float:
    """nan where the text is no duration."""
    if people := _OF_PEOPLE.fullmatch(text):
        return float(people[1]) * _UNITS[people[2]]
    if slurm := _OF_SLURM.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in slurm.groups())
        return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    try:
        return float(text)
    except ValueError:
        return math.nan


class WholeSeconds(click.ParamType[int]):
    """Whole seconds; a part of one counts as one."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The duration as a number."""
        seconds = seconds_in(str(value))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is no duration: write seconds (90), 5m, 1h or 15:00", param, ctx)
        return math.ceil(seconds)
