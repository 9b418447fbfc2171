"""The estimator: looks a speed up from the top layer down, as Hops does (3.5), and says which layer answered."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, take_or
from slurm_fair.throughput.groups import lookup
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.measured import measured_means, rows_of
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.residuals import carried
from slurm_fair.throughput.shapes import JobShapes, Predictions, SpeedLayer, most_on_a_node
from slurm_fair.throughput.theory import SHARED, StepShapes, Theory, log_steps, slopes, usual_batches

LINEAR_DOUBT = 0.5  # of a class that was never measured
OTHER_TYPE_DOUBT = 0.35  # of the ratio of two GPU types for one class
LEAST_DOUBT, MOST_DOUBT = 0.03, 2.0


def predicted(
    known: Known, told: Theory, links: Links, shapes: JobShapes, now: float, keeping: Keeping
) -> Predictions:
    """The rate of each class in each shape: measured there, else from the theory, else GPUs are counted."""
    answer = _counted(links, shapes)
    own = _groups_of(told, shapes)
    other = np.where(own < 0, _groups_of_class(told, shapes), -1)
    answer = _answered(answer, *_by_theory(told, links, shapes, other), SpeedLayer.OTHER_TYPE)
    answer = _answered(answer, *_by_theory(told, links, shapes, own), SpeedLayer.THEORY)
    means = measured_means(known.samples, now, keeping)
    for layer in (SpeedLayer.TYPE, SpeedLayer.ENTITY):
        row = rows_of(known.samples, shapes, means, any_node=layer == SpeedLayer.TYPE)
        rate = np.exp(take_or(means.log_rate, row, 0.0))
        doubt, count = take_or(means.doubt, row, 0.0), take_or(means.count, row, 0.0)
        answer = _answered(answer, row >= 0, rate, doubt, count, layer)
    return answer


def _answered(
    before: Predictions, there: Bools, rate: Floats, doubt: Floats, count: Floats, layer: SpeedLayer
) -> Predictions:
    """The answers of a layer in the place of those of the layers below it."""
    return Predictions(
        np.where(there, rate, before.rate), np.where(there, np.minimum(doubt, MOST_DOUBT), before.doubt),
        np.where(there, np.int8(layer), before.layer).astype(np.int8), np.where(there, count, before.count),
    )  # fmt: skip


def _counted(links: Links, shapes: JobShapes) -> Predictions:
    """Linear scaling: a GPU of the reference type does one sample a second."""
    rows = len(shapes)
    return Predictions(
        shapes.gpus * _speeds(links, shapes.gpu_types)[shapes.gpu_type], np.full(rows, LINEAR_DOUBT),
        np.full(rows, SpeedLayer.NOTHING, dtype=np.int8), np.zeros(rows),
    )  # fmt: skip


def _speeds(links: Links, gpu_types: tuple[str, ...]) -> Floats:
    """The speed of each type against the reference, and 1 for a type that is not known (index -1)."""
    return take_or(links.speed, places_in(gpu_types, links.gpu_types), 1.0)


def _groups_of(told: Theory, shapes: JobShapes) -> Ints:
    """The group of the theory that is of the question's class and GPU type, -1 = none."""
    job_class = places_in(shapes.classes, told.classes)[shapes.job_class]
    gpu_type = places_in(shapes.gpu_types, told.gpu_types)[shapes.gpu_type]
    return lookup((told.observed.job_class, told.observed.gpu_type), (job_class, gpu_type))


def _groups_of_class(told: Theory, shapes: JobShapes) -> Ints:
    """The group of the question's class of which the most is known, on whatever GPU type."""
    job_class = places_in(shapes.classes, told.classes)[shapes.job_class]
    best = np.full(len(told.classes) + 1, -1, dtype=np.int64)
    order = np.argsort(told.observed.there.sum(axis=1), kind="stable")
    best[told.observed.job_class[order]] = order
    best[-1] = -1
    return best[job_class]


def _by_theory(
    told: Theory, links: Links, shapes: JobShapes, group: Ints
) -> tuple[Bools, Floats, Floats, Floats]:
    """Where a group answers, its rate, the doubt about it, and the observations behind it."""
    rate, doubt, count = np.ones(len(shapes)), np.ones(len(shapes)), np.zeros(len(shapes))
    asked = np.flatnonzero(group >= 0)
    if len(asked):
        of, observed = group[asked], told.observed
        most = most_on_a_node(shapes)
        columns = (column[asked].astype(float) for column in (shapes.gpus, shapes.nodes, most))
        gpus, nodes, on_one = columns
        log_step, variance, batch = _steps(told, of, gpus, nodes, on_one)
        measured = np.array(told.gpu_types)[observed.gpu_type[of]]
        wanted = np.array(shapes.gpu_types)[shapes.gpu_type[asked]]
        faster = _speed_ratio(links, wanted, measured)
        rate[asked] = gpus * batch * np.exp(-log_step) * faster
        doubt[asked] = np.hypot(
            np.sqrt(variance), np.where(wanted == measured, LEAST_DOUBT, OTHER_TYPE_DOUBT)
        )
        count[asked] = observed.there.sum(axis=1)[of]
    return group >= 0, rate, doubt, count


def _speed_ratio(links: Links, wanted: np.ndarray, measured: np.ndarray) -> Floats:
    names, index = np.unique(np.concatenate([wanted, measured]), return_inverse=True)
    speed = _speeds(links, tuple(names.tolist()))[index]
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
    place = np.log(np.column_stack([batch, gpus, nodes, most]))
    error, left = carried(told.residuals, group, place)
    return theory + error, variance + left, batch
