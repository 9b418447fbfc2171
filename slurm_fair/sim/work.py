"""How far jobs are and how fast they go: regimes, GPU types, and what lying apart costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Columns, Floats, Ints

# Crossing racks costs three times what crossing nodes costs: Themis' 1.3 against 1.1 (section 4.3.1).
RACK_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
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
        position = self.begin[first] + done
        row = np.searchsorted(self.begin, position, side="right") - 1
        return np.clip(row, first, last)


@dataclass(frozen=True, slots=True)
class Progress:
    """What jobs report of themselves at an instant."""

    epoch: Floats
    epochs: Floats
    left_seconds: Floats
    steps_per_second: Floats
    batch_size: Ints


def progress(
    regimes: Regimes, first: Ints, last: Ints, done: Floats, work: Floats, declared: Floats
) -> Progress:
    """What jobs know of themselves: epochs left at today's pace, or the declared time less the part done.

    Nothing of what lies ahead is told: a job that will adapt its batch size does not know it yet.
    """
    row = regimes.at(first, last, done)
    pace, total = regimes.epoch_seconds[row], regimes.epochs_total[row]
    epoch = regimes.epochs_before[row] + (regimes.begin[first] + done - regimes.begin[row]) / pace
    by_part = declared * (1.0 - done / work)
    left = np.where(regimes.adapts[row], (total - epoch) * pace, by_part)
    return Progress(
        epoch, total, np.maximum(left, 0.0), regimes.steps_per_second[row], regimes.batch_size[row]
    )


def spread_factor(nodes: int, fewest: int, racks: int, spread_rate: float) -> float:
    """Speed of a gang on more than its fewest nodes, or across racks, against that of a well-placed one."""
    if racks > 1:
        return 1.0 / (1.0 + RACK_FACTOR * (1.0 / spread_rate - 1.0))
    return spread_rate if nodes > fewest else 1.0
