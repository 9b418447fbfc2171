"""Samples with what their age leaves of them, and with the batch size of one GPU, in classes and GPU types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.throughput.ages import weights
from slurm_fair.throughput.groups import groups, lookup
from slurm_fair.throughput.known import Keeping
from slurm_fair.throughput.robust import weighted_medians
from slurm_fair.throughput.samples import ANY_NODE, Samples

_SIZES_PER_DOUBLING = 32  # batch sizes closer to one another than this are one


@dataclass(frozen=True, slots=True)
class AgedSamples:
    """A group is a class on a GPU type. Where nobody said a batch size, a sample is a batch."""

    samples: Samples
    weight: Floats  # [sample]
    size: Ints  # [sample] its batch size on a scale of logarithms
    group: Ints  # [sample]
    job_class: Ints  # [group] index into the samples' classes
    gpu_type: Ints  # [group] index into the samples' GPU types
    usual: Ints  # [group] the size that most samples are near to

    @property
    def anywhere(self) -> Bools:
        """Samples that speak of no node in particular: each report once."""
        anywhere: Bools = self.samples.node == ANY_NODE
        return anywhere


def batch_scale(batch: Floats) -> Ints:
    """Batch sizes on the scale of sizes."""
    size: Ints = np.rint(np.log2(batch) * _SIZES_PER_DOUBLING).astype(np.int64)
    return size


def batches_of(size: Ints | Floats) -> Floats:
    """The batch sizes that these sizes stand for."""
    return np.exp2(size / _SIZES_PER_DOUBLING)


def aged(samples: Samples, now: float, keeping: Keeping) -> AgedSamples:
    """Everything that the layers are worked out of: not samples of nodes whose GPU type has none."""
    of_types = samples.take(samples.node == ANY_NODE)
    first = groups(of_types.job_class, of_types.gpu_type)[1]
    table = (of_types.job_class[first], of_types.gpu_type[first])
    samples = samples.take(lookup(table, (samples.job_class, samples.gpu_type)) >= 0)
    shape = groups(
        samples.job_class, samples.gpu_type, samples.node, samples.gpus, samples.nodes, samples.most
    )[0]
    weight = weights(shape, samples.time, now, keeping)
    group, first = groups(samples.job_class, samples.gpu_type)
    per_gpu = samples.batch_size / np.maximum(samples.gpus, 1)
    said = np.flatnonzero(np.isfinite(per_gpu) & (samples.node == ANY_NODE))
    usual = _usual(group[said], batch_scale(per_gpu[said]), weight[said], len(first))
    size = usual[group]
    known = np.isfinite(per_gpu)
    size[known] = batch_scale(per_gpu[known])
    return AgedSamples(samples, weight, size, group, samples.job_class[first], samples.gpu_type[first], usual)


def _usual(group: Ints, size: Ints, weight: Floats, count: int) -> Ints:
    """The size of each group that is nearest to the middle one; 0 (a batch of one) where none was said."""
    middle = weighted_medians(group, size.astype(np.float64), weight, count)
    order = np.lexsort((size, np.abs(size - middle[group]), group))
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    usual = np.zeros(count, dtype=np.int64)
    usual[group[order[begins]]] = size[order[begins]]
    return usual


def groups_asked(known: AgedSamples, job_class: Ints, gpu_type: Ints) -> Ints:
    """The group of each class and GPU type, -1 = none."""
    return lookup((known.job_class, known.gpu_type), (job_class, gpu_type))
