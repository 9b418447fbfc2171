"""Instants of looks as a daemon has them: those that one had, or those that it would have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.looks.pace import Allowance, next_look
from slurm_fair.model import LeaseTerms, Standing

_AFTER = 1e-6  # a look at the very instant of the last one is not another one


@dataclass(frozen=True)
class RecordedLooks:
    """Looks at the instants of a list, in order; after its last one they follow at the interval."""

    instants: Sequence[float]
    interval: float

    def __call__(self, standing: Standing, acts: int, now: float, change: float) -> float:
        """The first instant after one."""
        del standing, acts, change
        at = int(np.searchsorted(self.instants, now + _AFTER))
        return float(self.instants[at]) if at < len(self.instants) else now + self.interval


@dataclass(slots=True)
class DaemonsLooks:
    """Looks as the daemon would have them.

    A look takes `look_seconds`, a tick without acts `tick_seconds`. A tick with acts takes `acting_seconds`, and
    `act_seconds` more for each act. One that follows changes asks for them, and looks no oftener than slurmctld
    can bear, as if each look took all of its time there. Nobody wakes it.
    """

    terms: LeaseTerms
    look_seconds: float = 0.0
    tick_seconds: float = 0.0
    acting_seconds: float = 0.0
    act_seconds: float = 0.0
    allowance: Allowance = field(default_factory=Allowance)

    def __call__(self, standing: Standing, acts: int, now: float, change: float) -> float:
        """One interval later, or earlier: a lease ends, jobs change places, or it hears of a change."""
        over = now + (self.acting_seconds + acts * self.act_seconds if acts else self.tick_seconds)
        pause = 2 * self.look_seconds
        if not self.terms.follows_changes:
            return next_look(standing, self.terms, now, over, pause)
        self.allowance = self.allowance.after(self.look_seconds, over)
        waits = self.allowance.wait_seconds()
        due = next_look(standing, self.terms, now, over, max(pause, waits))
        # Acts of its own are changes too: it hears of them when it asks for the first time.
        return min(
            due, self._asks_after(over if acts else change, max(now + self.terms.interval_min, over + waits))
        )

    def _asks_after(self, change: float, first: float) -> float:
        """The instant of the question that hears of a change; questions are `interval_min` apart."""
        if change <= first:
            return first
        apart = self.terms.interval_min
        return first + math.ceil((change - first) / apart) * apart if math.isfinite(change) else change
