"""Find the waiting jobs to ask about again: others may change what no look lists."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState
from slurm_fair.model.columns import Ints
from slurm_fair.slurm.reading.bearers import RunId

_LEAST_SECONDS = 10.0
_TIMES_ITS_COST = 50.0  # so many times as long as the last one took: a long queue is asked seldom
_MOST_SECONDS = 300.0
_DOUBLINGS = 5  # of the pause after questions in a row that failed: the longest by then


@dataclass(slots=True)
class Spacing:
    """The instant of the last question, and how long the next one waits.

    One that failed is asked again soon, and later each time: it makes a look blind for as long as it takes.
    """

    _asked: float = -math.inf
    _pause: float = _LEAST_SECONDS
    _failures: int = 0  # in a row

    def due(self, now: float) -> bool:
        """True if enough time has passed; a clock that was set back keeps nothing from being asked again."""
        return not 0 <= now - self._asked < self._pause

    def note(self, began: float, ended: float, *, answered: bool = True) -> None:
        """A question was asked from one instant to another."""
        took = ended - began
        self._failures = 0 if answered else min(self._failures + 1, _DOUBLINGS)
        pause = _TIMES_ITS_COST * took if answered else max(_LEAST_SECONDS, took) * 2 ** (self._failures - 1)
        self._asked, self._pause = ended, min(max(_LEAST_SECONDS, pause), _MOST_SECONDS)


@dataclass(slots=True)
class AskedAgain:
    """The waiting jobs to ask about again at a look: all at times, and at once those that were just released.

    Whoever holds a job to change it releases it afterwards, and the next plan may already give it GPUs.
    """

    _spacing: Spacing = field(default_factory=Spacing)
    _held: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # records
    _holds: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # those at this look alone

    def among(self, rows: NDArray[np.void], now: float) -> Collection[RunId]:
        """Record and restarts of the rows that are to be asked about.

        Jobs that were held count as held until a look has asked about those that are not.
        """
        waiting = rows[rows["state"] == JobState.WAITING]
        held, before = waiting["priority"] == 0, self._held
        self._holds = waiting["record"][held]
        self._held = np.union1d(before, self._holds)
        if not self._spacing.due(now):
            waiting = waiting[~held & np.isin(waiting["record"], before)]
        return list(zip(waiting["record"].tolist(), waiting["restarts"].tolist(), strict=True))

    def note(self, asked: Collection[RunId], began: float, ended: float, *, answered: bool = True) -> None:
        """Some were asked about from one instant to another, and Slurm gave a whole answer or none."""
        if answered:
            self._held = self._holds
        if asked and self._spacing.due(began):
            self._spacing.note(began, ended, answered=answered)
