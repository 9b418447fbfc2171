"""The two measured layers: robust means of what classes of jobs did in a shape, on a node or on a GPU type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, absent, take_or
from slurm_fair.throughput.ages import weights
from slurm_fair.throughput.groups import groups, lookup
from slurm_fair.throughput.known import Keeping
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.robust import robust_means
from slurm_fair.throughput.samples import ANY_NODE, Samples
from slurm_fair.throughput.shapes import JobShapes, most_on_a_node

CELL = ("job_class", "gpu_type", "node", "gpus", "nodes", "most")
FIRST_GUESS = 0.03  # spread of one sample about its shape's mean, while few tell it
GUESS_COUNTS = 2.0  # samples that the guess is worth
LEAST_DOUBT = 0.03  # of any mean: another run of the same job differs by as much
LEAST_COUNT = 0.25  # samples, as their age leaves them: what is worth less is not looked up


@dataclass(frozen=True, slots=True)
class MeasuredMeans:
    """One row per class, GPU type, node (-1 = any) and shape, in the order of these."""

    cell: tuple[Ints, ...]  # a column for each name of CELL
    log_rate: Floats  # mean of log(samples a second)
    doubt: Floats  # of that mean
    spread: Floats  # of one sample
    count: Floats  # samples, each as much as its age leaves of it


def measured_means(samples: Samples, now: float, keeping: Keeping) -> MeasuredMeans:
    """Means of the logarithm: a report of ten times the truth is as odd as one of a tenth."""
    columns = tuple(getattr(samples, name) for name in CELL)
    cell, first = groups(*columns)
    count = len(first)
    weight = weights(cell, samples.time, now, keeping)
    means = robust_means(cell, np.log(samples.rate), weight, count)
    spread = np.sqrt(
        (GUESS_COUNTS * FIRST_GUESS**2 + means.weight * means.spread**2) / (GUESS_COUNTS + means.weight)
    )
    doubt = np.hypot(spread / np.sqrt(np.maximum(means.weight, 1e-9)), LEAST_DOUBT)
    return MeasuredMeans(
        tuple(column[first] for column in columns), means.mean, doubt, means.spread, means.weight
    )


def rows_of(samples: Samples, shapes: JobShapes, means: MeasuredMeans, any_node: bool) -> Ints:
    """The row of the means that answers each question, -1 = none; on this very node, or on any of its type."""
    job_class = places_in(shapes.classes, samples.classes)[shapes.job_class]
    gpu_type = places_in(shapes.gpu_types, samples.gpu_types)[shapes.gpu_type]
    node = places_in(shapes.node_names, samples.node_names)[shapes.node]
    asked: Bools = (job_class >= 0) & (gpu_type >= 0)
    if any_node:
        node = np.full(len(shapes), ANY_NODE)
    else:
        asked = asked & (node >= 0)
    found = absent(len(shapes))
    wanted = (job_class, gpu_type, node, shapes.gpus, shapes.nodes, most_on_a_node(shapes))
    found[asked] = lookup(means.cell, tuple(column[asked] for column in wanted))
    found[take_or(means.count, found, 0.0) < LEAST_COUNT] = -1
    return found
