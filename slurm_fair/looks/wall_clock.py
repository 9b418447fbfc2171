"""The wall clock, as a Clock."""

from __future__ import annotations

import time

from slurm_fair.looks.bell import Bell

_SLICE_SECONDS = 0.2


class WallClock:
    """Real time; a sleep ends early when somebody wakes it, or rings its bell."""

    def __init__(self, bell: Bell | None = None) -> None:
        self.bell = bell or Bell()
        self._woken = False

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def wake(self) -> None:
        """End the sleep under way, from a signal handler."""
        self._woken = True

    def sleep_until(self, instant: float) -> None:
        """Sleep in slices, so that a signal is heeded at once and a clock step does no harm."""
        began = time.monotonic()
        planned = max(instant - time.time(), 0.0)
        while not self._woken:
            left = planned - (time.monotonic() - began)
            if left <= 0:
                break
            if self.bell.wait(min(left, _SLICE_SECONDS)):
                break
        self._woken = False
