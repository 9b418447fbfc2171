"""Durations on command lines: seconds, as people write them (5m, 1.5h), and as Slurm does (15:00, 1-12:00:00)."""

from __future__ import annotations

import math
import re

import click

from slurm_fair.cli.written import Written
from slurm_fair.slurm_text.durations import clock_seconds

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SHORT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhdw])", re.ASCII)


def typed_seconds(text: str) -> float:
    """nan where the text is no duration."""
    if short := _SHORT.fullmatch(text):
        return float(short[1]) * _UNITS[short[2]]
    if (slurm := clock_seconds(text)) is not None:
        return float(slurm)
    try:
        return float(text)
    except ValueError:
        return math.nan


def _whole_seconds(text: str) -> int:
    """Whole seconds; a part of one counts as one."""
    seconds = typed_seconds(text)
    if not math.isfinite(seconds):
        raise click.BadParameter(f"{text!r} is no duration: write seconds (90), 5m, 1h or 15:00")
    return math.ceil(seconds)


WHOLE_SECONDS = Written("TIME", _whole_seconds)
