"""Bound the rounds of gates in one tick, so that the whole tick is bounded, its first look included."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

ROUND = 512  # acts for which we ask once more whether we may act
_OLDEST_SECONDS = 1.5  # no round begins later after the fresh read: what it showed must not grow old
_LAST_END_SECONDS = 2.1  # of a tick of 3 s: a round may take a second longer, and then comes another look
_REMEMBERED = 4


@dataclass(slots=True)
class Rounds:
    """The duration of rounds: as long as the fastest of the last few.

    In a slower round slurmctld did not answer for a while, because its scheduler was at work. That says nothing
    about the next round.
    """

    tick_began: float = math.inf  # when the tick began to look; unknown before the first look
    _read: float = 0.0
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def begin(self, now: float) -> None:
        """The fresh read has just been made."""
        self._read = now

    def took(self, seconds: float) -> None:
        """Note the length of a round that is over."""
        self._recent.append(seconds)

    def fits_another(self, now: float) -> bool:
        """True if another round would end in time."""
        ends = now + min(self._recent)
        began = min(self.tick_began, self._read)
        return now - self._read <= _OLDEST_SECONDS and ends - began <= _LAST_END_SECONDS
