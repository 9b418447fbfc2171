"""Means that no few samples can move far: Huber's, begun at the weighted median, of many groups at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.throughput.groups import sums

HUBER = 1.345  # 95 % as sharp as the plain mean where nothing is odd
_OF_MAD = 1.4826  # a normal's standard deviation over its median absolute deviation
_STEPS = 8
_LEAST_DEVIATION = 0.005  # of logarithms: clocks and step counts are no better


@dataclass(frozen=True, slots=True)
class RobustMeans:
    """One entry per group; nan where a group has nothing that counts."""

    mean: Floats
    deviation: Floats  # standard deviation of one value
    weight: Floats  # sum of weights: how many samples of today the group is worth


def robust_means(group: Ints, value: Floats, weight: Floats, groups: int) -> RobustMeans:
    """Each value pulls at its mean by at most HUBER spreads, whatever it says; half of a group may lie."""
    total = sums(group, weight, groups)
    mean = weighted_medians(group, value, weight, groups)
    scale = np.maximum(
        _OF_MAD * weighted_medians(group, np.abs(value - mean[group]), weight, groups), _LEAST_DEVIATION
    )
    for _ in range(_STEPS):
        far = np.abs(value - mean[group]) / (HUBER * scale[group])
        mean = _means(group, value, weight / np.maximum(far, 1.0), groups)
    near = np.clip(value - mean[group], -3 * scale[group], 3 * scale[group])
    deviation = np.maximum(np.sqrt(_means(group, near**2, weight, groups)), _LEAST_DEVIATION)
    return RobustMeans(mean, np.where(total > 0, deviation, np.nan), total)


def weighted_medians(group: Ints, value: Floats, weight: Floats, groups: int) -> Floats:
    """The value of each group with half of the weight on either side; between two where they share it."""
    order = np.lexsort((value, group))
    inner, sorted_values, sorted_weights = group[order], value[order], weight[order]
    total = sums(group, weight, groups)
    before = np.cumsum(sorted_weights) - (np.cumsum(total) - total)[inner]  # up to and with each value
    half = total[inner] / 2
    slack = 1e-12 * total[inner]
    first = np.full(groups, np.inf)
    np.minimum.at(first, inner[before >= half - slack], sorted_values[before >= half - slack])
    last = np.full(groups, np.inf)
    np.minimum.at(last, inner[before > half + slack], sorted_values[before > half + slack])
    median: Floats = np.where(total > 0, (first + np.where(np.isfinite(last), last, first)) / 2, np.nan)
    return median


def _means(group: Ints, value: Floats, weight: Floats, groups: int) -> Floats:
    total = sums(group, weight, groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = sums(group, value * weight, groups) / total
    return means
