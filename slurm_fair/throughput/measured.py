"""The two measured layers: robust means of what classes of jobs did in a shape, on a node or on a GPU type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, absent, take_or
from slurm_fair.throughput.aged import AgedSamples, batch_scale
from slurm_fair.throughput.groups import groups, lookup
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.robust import robust_means
from slurm_fair.throughput.samples import ANY_NODE
from slurm_fair.throughput.shapes import JobShapes, most_on_a_node

FIRST_GUESS = 0.03  # spread of one sample about its shape's mean, while few tell it
GUESS_COUNTS = 2.0  # samples that the guess is worth
LEAST_DOUBT = 0.03  # of any mean: another run of the same job differs by as much
LEAST_COUNT = 0.25  # samples, as their age leaves them: what is worth less is not looked up


@dataclass(frozen=True, slots=True)
class MeasuredMeans:
    """One row per group of samples, node (-1 = any), shape and batch size, in the order of these."""

    group: Ints
    node: Ints
    gpus: Ints
    nodes: Ints
    most: Ints
    size: Ints
    log_rate: Floats  # mean of log(samples a second)
    doubt: Floats  # of that mean
    deviation: Floats  # of one sample
    count: Floats  # samples, each as much as its age leaves of it


def measured_means(known: AgedSamples) -> MeasuredMeans:
    """Means of the logarithm: a report of ten times the truth is as odd as one of a tenth."""
    samples = known.samples
    columns = (known.group, samples.node, samples.gpus, samples.nodes, samples.most, known.size)
    cell, first = groups(*columns)
    means = robust_means(cell, np.log(samples.rate), known.weight, len(first))
    deviation = np.sqrt(
        (GUESS_COUNTS * FIRST_GUESS**2 + means.weight * means.deviation**2) / (GUESS_COUNTS + means.weight)
    )
    doubt = np.hypot(deviation / np.sqrt(np.maximum(means.weight, 1e-9)), LEAST_DOUBT)
    group, node, gpus, nodes, most, size = (column[first] for column in columns)
    return MeasuredMeans(group, node, gpus, nodes, most, size, means.mean, doubt, deviation, means.weight)


def rows_of(known: AgedSamples, means: MeasuredMeans, shapes: JobShapes, group: Ints, any_node: bool) -> Ints:
    """The row of the means that answers each question, -1 = none; on this very node, or on any of its type."""
    node = places_in(shapes.node_names, known.samples.node_names)[shapes.node]
    asked: Bools = group >= 0
    if any_node:
        node = np.full(len(shapes), ANY_NODE)
    else:
        asked = asked & (node >= 0)
    size = take_or(known.usual, group, 0)
    said = np.isfinite(shapes.batch)
    size[said] = batch_scale(shapes.batch[said])
    wanted = (group, node, shapes.gpus, shapes.nodes, most_on_a_node(shapes), size)
    table = (means.group, means.node, means.gpus, means.nodes, means.most, means.size)
    found = absent(len(shapes))
    found[asked] = lookup(table, tuple(column[asked] for column in wanted))
    found[take_or(means.count, found, 0.0) < LEAST_COUNT] = -1
    return found
