"""Progress and speed of virtual jobs: regimes, GPU types, and the cost of lying apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Columns, Floats, Ints, any_of
from slurm_fair.model.once import once

# Crossing racks costs three times what crossing nodes costs: Themis' 1.3 against 1.1 (section 4.3.1).
RACK_FACTOR = 3.0


@dataclass(frozen=True)
class Regimes(Columns):
    """All jobs' regimes in one row: job j has those from its `first_regime` to its `last_regime`.

    A job that never changes its batch size has one.
    """

    begin: Floats  # seconds of work before it, counted over all jobs' regimes
    seconds: Floats
    epochs_before: Floats  # of the same job
    epoch_seconds: Floats  # nan = its epochs are not known
    epochs_total: Floats  # of the job
    steps_per_second: Floats  # nan = not known
    batch_size: Ints
    adapts: Bools

    def at(self, first: Ints, last: Ints, done: Floats) -> Ints:
        """The regime in which each job is."""
        if not any_of(first != last):
            return first
        position = self.begin[first] + done
        row = np.searchsorted(self.begin, position, side="right") - 1
        return np.clip(row, first, last)


class Progress:
    """The progress of jobs as they know it at an instant, each part worked out when it is asked for.

    Nothing of what lies ahead is told: a job that will adapt its batch size does not know it yet.
    """

    def __init__(
        self, regimes: Regimes, first: Ints, last: Ints, done: Floats, work: Floats, declared: Floats
    ) -> None:
        self._regimes, self._first, self._done = regimes, first, done
        self._work, self._declared = work, declared
        self._row = regimes.at(first, last, done)

    @once
    def left_seconds(self) -> Floats:
        """Epochs left at today's pace, or the declared time less the part done."""
        left = self._declared * (1.0 - self._done / self._work)
        adapts = self._regimes.adapts.take(self._row)
        if any_of(adapts):
            left = np.where(adapts, (self.epochs - self.epoch) * self._pace, left)
        return np.maximum(left, 0.0)

    @once
    def epoch(self) -> Floats:
        """Number of epochs done."""
        regimes, row = self._regimes, self._row
        into = regimes.begin[self._first] + self._done - regimes.begin[row]
        return regimes.epochs_before[row] + into / self._pace

    @once
    def epochs(self) -> Floats:
        """Number of epochs in all."""
        return self._regimes.epochs_total[self._row]

    @once
    def steps_per_second(self) -> Floats:
        """Steps a second at today's batch size."""
        return self._regimes.steps_per_second[self._row]

    @once
    def batch_size(self) -> Ints:
        return self._regimes.batch_size[self._row]

    @once
    def _pace(self) -> Floats:
        return self._regimes.epoch_seconds[self._row]


def spread_factor(nodes: int, fewest: int, racks: int, spread_rate: float) -> float:
    """Speed of a gang on more than its fewest nodes, or across racks, against that of a well-placed one."""
    if racks > 1:
        return 1.0 / (1.0 + RACK_FACTOR * (1.0 / spread_rate - 1.0))
    return spread_rate if nodes > fewest else 1.0
