"""The estimator: looks a speed up from the top layer down, as Hops does (3.5), and says which layer answered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Codes, Ints, take_or
from slurm_fair.throughput.aged import AgedSamples, aged, groups_asked
from slurm_fair.throughput.by_theory import best_groups, theory_answers, type_speeds
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.links import Links
from slurm_fair.throughput.measured import MeasuredMeans, measured_means, rows_of
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.shapes import JobShapes, Predictions, SpeedLayer
from slurm_fair.throughput.theory import Theory, theory

LINEAR_DOUBT = 0.5  # of a class that was never measured
MOST_DOUBT = 2.0


@dataclass(frozen=True, slots=True)
class Estimator:
    """All layers worked out at one instant. Make one when something was learned, and ask it often."""

    known: AgedSamples
    links: Links
    means: MeasuredMeans  # the layers ENTITY and TYPE
    theory: Theory


def estimator(known: Known, links: Links, now: float, keeping: Keeping) -> Estimator:
    """The means and the theory of what is known, with the ages that samples have now."""
    samples = aged(known.samples, now, keeping)
    return Estimator(samples, links, measured_means(samples), theory(samples, links))


def predicted(asked: Estimator, shapes: JobShapes) -> Predictions:
    """The rate of each class in each shape: measured there, else from the theory, else GPUs are counted."""
    answer = _counted(asked.links, shapes)
    own, job_class = _groups_of(asked.known, shapes)
    other = np.where(own < 0, best_groups(asked.known, asked.theory, job_class), -1)
    for group, layer in ((other, SpeedLayer.OTHER_TYPE), (own, SpeedLayer.THEORY)):
        rate, doubt, count = theory_answers(asked.known, asked.theory, asked.links, shapes, group)
        answer = _answered(answer, group >= 0, Predictions(rate, doubt, _all(layer, shapes), count))
    for layer in (SpeedLayer.TYPE, SpeedLayer.ENTITY):
        row = rows_of(asked.known, asked.means, shapes, own, any_node=layer == SpeedLayer.TYPE)
        rate = np.exp(take_or(asked.means.log_rate, row, 0.0))
        doubt, count = (take_or(column, row, 0.0) for column in (asked.means.doubt, asked.means.count))
        answer = _answered(answer, row >= 0, Predictions(rate, doubt, _all(layer, shapes), count))
    return answer


def _groups_of(known: AgedSamples, shapes: JobShapes) -> tuple[Ints, Ints]:
    """The group of each question's class and GPU type, and its class; -1 = none."""
    samples = known.samples
    job_class = places_in(shapes.classes, samples.classes)[shapes.job_class]
    gpu_type = places_in(shapes.gpu_types, samples.gpu_types)[shapes.gpu_type]
    return groups_asked(known, job_class, gpu_type), job_class


def _all(layer: SpeedLayer, shapes: JobShapes) -> Codes:
    return np.full(len(shapes), layer, dtype=np.int8)


def _answered(before: Predictions, there: Bools, answer: Predictions) -> Predictions:
    """The answers of a layer in the place of those of the layers below it."""
    return Predictions(
        np.where(there, answer.rate, before.rate),
        np.where(there, np.minimum(answer.doubt, MOST_DOUBT), before.doubt),
        np.where(there, answer.layer, before.layer),
        np.where(there, answer.count, before.count),
    )


def _counted(links: Links, shapes: JobShapes) -> Predictions:
    """Linear scaling: a GPU of the reference type does one sample a second."""
    rate = shapes.gpus * type_speeds(links, shapes.gpu_types)[shapes.gpu_type]
    doubt = np.full(len(shapes), LINEAR_DOUBT)
    return Predictions(rate, doubt, _all(SpeedLayer.NOTHING, shapes), np.zeros(len(shapes)))
