"""The theory layer: by class and GPU type the parameters of eq. 1-5, fitted to what was measured in any shape.

One measurement on one GPU and one on several nodes are enough; each further one makes the theory surer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from slurm_fair.model.columns import Floats
from slurm_fair.throughput.aged import AgedSamples
from slurm_fair.throughput.least_squares import Fits, Normals, fitted
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.observations import Observations, observations
from slurm_fair.throughput.phases import StepShares
from slurm_fair.throughput.residuals import Residuals, residuals_of
from slurm_fair.throughput.timing import link_factors, longest_of, step_seconds


class Parameter(IntEnum):
    """Columns of the parameters; the logarithm of the step of one GPU follows, for each batch size."""

    SCALE = 0  # log of P / B_net, in seconds
    LINK = 1  # log of what this class adds to the ratio of this link to the net
    NET = 2  # the same of the net itself
    BUS = 3  # of the bus
    HOST = 4  # of the host
    WAIT = 5  # log of the spread of one process over its step
    SOLO = 6  # a GPU among others computes faster than alone by this
    BACKWARD = 7  # of computing


LINKS = slice(Parameter.LINK, Parameter.HOST + 1)  # columns
SHARED = len(Parameter)
_NUDGE = 1e-5

FAR = 0.06  # the theory's own error in shapes of several GPUs
ALONE = 0.02  # the same on one GPU, which it takes as measured
_GUESS = 0.3  # P / B_net over the step of one GPU
BY_BATCH = 0.8  # exponent of the step's growth with the batch size
_LEAST_WAIT = 0.03
#                        scale link  net  bus  host wait solo
_DEVIATIONS = np.array([2.0, 0.8, 0.3, 1.0, 1.0, 1.0, 0.03])
_KNOWN_LINK = 0.2  # deviation of a ratio that was measured
# log of B_net / B of each link, where nobody measured them.
DEFAULT_RATIOS = np.array([-0.5, 0.0, -2.5, -1.5])


@dataclass(frozen=True, slots=True)
class Theory:
    """Worked out of samples; nobody keeps it. One entry along the first axis per group: a class on a GPU type."""

    observed: Observations
    ratios: Floats  # [group, link]
    fits: Fits
    residuals: Residuals


def theory(known: AgedSamples, links: Links) -> Theory:
    """The parameters of all classes on all GPU types on which they were measured."""
    observed = observations(known)
    ratios, doubts = _ratios(known.samples.gpu_types, links)
    ratios, doubts = ratios[known.gpu_type], doubts[known.gpu_type]
    shapes = StepShapes(observed.gpus, observed.nodes, observed.most, observed.shares, ratios)
    fits = _fits(observed, shapes, _prior(observed, doubts))
    said = log_steps(shapes, fits.parameters[:, :SHARED], _alone(observed, fits.parameters))
    residuals = residuals_of(observed, observed.log_step - said)
    return Theory(observed, ratios, fits, residuals)


def _ratios(gpu_types: tuple[str, ...], links: Links) -> tuple[Floats, Floats]:
    """For each type the logarithms of B_net over the rate of each link, and the doubts about them."""
    row = places_in(gpu_types, links.gpu_types)[: len(gpu_types)]
    ratios = np.tile(DEFAULT_RATIOS, (len(gpu_types), 1))
    doubts = np.tile(_DEVIATIONS[LINKS], (len(gpu_types), 1))
    for column, rate in ((0, links.link), (2, links.bus), (3, links.host)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(links.net / rate)[row] if len(links) else np.full(len(row), np.nan)
        measured = (row >= 0) & ~np.isnan(ratio)
        ratios[measured, column] = np.maximum(ratio[measured], -12.0)  # a link that takes no time
        doubts[measured, column] = _KNOWN_LINK
    return ratios, doubts


def _prior(observed: Observations, link_doubts: Floats) -> Normals:
    """Normal priors of all parameters; wide ones of what the observations say anyway."""
    groups, batches = observed.batches.shape
    step, base = _first_steps(observed)
    mean = np.zeros((groups, SHARED + batches))
    deviation = np.ones((groups, SHARED + batches))
    mean[:, Parameter.SCALE] = base + np.log(_GUESS)
    mean[:, Parameter.WAIT] = np.log(_LEAST_WAIT)
    mean[:, Parameter.BACKWARD] = observed.shares.backward
    mean[:, SHARED:] = step
    deviation[:, : Parameter.BACKWARD] = _DEVIATIONS
    deviation[:, LINKS] = link_doubts
    deviation[:, Parameter.BACKWARD] = observed.shares.backward_doubt
    return Normals(mean, deviation)


def _first_steps(observed: Observations) -> tuple[Floats, Floats]:
    """Guesses of log(step of one GPU) by batch size, and at the usual one: the shortest step with that batch."""
    groups, batches = observed.batches.shape
    step = np.full((groups, batches), np.inf)
    there = observed.there
    group = np.broadcast_to(np.arange(groups)[:, None], there.shape)
    np.minimum.at(step, (group[there], observed.batch[there]), observed.log_step[there])
    size = np.log(observed.batches)
    offset = np.where(np.isfinite(step), step - BY_BATCH * size, np.nan)
    usual = size[np.arange(groups), observed.usual]
    base = np.nanmean(offset, axis=1) + BY_BATCH * usual if groups else np.zeros(0)
    guess = base[:, None] + BY_BATCH * (size - usual[:, None])
    return np.where(np.isfinite(step), step, np.nan_to_num(guess)), base


def _fits(observed: Observations, shapes: StepShapes, prior: Normals) -> Fits:
    groups, entries = observed.batch.shape
    at = np.arange(groups)[:, None], np.arange(entries)[None, :], SHARED + observed.batch

    def model(parameters: Floats) -> Floats:
        return log_steps(shapes, parameters[:, :SHARED], _alone(observed, parameters))

    def all_slopes(parameters: Floats) -> Floats:
        """An entry hangs on the step of one GPU with its own batch size alone."""
        by_each = slopes(shapes, parameters[:, :SHARED], _alone(observed, parameters))
        by_parameter = np.zeros((groups, entries, parameters.shape[1]))
        by_parameter[:, :, :SHARED] = by_each[:, :, :SHARED]
        by_parameter[at] = by_each[:, :, SHARED]
        return by_parameter

    doubt = np.hypot(observed.doubt, np.where(observed.gpus > 1, FAR, ALONE))
    return fitted(model, all_slopes, observed.log_step, doubt, prior)


def _alone(observed: Observations, parameters: Floats) -> Floats:
    alone: Floats = np.take_along_axis(parameters[:, SHARED:], observed.batch, axis=1)
    return alone


@dataclass(frozen=True, slots=True)
class StepShapes:
    """Arrays [group, entry] of shapes, and what theory needs of each group."""

    gpus: Floats
    nodes: Floats
    most: Floats
    shares: StepShares  # [group]
    ratios: Floats  # [group, link]


def log_steps(shapes: StepShapes, shared: Floats, alone: Floats) -> Floats:
    """Logarithm of the seconds of a step in each shape; `alone` is that of one GPU by itself (eq. 1, 2 and 4)."""
    nothing, shares = np.zeros_like(alone), shapes.shares
    backward = shared[:, Parameter.BACKWARD, None] + nothing
    unit = step_seconds(shares.parts(nothing + 1, backward), nothing, nothing)
    among_others = np.where(shapes.gpus > 1, shared[:, Parameter.SOLO, None], 0.0)
    computing = np.exp(alone - among_others) / unit
    per_link = np.exp(shared[:, Parameter.SCALE, None] + shapes.ratios + shared[:, LINKS])
    factors = link_factors(shapes.gpus, shapes.nodes, shapes.most)
    communication = np.einsum("gml,gl->gm", factors, per_link)
    waiting = np.exp(shared[:, Parameter.WAIT, None] + alone) * longest_of(shapes.gpus)
    log_step: Floats = np.log(step_seconds(shares.parts(computing, backward), communication, waiting))
    return log_step


def slopes(shapes: StepShapes, shared: Floats, alone: Floats) -> Floats:
    """Derivatives by the shared parameters, and last by `alone`."""
    here = log_steps(shapes, shared, alone)
    columns = [log_steps(shapes, shared + _NUDGE * unit, alone) - here for unit in np.eye(SHARED)]
    columns.append(log_steps(shapes, shared, alone + _NUDGE) - here)
    by_each: Floats = np.stack(columns, axis=-1) / _NUDGE
    return by_each
