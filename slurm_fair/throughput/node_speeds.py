"""Servers on which jobs of a class are faster or slower than on others of their GPU type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.model import NodeSpeeds
from slurm_fair.model.columns import Floats
from slurm_fair.throughput.estimator import Estimator
from slurm_fair.throughput.groups import groups, lookup, sums
from slurm_fair.throughput.job_class import JobClass
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.samples import ANY_NODE

LEAST_COUNT = 2.0  # samples on a server, as their age leaves them
CERTAIN = 2.0  # doubts by which a server must differ from its type
MOST_APART = 4.0  # no server is taken to be so many times as fast, or as slow, as its type


def node_speeds(
    asked: Estimator, classes: Sequence[JobClass], node_names: Sequence[str]
) -> NodeSpeeds | None:
    """Differences larger than chance, by these classes and nodes; None where there is none.

    What runs on one server alone tells of it: the layer ENTITY over the layer TYPE in the same shape. Of several
    shapes the mean counts, by their doubts.
    """
    means, known = asked.means, asked.known
    node = places_in(known.samples.node_names, node_names)[means.node]
    job_class = places_in(known.samples.classes, classes)[known.job_class[means.group]]
    alone = (means.nodes == 1) & (means.count >= LEAST_COUNT)
    at = np.flatnonzero((node >= 0) & (job_class >= 0) & alone)
    shape = (means.group, means.node, means.gpus, means.nodes, means.most, means.size)
    group, _, *rest = (column[at] for column in shape)
    anywhere = lookup(shape, (group, np.full(len(at), ANY_NODE), *rest))
    at, anywhere = at[anywhere >= 0], anywhere[anywhere >= 0]
    apart: Floats = means.log_rate[at] - means.log_rate[anywhere]
    weight: Floats = 1.0 / (means.doubt[at] ** 2 + means.doubt[anywhere] ** 2)
    pair, first = groups(job_class[at], node[at])
    certainty = sums(pair, weight, len(first))
    mean = sums(pair, apart * weight, len(first)) / certainty
    differs = np.abs(mean) * np.sqrt(certainty) > CERTAIN
    if not differs.any():
        return None
    row, limit = at[first[differs]], np.log(MOST_APART)
    return NodeSpeeds(job_class[row], node[row], np.exp(np.clip(mean[differs], -limit, limit)))
