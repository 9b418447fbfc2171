"""Times of loading data as two normal distributions: data in memory, and not (Hops 3.5, eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.throughput.groups import sums

_STEPS = 40
_LEAST = 6.0  # samples, as much as their age leaves of them: fewer are one normal
_APART = 2.0  # spreads between the means: closer ones are one normal


@dataclass(frozen=True, slots=True)
class DataTimes:
    """One entry per group; where only one normal can be told, both are it. nan without samples."""

    hit: Floats  # mu_c: mean seconds where data lie in memory
    miss: Floats  # mu_l
    hit_deviation: Floats  # sigma_c
    miss_deviation: Floats  # sigma_l
    misses: Floats  # p_load


def two_normals(group: Ints, value: Floats, weight: Floats, groups: int) -> DataTimes:
    """Expectation and maximisation from a start that the data give: no dice, and no order of the samples.

    The samples kept of a class are all that it needs, so the fit moves on as they do.
    """
    total = sums(group, weight, groups)
    mean = _mean(group, value, weight, total)
    deviation = _deviation(group, value, mean, weight, total)
    floor = np.maximum(0.01 * np.abs(mean), 1e-9)
    low, high = mean - deviation, mean + deviation
    hit_deviation = miss_deviation = np.maximum(deviation / 2, floor)
    misses = np.full(groups, 0.5)
    for _ in range(_STEPS):
        missed = _posterior(
            value, misses[group], low[group], high[group], hit_deviation[group], miss_deviation[group]
        )
        of_miss, of_hit = weight * missed, weight * (1 - missed)
        part = sums(group, of_miss, groups)
        low, high = _mean(group, value, of_hit, total - part), _mean(group, value, of_miss, part)
        hit_deviation = np.maximum(_deviation(group, value, low, of_hit, total - part), floor)
        miss_deviation = np.maximum(_deviation(group, value, high, of_miss, part), floor)
        with np.errstate(invalid="ignore", divide="ignore"):
            misses = np.clip(part / total, 0.01, 0.99)
    two = (total >= _LEAST) & (high - low > _APART * (hit_deviation + miss_deviation))
    one = np.maximum(deviation, floor)
    return DataTimes(
        np.where(two, low, mean),
        np.where(two, high, mean),
        np.where(two, hit_deviation, one),
        np.where(two, miss_deviation, one),
        np.where(two, misses, np.where(total > 0, 0.0, np.nan)),
    )


def _posterior(
    value: Floats, misses: Floats, low: Floats, high: Floats, hit_deviation: Floats, miss_deviation: Floats
) -> Floats:
    hit = np.log(1 - misses) - np.log(hit_deviation) - 0.5 * ((value - low) / hit_deviation) ** 2
    miss = np.log(misses) - np.log(miss_deviation) - 0.5 * ((value - high) / miss_deviation) ** 2
    posterior: Floats = 1 / (1 + np.exp(np.clip(hit - miss, -500, 500)))
    return posterior


def _mean(group: Ints, value: Floats, weight: Floats, total: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = sums(group, weight * value, len(total)) / total
    return mean


def _deviation(group: Ints, value: Floats, mean: Floats, weight: Floats, total: Floats) -> Floats:
    return np.sqrt(_mean(group, (value - mean[group]) ** 2, weight, total))
