"""Answers of the theory layer: rates of classes in shapes that were not measured, and the doubt about them."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, Texts, take_or
from slurm_fair.throughput.groups import lookup
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.residuals import carried
from slurm_fair.throughput.shapes import JobShapes, most_on_a_node
from slurm_fair.throughput.theory import SHARED, StepShapes, Theory, log_steps, slopes, usual_batches

OTHER_TYPE_DOUBT = 0.35  # of the ratio of two GPU types for one class
LEAST_DOUBT = 0.03


def speeds_of(links: Links, gpu_types: tuple[str, ...]) -> Floats:
    """The speed of each type against the reference, and 1 for a type that is not known (index -1)."""
    return take_or(links.speed, places_in(gpu_types, links.gpu_types), 1.0)


def groups_of(told: Theory, shapes: JobShapes) -> Ints:
    """The group of the theory that is of the question's class and GPU type, -1 = none."""
    job_class = places_in(shapes.classes, told.classes)[shapes.job_class]
    gpu_type = places_in(shapes.gpu_types, told.gpu_types)[shapes.gpu_type]
    return lookup((told.observed.job_class, told.observed.gpu_type), (job_class, gpu_type))


def best_groups(told: Theory, shapes: JobShapes) -> Ints:
    """The group of the question's class of which the most is known, on whatever GPU type."""
    job_class = places_in(shapes.classes, told.classes)[shapes.job_class]
    best = np.full(len(told.classes) + 1, -1, dtype=np.int64)
    order = np.argsort(told.observed.there.sum(axis=1), kind="stable")
    best[told.observed.job_class[order]] = order
    best[-1] = -1
    return best[job_class]


def theory_answers(
    told: Theory, links: Links, shapes: JobShapes, group: Ints
) -> tuple[Floats, Floats, Floats]:
    """Where a group answers: its rate, the doubt about it, and the observations behind it."""
    rate, doubt, count = np.ones(len(shapes)), np.ones(len(shapes)), np.zeros(len(shapes))
    asked = np.flatnonzero(group >= 0)
    if len(asked):
        of, observed = group[asked], told.observed
        most = most_on_a_node(shapes)
        columns = (column[asked].astype(float) for column in (shapes.gpus, shapes.nodes, most))
        gpus, nodes, on_one = columns
        log_step, variance, batch = _steps(told, of, gpus, nodes, on_one)
        measured = np.array(told.gpu_types, dtype=object)[observed.gpu_type[of]]
        wanted = np.array(shapes.gpu_types, dtype=object)[shapes.gpu_type[asked]]
        faster = _speed_ratio(links, wanted, measured)
        rate[asked] = gpus * batch * np.exp(-log_step) * faster
        doubt[asked] = np.hypot(
            np.sqrt(variance), np.where(wanted == measured, LEAST_DOUBT, OTHER_TYPE_DOUBT)
        )
        count[asked] = observed.there.sum(axis=1)[of]
    return rate, doubt, count


def _speed_ratio(links: Links, wanted: Texts, measured: Texts) -> Floats:
    names, index = np.unique(np.concatenate([wanted, measured]), return_inverse=True)
    speed = speeds_of(links, tuple(names.tolist()))[index]
    ratio: Floats = speed[: len(wanted)] / speed[len(wanted) :]
    return ratio


def _steps(
    told: Theory, group: Ints, gpus: Floats, nodes: Floats, most: Floats
) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the seconds of a step, its variance, and the batch of one GPU that it is of."""
    observed, fits = told.observed, told.fits
    at = usual_batches(observed)[group]
    batch = observed.batches[group, at]
    shared, alone = fits.parameters[group, :SHARED], fits.parameters[group, SHARED + at]
    shapes = StepShapes(
        gpus[:, None], nodes[:, None], most[:, None], observed.shares.take(group), told.ratios[group]
    )
    theory = log_steps(shapes, shared, alone[:, None])[:, 0]
    columns = np.column_stack([np.tile(np.arange(SHARED), (len(group), 1)), SHARED + at])
    covariance = fits.covariance[group[:, None, None], columns[:, :, None], columns[:, None, :]]
    slope = slopes(shapes, shared, alone[:, None])[:, 0, :]
    variance = np.einsum("qp,qpr,qr->q", slope, covariance, slope, optimize=True)
    place = np.log(np.column_stack([batch, gpus, nodes, most]).astype(np.float64))
    error, left = carried(told.residuals, group, place)
    return theory + error, variance + left, batch
