"""Times of a step that the theory is fitted to, by class, GPU type, shape and batch size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.throughput.ages import weights
from slurm_fair.throughput.groups import groups, sums
from slurm_fair.throughput.known import Keeping
from slurm_fair.throughput.measured import FIRST_GUESS
from slurm_fair.throughput.phases import Shares, shares_of
from slurm_fair.throughput.robust import robust_means, weighted_medians
from slurm_fair.throughput.samples import ANY_NODE, Samples
from slurm_fair.throughput.timing import step_seconds

MOST_OBSERVATIONS, MOST_BATCHES = 64, 24  # of a class and GPU type: those with the most and newest samples
_BATCHES_PER_DOUBLING = 32  # sizes closer to one another than this are one
FROM_PHASES = 0.1  # doubt about the time of one GPU that phases say


@dataclass(frozen=True, slots=True)
class Observations:
    """Arrays [class and GPU type, observation]; entries that are not there have doubt inf.

    A batch size is that of one GPU. Where nobody said any, a sample is a batch.
    """

    job_class: Ints  # [group] index into the samples' classes
    gpu_type: Ints  # [group] index into the samples' GPU types
    usual_batch: Floats  # [group]
    batches: Floats  # [group, batch] ascending, nan = none
    shares: Shares  # [group]
    gpus: Floats
    nodes: Floats
    most: Floats
    batch: Ints  # index into `batches`
    log_step: Floats  # log(seconds a step)
    doubt: Floats

    @property
    def there(self) -> Bools:
        """Entries that say something."""
        return np.isfinite(self.doubt)


def observations(samples: Samples, now: float, keeping: Keeping) -> Observations:
    """Robust means over the samples that speak of no node in particular."""
    rows = samples.take(samples.node == ANY_NODE)
    group, first = groups(rows.job_class, rows.gpu_type)
    shape = groups(group, rows.gpus, rows.nodes, rows.most)[0]
    weight = weights(shape, rows.time, now, keeping)
    count = len(first)
    per_gpu = rows.batch_size / rows.gpus
    said = np.isfinite(per_gpu)
    usual = np.nan_to_num(weighted_medians(group[said], per_gpu[said], weight[said], count), nan=1.0)
    batch = np.where(said, per_gpu, usual[group])
    size = np.rint(np.log2(batch) * _BATCHES_PER_DOUBLING).astype(np.int64)
    shares = shares_of(rows, group, weight, count)
    cell, of_cell = groups(group, size, rows.gpus, rows.nodes, rows.most)
    step = np.exp2(size / _BATCHES_PER_DOUBLING) * rows.gpus / rows.rate
    means = robust_means(cell, np.log(step), weight, len(of_cell))
    doubt = np.hypot(means.spread, FIRST_GUESS) / np.sqrt(np.maximum(means.weight, 1e-9))
    flat = _Flat(
        group[of_cell],
        size[of_cell],
        rows.gpus[of_cell],
        rows.nodes[of_cell],
        rows.most[of_cell],
        means.mean,
        doubt,
    )
    return _padded(rows, first, usual, shares, flat.few(means.weight).with_phases(shares, usual))


@dataclass(frozen=True, slots=True)
class _Flat:
    """One entry per observation."""

    group: Ints
    size: Ints  # of a batch, on a scale of logarithms
    gpus: Ints
    nodes: Ints
    most: Ints
    log_step: Floats
    doubt: Floats

    def few(self, weight: Floats) -> _Flat:
        """Of each group the batch sizes, and then the observations, with the most weight."""
        batch, first = groups(self.group, self.size)
        rank = _ranks(self.group[first], sums(batch, weight, len(first)))
        kept = np.flatnonzero(rank[batch] < MOST_BATCHES)
        return self._take(kept[_ranks(self.group[kept], weight[kept]) < MOST_OBSERVATIONS])

    def with_phases(self, shares: Shares, usual: Floats) -> _Flat:
        """Phases say what one GPU would do alone: an observation more, where they are told."""
        told = np.flatnonzero(np.isfinite(shares.computing))
        of_told = shares.take(told)
        nothing = np.zeros(len(told))
        alone = step_seconds(of_told.parts(of_told.computing, of_told.backward), nothing, nothing)
        one = np.ones(len(told), dtype=np.int64)
        size = np.rint(np.log2(usual[told]) * _BATCHES_PER_DOUBLING).astype(np.int64)
        new = (told, size, one, one, one, np.log(alone), np.full(len(told), FROM_PHASES))
        return _Flat(
            *(
                np.concatenate([getattr(self, name), part])
                for name, part in zip(self.__slots__, new, strict=True)
            )
        )

    def _take(self, rows: Ints) -> _Flat:
        return _Flat(*(getattr(self, name)[rows] for name in self.__slots__))


def _ranks(group: Ints, weight: Floats) -> Ints:
    """The place of each row in its group, the heaviest first."""
    order = np.lexsort((-weight, group))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order], side="left")
    return rank


def _padded(rows: Samples, first: Ints, usual: Floats, shares: Shares, flat: _Flat) -> Observations:
    count = len(first)
    batch, of_batch = groups(flat.group, flat.size)
    place = _ranks(flat.group[of_batch], -flat.size[of_batch].astype(float))
    batches = np.full((count, place.max(initial=0) + 1), np.nan)
    batches[flat.group[of_batch], place] = np.exp2(flat.size[of_batch] / _BATCHES_PER_DOUBLING)
    column = _ranks(flat.group, np.zeros(len(flat.group)))
    at, shape = (flat.group, column), (count, column.max(initial=0) + 1)

    def laid(values: Floats | Ints, empty: float) -> Floats:
        table = np.full(shape, empty)
        table[at] = values
        return table

    return Observations(
        rows.job_class[first], rows.gpu_type[first], usual, batches, shares,
        laid(flat.gpus, 1.0), laid(flat.nodes, 1.0), laid(flat.most, 1.0),
        laid(place[batch], 0.0).astype(np.int64), laid(flat.log_step, 0.0), laid(flat.doubt, np.inf),
    )  # fmt: skip
