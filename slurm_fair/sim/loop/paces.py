"""Instants of looks as a daemon has them: those that one had, or those that it would have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.pace import next_look

_AFTER = 1e-6  # a look at the very instant of the last one is not another one


@dataclass(frozen=True)
class RecordedLooks:
    """Looks at the instants of a list, in order; after its last one they follow at the interval."""

    instants: Sequence[float]
    interval: float

    def __call__(self, standing: Standing, acts: int, now: float) -> float:
        """The first instant after one."""
        del standing, acts
        at = int(np.searchsorted(self.instants, now + _AFTER))
        return float(self.instants[at]) if at < len(self.instants) else now + self.interval


@dataclass(frozen=True, slots=True)
class DaemonsLooks:
    """Looks as the daemon would have them, if looks and ticks, those with acts and each act took so long."""

    terms: LeaseTerms
    look_seconds: float = 0.0
    tick_seconds: float = 0.0
    acting_seconds: float = 0.0
    act_seconds: float = 0.0

    def __call__(self, standing: Standing, acts: int, now: float) -> float:
        """One interval after the last look, earlier where a lease ends or jobs change places."""
        over = now + (self.acting_seconds + acts * self.act_seconds if acts else self.tick_seconds)
        return next_look(standing, self.terms, now, over, 2 * self.look_seconds)
