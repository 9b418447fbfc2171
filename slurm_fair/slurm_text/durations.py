"""Slurm's durations as seconds."""

from __future__ import annotations

import re

UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
UNLIMITED = frozenset({"UNLIMITED", "INFINITE", "NOT_SET", "INVALID", "Partition_Limit"})
_DURATION = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")


def seconds_in(text: str) -> int | None:
    """Seconds of minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S; None for any other text."""
    if not (found := _DURATION.fullmatch(text)):
        return None
    days, *rest = found.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is None and rest[2] is None:
        return first * 60 + second
    return ((int(days or 0) * 24 + first) * 60 + second) * 60 + third


def clock_seconds(text: str) -> int | None:
    """The same of texts with a colon in them: minutes alone are no clock."""
    return seconds_in(text) if ":" in text else None
