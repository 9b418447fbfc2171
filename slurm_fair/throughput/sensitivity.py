"""Placement: what a job loses on several nodes, and what a run over mixed GPUs gets (Hops 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.throughput.estimator import Estimator, predicted
from slurm_fair.throughput.job_class import JobClass
from slurm_fair.throughput.samples import ANY_NODE
from slurm_fair.throughput.shapes import JobShapes

SENSITIVE = 1.4  # the paper's threshold


def sensitivities(asked: Estimator, classes: Sequence[JobClass], gpu_types: Sequence[str]) -> Floats:
    """Eq. 10: [class, GPU type] rate per GPU on one GPU {0: 1}, over that on two nodes {0: 1, 1: 1}."""
    job_class, gpu_type = np.indices((len(classes), len(gpu_types))).reshape(2, -1)
    count = len(job_class)
    one, usual = np.ones(count, dtype=np.int64), np.full(2 * count, np.nan)
    gpus, any_node = np.concatenate([one, 2 * one]), np.full(2 * count, ANY_NODE)
    both = (np.tile(job_class, 2), np.tile(gpu_type, 2))
    names = (tuple(classes), tuple(gpu_types))
    shapes = JobShapes(*both, gpus, gpus, np.tile(one, 2), usual, any_node, *names)
    rate = predicted(asked, shapes).rate
    ratio: Floats = (rate[:count] / (rate[count:] / 2)).reshape(len(classes), len(gpu_types))
    return ratio


def is_sensitive(sensitivity: Floats, threshold: float = SENSITIVE) -> Bools:
    """True for jobs that lose too much on several nodes to fill fragments with."""
    above: Bools = sensitivity > threshold
    return above


def mixed_rates(run: Ints, per_gpu: Floats, gpus: Ints, runs: int) -> Floats:
    """Rates of runs over parts that differ: the slowest GPU's rate times all GPUs (Hops 3.5); one row per part."""
    slowest = np.full(runs, np.inf)
    np.minimum.at(slowest, run, per_gpu)
    rates: Floats = slowest * np.bincount(run, gpus, runs)
    return rates
