"""Many small nonlinear fits at once: Levenberg and Marquardt's method with priors and Huber's loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats

_STEPS, _TRIES = 25, 4
_LONGEST = 1.0  # step of one parameter
_CLOSE = 1e-6  # gain at which a fit is over
_HUBER = 1.5
_EASIER, _HARDER = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class Normals:
    """Independent normal priors, [fit, parameter]."""

    mean: Floats
    deviation: Floats


@dataclass(frozen=True, slots=True)
class Fits:
    """The most likely parameters and their covariance, [fit, parameter(, parameter)]."""

    parameters: Floats
    covariance: Floats


Model = Callable[[Floats], Floats]  # [fit, parameter] -> [fit, observation]
Slopes = Callable[[Floats], Floats]  # [fit, parameter] -> [fit, observation, parameter]


def fitted(model: Model, slopes: Slopes, observed: Floats, doubt: Floats, prior: Normals) -> Fits:
    """Fit each row of observations; an entry with doubt inf is not there. Effort is counted, never timed."""
    at = prior.mean.copy()
    damping = np.full(len(at), 1e-2)
    cost = _cost(model(at), observed, doubt, at, prior)
    going = np.ones(len(at), dtype=bool)  # each fit ends by itself: none hangs on the others
    for _ in range(_STEPS):
        curve, pull = _normal_equations(model(at), slopes(at), observed, doubt, at, prior)
        before, trying = cost, going
        for _ in range(_TRIES):
            trial = at + _step(curve, pull, damping)
            trial_cost = _cost(model(trial), observed, doubt, trial, prior)
            better: Bools = trying & (trial_cost < cost)
            at = np.where(better[:, None], trial, at)
            cost = np.where(better, trial_cost, cost)
            damping = np.where(trying, damping * np.where(better, _EASIER, _HARDER), damping)
            trying = trying & ~better
            if not trying.any():
                break
        damping = np.clip(damping, 1e-9, 1e9)
        going = going & (before - cost > _CLOSE)
        if not going.any():
            break
    curve, _ = _normal_equations(model(at), slopes(at), observed, doubt, at, prior)
    return Fits(at, np.linalg.inv(curve).astype(np.float64))


def _cost(said: Floats, observed: Floats, doubt: Floats, at: Floats, prior: Normals) -> Floats:
    off = np.abs(observed - said) / doubt
    loss = np.where(off < _HUBER, 0.5 * off**2, _HUBER * (off - 0.5 * _HUBER))
    cost: Floats = loss.sum(axis=1) + 0.5 * (((at - prior.mean) / prior.deviation) ** 2).sum(axis=1)
    return cost


def _normal_equations(
    said: Floats, slopes: Floats, observed: Floats, doubt: Floats, at: Floats, prior: Normals
) -> tuple[Floats, Floats]:
    off = (observed - said) / doubt
    weight = np.minimum(1.0, _HUBER / np.maximum(np.abs(off), 1e-9))
    scaled = slopes / doubt[:, :, None]
    curve = np.einsum("gm,gmp,gmq->gpq", weight, scaled, scaled, optimize=True)
    tight = prior.deviation**-2.0
    curve += tight[:, :, None] * np.eye(at.shape[1])
    pull = np.einsum("gm,gmp->gp", weight * off, scaled) - (at - prior.mean) * tight
    return curve, pull


def _step(curve: Floats, pull: Floats, damping: Floats) -> Floats:
    diagonal = np.einsum("gpp->gp", curve)
    damped = curve + (damping[:, None] * diagonal)[:, :, None] * np.eye(curve.shape[1])
    step: Floats = np.linalg.solve(damped, pull[:, :, None])[:, :, 0]
    return np.clip(step, -_LONGEST, _LONGEST)
