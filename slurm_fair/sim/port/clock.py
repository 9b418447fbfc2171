"""A clock of virtual time."""

from __future__ import annotations

import math

from slurm_fair.model.spans import DAY_SECONDS

_LONG_AGO = 10_000 * DAY_SECONDS


def epoch_for(term: float) -> float:
    """The instant of a trace's beginning: aligned leases, intervals and days all begin there too.

    It is not 0, because an instant of 0 means "never" everywhere.
    """
    if 0 < term < _LONG_AGO:
        return math.ceil(_LONG_AGO / term) * term if DAY_SECONDS % term else _LONG_AGO
    return _LONG_AGO


class VirtualClock:
    """Time stands still until somebody sleeps."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def sleep_until(self, instant: float) -> None:
        self._now = max(self._now, instant)
