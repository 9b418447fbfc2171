"""Servers put into a few classes by how fast jobs run on them, so that those of one class count as alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.solve.answer import Table


@dataclass(frozen=True, slots=True)
class SpeedClasses:
    """Classes in the order of their first server; a class becomes a `kind` of a places problem."""

    of_server: Ints  # [server]
    speed: Table  # [class, measure] the middle of its servers, by ratio
    error: Floats  # [class] the largest factor - 1 between a server and the middle


def speed_classes(speed: Table, gpu_type: Ints, most: int, near: float = 0.02) -> SpeedClasses:
    """At most so many classes of servers with similar rows of speeds, never two GPU types in one.

    Speeds are positive and compared by ratio. Each type begins as one class; then the server that is furthest
    from the first of its class begins a new one, and all servers of its type go to the nearest first, until
    everybody is as near as a factor of 1 + `near` or there are `most` classes. No choice of so many classes has
    less than half of the largest distance that is left (Gonzalez, 1985).
    """
    if len(speed) != len(gpu_type) or not (np.isfinite(speed).all() and (speed > 0).all()):
        raise ValueError("speed classes: one row of positive speeds for each server")
    place = np.log(speed)
    firsts = list(np.unique(gpu_type, return_index=True)[1])
    if most < len(firsts):
        raise ValueError(f"speed classes: {len(firsts)} GPU types need at least as many classes, not {most}")
    nearest = np.searchsorted(gpu_type[firsts], gpu_type)
    far = _distance(place, place[np.array(firsts, dtype=np.int64)[nearest]])
    while len(firsts) < most and far.max(initial=0.0) > np.log1p(near):
        new = int(far.argmax())
        to_new = _distance(place, place[new])
        closer = (gpu_type == gpu_type[new]) & (to_new < far)
        nearest[closer] = len(firsts)
        far = np.where(closer, to_new, far)
        firsts.append(new)
    return _summed_up(place, nearest)


def _distance(place: Table, other: NDArray[np.float64]) -> Floats:
    """The largest difference of two rows of logarithms."""
    distance: Floats = np.abs(place - other).max(axis=1, initial=0.0)
    return distance


def _summed_up(place: Table, nearest: Ints) -> SpeedClasses:
    found, first, member = np.unique(nearest, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    of_server = np.argsort(order)[member]
    middle = np.array([place[of_server == each].mean(axis=0) for each in range(len(found))])
    middle = middle.reshape(len(found), place.shape[1])
    error = np.zeros(len(found))
    np.maximum.at(error, of_server, _distance(place, middle[of_server]))
    return SpeedClasses(of_server, np.exp(middle), np.expm1(error))
