"""The theory's errors, carried from the shapes that were measured to shapes like them (kriging).

The more is measured, the less is left to the theory, and the smaller is the doubt near it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.throughput.observations import Observations

# Deviations of the theory's error, of logarithms: common to all shapes with one batch size; of one shape.
OF_BATCH, OF_SHAPE = 0.06, 0.2
# Distances, of logarithms, over which errors are alike.
BATCH_REACH, SHAPE_REACH = 4.0, 2.0
ITSELF = 0.03  # another measurement of the same differs by as much


@dataclass(frozen=True, slots=True)
class Residuals:
    """Solved once for each group: [group, observation] and [group, observation, observation]."""

    places: Floats  # [group, observation, 4]: logarithms of batch, GPUs, nodes and most
    several: Bools  # the observation counts: it is of several GPUs
    pull: Floats  # inverse of the covariance, times what is left over
    inverse: Floats


def residuals_of(observed: Observations, left_over: Floats) -> Residuals:
    """Errors on one GPU are none: the theory takes that as measured."""
    several = observed.there & (observed.gpus > 1)
    batch = np.take_along_axis(observed.batches, observed.batch, axis=1)
    places = np.log(np.stack([batch, observed.gpus, observed.nodes, observed.most], axis=-1))
    places = np.where(several[:, :, None], places, 0.0)
    both = several[:, :, None] & several[:, None, :]
    covariance = np.where(both, _alike(places[:, :, None, :], places[:, None, :, :]), 0.0)
    own = np.where(several, np.hypot(ITSELF, observed.doubt) ** 2, 1.0)
    covariance += own[:, :, None] * np.eye(several.shape[1])
    inverse = np.linalg.inv(covariance)
    pull = np.einsum("gmn,gn->gm", inverse, np.where(several, left_over, 0.0))
    return Residuals(places, several, pull, inverse)


def carried(residuals: Residuals, group: Ints, place: Floats) -> tuple[Floats, Floats]:
    """The error to expect at each place of a group, and the variance that stays; [question], [question, 4]."""
    like = _alike(place[:, None, :], residuals.places[group]) * residuals.several[group]
    error = np.einsum("qm,qm->q", like, residuals.pull[group])
    explained = np.einsum("qm,qmn,qn->q", like, residuals.inverse[group], like, optimize=True)
    left = np.maximum(OF_BATCH**2 + OF_SHAPE**2 - explained, 0.0)
    one = place[:, 1] <= 0
    return np.where(one, 0.0, error), np.where(one, 0.0, left)


def _alike(one: Floats, other: Floats) -> Floats:
    off = np.abs(one - other)
    batch = np.exp(-off[..., 0] / BATCH_REACH)
    shape = np.exp(-off[..., 1:].sum(axis=-1) / SHAPE_REACH)
    covariance: Floats = batch * (OF_BATCH**2 + OF_SHAPE**2 * shape)
    return covariance
