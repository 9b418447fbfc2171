"""The most progress a second that the jobs of a class have been seen to make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Columns, Floats, Ints
from slurm_fair.throughput import ANY_NODE, JobClass, Samples
from slurm_fair.throughput.groups import pairs
from slurm_fair.throughput.names import places_in
from slurm_fair.throughput.robust import robust_means

_DEVIATIONS = 2.0  # above the mean
_LEAST_DEVIATION = 0.1  # of the logarithm: jobs of a class differ by so much
_OTHER_SIZE = 1.25  # room where only other numbers of GPUs were measured


@dataclass(frozen=True)
class PacedRuns(Columns):
    """One row per run of which a pace is asked."""

    job: Ints  # key
    job_class: Ints  # index into `classes`, -1 = none
    gpu_type: Ints  # index into `gpu_types`, -1 = several
    gpus: Ints
    classes: tuple[JobClass, ...] = ()
    gpu_types: tuple[str, ...] = ()


def best_paces(samples: Samples, runs: PacedRuns) -> Floats:
    """An upper limit of the pace of each run; nan where its class was not measured on that GPU type.

    What other jobs of the class reported counts, and a job's own reports only where there is no other. More GPUs
    give at most so many times the pace, and fewer not more. So the samples of the nearest size bound every size.
    """
    anywhere = samples.take(samples.node == ANY_NODE)
    run, sample = _pairs(anywhere, runs)
    if not len(run):
        return np.full(len(runs), np.nan)
    others = anywhere.job[sample] != runs.job[run]
    kept = others | (np.bincount(run, others, len(runs)) == 0)[run]
    run, sample = run[kept], sample[kept]
    ratio = np.log2(runs.gpus[run] / anywhere.gpus[sample])
    nearest = np.full(len(runs), np.inf)
    np.minimum.at(nearest, run, np.abs(ratio))
    near = np.abs(ratio) <= nearest[run] + 1e-9
    run, sample, ratio = run[near], sample[near], ratio[near]
    batch = np.where(np.isnan(anywhere.batch_size), 1.0, anywhere.batch_size)[sample]
    value = np.log(anywhere.rate[sample] / batch) + np.log(2.0) * np.maximum(ratio, 0.0)
    means = robust_means(run, value, np.ones(len(run)), len(runs))
    room = np.where(nearest > 0, _OTHER_SIZE, 1.0)
    best: Floats = np.exp(means.mean + _DEVIATIONS * np.maximum(means.deviation, _LEAST_DEVIATION)) * room
    return np.where(np.isfinite(nearest), best, np.nan)


def _pairs(samples: Samples, runs: PacedRuns) -> tuple[Ints, Ints]:
    """Each run beside each sample of its class on its GPU type."""
    types = len(samples.gpu_types) + 1
    of_sample = samples.job_class * types + samples.gpu_type
    job_class = places_in(runs.classes, samples.classes)[runs.job_class]
    gpu_type = places_in(runs.gpu_types, samples.gpu_types)[runs.gpu_type]
    of_run = np.where((job_class < 0) | (gpu_type < 0), -1, job_class * types + gpu_type)
    return pairs(of_run, of_sample)
