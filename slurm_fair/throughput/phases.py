"""Parts of a step as jobs report them: means by class and GPU type, against the time that computing takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Codes, Floats, Ints
from slurm_fair.throughput.data_times import two_normals
from slurm_fair.throughput.groups import sums
from slurm_fair.throughput.robust import weighted_medians
from slurm_fair.throughput.samples import Samples
from slurm_fair.throughput.timing import Pattern, StepParts

BACKWARD, BACKWARD_DOUBT = 0.5, 0.1  # of computing, where no phases are known, and the doubt about that
UPDATE = 0.1
REPORTED_DOUBT = 0.03  # about a share that jobs reported


@dataclass(frozen=True, slots=True)
class StepShares:
    """One entry per class and GPU type; computing = forward + backward + update = 1."""

    backward: Floats
    backward_doubt: Floats
    update: Floats
    hit: Floats  # data time against computing
    miss: Floats
    misses: Floats
    pattern: Codes
    computing: Floats  # seconds a step, of what phases say; nan = not said

    def take(self, rows: Ints) -> StepShares:
        """The shares of some groups."""
        return StepShares(
            self.backward[rows],
            self.backward_doubt[rows],
            self.update[rows],
            self.hit[rows],
            self.miss[rows],
            self.misses[rows],
            self.pattern[rows],
            self.computing[rows],
        )

    def parts(self, computing: Floats, backward: Floats) -> StepParts:
        """Parts of steps of which computing takes so long; one row per entry, and columns as it has."""
        update = np.broadcast_to(_as(self.update, computing), computing.shape)
        backward = np.clip(backward, 0.05, 0.95 - update)
        parts = (self.hit, self.miss, self.misses, self.pattern)
        hit, miss, misses, pattern = (_as(part, computing) for part in parts)
        return StepParts(
            (1 - backward - update) * computing,
            backward * computing,
            update * computing,
            hit * computing,
            miss * computing,
            misses,
            pattern,
        )


def _as(column: Floats | Codes, like: Floats) -> Floats:
    """A column for each entry along the first axis of others."""
    return column.astype(np.float64).reshape(column.shape + (1,) * (like.ndim - column.ndim))


def shares_of(samples: Samples, group: Ints, weight: Floats, groups: int) -> StepShares:
    """Shares as the groups' samples say them; one that nobody reports is guessed."""
    forward, backward, update = (
        _median(getattr(samples, name), group, weight, groups) for name in ("forward", "backward", "update")
    )
    computing = forward + backward + np.where(np.isnan(update), 0.0, update)
    reported: Bools = computing > 0
    whole = np.where(reported, computing, 1.0)
    hit, miss, misses = _data(samples, group, weight, groups)
    return StepShares(
        np.where(reported, np.clip(backward / whole, 0.05, 0.9), BACKWARD),
        np.where(reported, REPORTED_DOUBT, BACKWARD_DOUBT),
        np.where(reported, np.where(np.isnan(update), 0.0, np.minimum(update / whole, 0.9)), UPDATE),
        np.where(reported & (hit > 0), hit / whole, 0.0),
        np.where(reported & (miss > 0), miss / whole, 0.0),
        np.where(reported & (misses > 0), misses, 0.0),
        _pattern(samples, group, weight, groups),
        np.where(reported, computing, np.nan),
    )


def _data(samples: Samples, group: Ints, weight: Floats, groups: int) -> tuple[Floats, Floats, Floats]:
    said = np.isfinite(samples.data)
    times = two_normals(group[said], samples.data[said], weight[said], groups)
    return times.hit, times.miss, times.misses


def _median(value: Floats, group: Ints, weight: Floats, groups: int) -> Floats:
    said = np.isfinite(value)
    return weighted_medians(group[said], value[said], weight[said], groups)


def _pattern(samples: Samples, group: Ints, weight: Floats, groups: int) -> Codes:
    """The pattern that most samples say; where nobody says, data are taken to be loaded meanwhile."""
    says = [sums(group, weight * (samples.pattern == pattern), groups) for pattern in Pattern]
    first = says[Pattern.DATA_FIRST] > says[Pattern.DATA_OVERLAPS]
    return np.where(first, Pattern.DATA_FIRST, Pattern.DATA_OVERLAPS).astype(np.int8)
