"""Answers of the theory layer: rates of classes in shapes that were not measured, and the doubt about them."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, Texts, take_or
from slurm_fair.throughput.aged import AgedSamples
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.residuals import carried
from slurm_fair.throughput.shapes import JobShapes, most_on_a_node
from slurm_fair.throughput.theory import BY_BATCH, SHARED, Parameter, StepShapes, Theory, log_steps, slopes

OTHER_TYPE_DOUBT = 0.35  # of the ratio of two GPU types for one class
LEAST_DOUBT = 0.03
BY_BATCH_DOUBT = 0.3  # of the exponent by which a step grows with its batch, beyond those that were measured


def type_speeds(links: Links, gpu_types: tuple[str, ...]) -> Floats:
    """The speed of each type against the reference, and 1 for a type that is not known (index -1)."""
    return take_or(links.speed, places_in(gpu_types, links.gpu_types), 1.0)


def best_groups(known: AgedSamples, theory: Theory, job_class: Ints) -> Ints:
    """The group of each class of which the most is known, on whatever GPU type; -1 = none."""
    best = np.full(len(known.samples.classes) + 1, -1, dtype=np.int64)
    order = np.argsort(theory.observed.there.sum(axis=1), kind="stable")
    best[known.job_class[order]] = order
    best[-1] = -1
    return best[job_class]


def theory_answers(
    known: AgedSamples, theory: Theory, links: Links, shapes: JobShapes, group: Ints
) -> tuple[Floats, Floats, Floats]:
    """The rate that each group foretells, the doubt about it, and the observations behind it; -1 = no answer."""
    rate, doubt, count = np.ones(len(shapes)), np.ones(len(shapes)), np.zeros(len(shapes))
    asked = np.flatnonzero(group >= 0)
    if not len(asked):
        return rate, doubt, count
    of, some = group[asked], shapes.take(asked)
    log_step, variance, batch = _steps(theory, of, some)
    measured = np.array(known.samples.gpu_types, dtype=object)[known.gpu_type[of]]
    wanted = np.array(shapes.gpu_types, dtype=object)[some.gpu_type]
    rate[asked] = some.gpus * batch * np.exp(-log_step) * _speed_ratio(links, wanted, measured)
    other = np.where(wanted == measured, LEAST_DOUBT, OTHER_TYPE_DOUBT)
    doubt[asked] = np.hypot(np.sqrt(variance), other)
    count[asked] = theory.observed.there.sum(axis=1)[of]
    return rate, doubt, count


def _speed_ratio(links: Links, wanted: Texts, measured: Texts) -> Floats:
    names, index = np.unique(np.concatenate([wanted, measured]), return_inverse=True)
    speed = type_speeds(links, tuple(names.tolist()))[index]
    ratio: Floats = speed[: len(wanted)] / speed[len(wanted) :]
    return ratio


def _steps(theory: Theory, group: Ints, shapes: JobShapes) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the seconds of a step, its variance, and the batch of one GPU that it is of."""
    observed, fits = theory.observed, theory.fits
    batch = np.where(np.isnan(shapes.batch), observed.batches[group, observed.usual[group]], shapes.batch)
    off = np.abs(np.log(observed.batches[group]) - np.log(batch)[:, None])
    near = np.argmin(np.where(np.isnan(off), np.inf, off), axis=1)
    beyond = np.log(batch / observed.batches[group, near])
    gpus, nodes, most = (
        column.astype(np.float64) for column in (shapes.gpus, shapes.nodes, most_on_a_node(shapes))
    )
    asked = StepShapes(
        gpus[:, None], nodes[:, None], most[:, None], observed.shares.take(group), theory.ratios[group]
    )
    shared = fits.parameters[group, :SHARED]
    alone = (fits.parameters[group, SHARED + near] + BY_BATCH * beyond)[:, None]
    columns = np.column_stack([np.tile(np.arange(SHARED), (len(group), 1)), SHARED + near])
    covariance = fits.covariance[group[:, None, None], columns[:, :, None], columns[:, None, :]]
    slope = slopes(asked, shared, alone)[:, 0, :]
    variance = np.einsum("qp,qpr,qr->q", slope, covariance, slope, optimize=True)
    here = log_steps(asked, shared, alone)[:, 0]
    # Far from straight where little is known of communication: it may cost little as it is, and much if slower.
    slower = (
        covariance[:, Parameter.SCALE] / np.sqrt(covariance[:, Parameter.SCALE, Parameter.SCALE])[:, None]
    )
    worse = log_steps(asked, shared + slower[:, :SHARED], alone + slower[:, SHARED:])[:, 0]
    variance = np.maximum(variance, (worse - here) ** 2)
    place = np.log(np.column_stack([batch, gpus, nodes, most]))
    error, left = carried(theory.residuals, group, place)
    return here + error, variance + left + (BY_BATCH_DOUBT * beyond) ** 2, batch
