"""Times of a step that the theory is fitted to, by class, GPU type, shape and batch size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, ranks_within
from slurm_fair.throughput.aged import AgedSamples, batches_of
from slurm_fair.throughput.groups import groups, sums
from slurm_fair.throughput.measured import FIRST_GUESS
from slurm_fair.throughput.phases import StepShares, shares_of
from slurm_fair.throughput.robust import robust_means
from slurm_fair.throughput.timing import step_seconds

MOST_OBSERVATIONS, MOST_BATCHES = 64, 24  # of a class and GPU type: those with the most and newest samples
FROM_PHASES = 0.1  # doubt about the time of one GPU that phases say


@dataclass(frozen=True, slots=True)
class Observations:
    """Arrays [group, observation]; one that is not there has doubt inf. A batch is that of one GPU."""

    usual: Ints  # [group] index into `batches`
    batches: Floats  # [group, batch] ascending, nan = none
    shares: StepShares  # [group]
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


def observations(known: AgedSamples) -> Observations:
    """Robust means over the samples that speak of no node in particular."""
    chosen = np.flatnonzero(known.anywhere)
    rows, group, size = known.samples.take(chosen), known.group[chosen], known.size[chosen]
    weight, count = known.weight[chosen], len(known.usual)
    shares = shares_of(rows, group, weight, count)
    cell, first = groups(group, size, rows.gpus, rows.nodes, rows.most)
    step = np.log(batches_of(size) * rows.gpus / rows.rate)
    means = robust_means(cell, step, weight, len(first))
    doubt = np.hypot(means.deviation, FIRST_GUESS) / np.sqrt(np.maximum(means.weight, 1e-9))
    flat = _Flat(
        group[first], size[first], rows.gpus[first], rows.nodes[first], rows.most[first], means.mean, doubt
    )
    return _padded(known, shares, flat.few(means.weight).with_phases(shares, known.usual))


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
        """The batch sizes of each group with the most weight, with some observations of each scale in turns.

        One GPU, about two, about four ... on one node and on several are scales.
        """
        batch, first = groups(self.group, self.size)
        rank = _ranks(self.group[first], sums(batch, weight, len(first)))
        kept = np.flatnonzero(rank[batch] < MOST_BATCHES)
        doubling = np.rint(np.log2(self.gpus[kept])).astype(np.int64)
        scale = groups(self.group[kept], doubling, (self.nodes[kept] > 1).astype(np.int64))[0]
        of_scale = _ranks(scale, weight[kept])
        return self._take(kept[_ranks(self.group[kept], -of_scale.astype(np.float64)) < MOST_OBSERVATIONS])

    def with_phases(self, shares: StepShares, usual: Ints) -> _Flat:
        """Phases say what one GPU would do alone: an observation more, where they are told."""
        rows = np.flatnonzero(np.isfinite(shares.computing))
        reported = shares.take(rows)
        nothing = np.zeros(len(rows))
        alone = step_seconds(reported.parts(reported.computing, reported.backward), nothing, nothing)
        one = np.ones(len(rows), dtype=np.int64)
        doubt = np.full(len(rows), FROM_PHASES)
        return self._with((rows, usual[rows], one, one, one, np.log(alone), doubt))

    def _with(self, more: tuple[Ints | Floats, ...]) -> _Flat:
        mine = (self.group, self.size, self.gpus, self.nodes, self.most, self.log_step, self.doubt)
        group, size, gpus, nodes, most, log_step, doubt = (
            np.concatenate(pair) for pair in zip(mine, more, strict=True)
        )
        return _Flat(group, size, gpus, nodes, most, log_step, doubt)

    def _take(self, rows: Ints) -> _Flat:
        return _Flat(
            self.group[rows],
            self.size[rows],
            self.gpus[rows],
            self.nodes[rows],
            self.most[rows],
            self.log_step[rows],
            self.doubt[rows],
        )


def _ranks(group: Ints, weight: Floats) -> Ints:
    """The place of each row in its group, the heaviest first."""
    return ranks_within(group, np.lexsort((-weight, group)))


def _padded(known: AgedSamples, shares: StepShares, flat: _Flat) -> Observations:
    count = len(known.usual)
    batch, of_batch = groups(flat.group, flat.size)
    place = _ranks(flat.group[of_batch], -flat.size[of_batch].astype(np.float64))
    sizes = np.full((count, place.max(initial=0) + 1), np.nan)
    sizes[flat.group[of_batch], place] = flat.size[of_batch]
    off = np.abs(sizes - known.usual[:, None])
    column = _ranks(flat.group, np.zeros(len(flat.group)))
    at, shape = (flat.group, column), (count, column.max(initial=0) + 1)

    def laid(values: Floats | Ints, empty: float) -> Floats:
        table = np.full(shape, empty)
        table[at] = values
        return table

    return Observations(
        np.argmin(np.where(np.isnan(off), np.inf, off), axis=1),
        batches_of(sizes),
        shares,
        laid(flat.gpus, 1.0),
        laid(flat.nodes, 1.0),
        laid(flat.most, 1.0),
        laid(place[batch], 0.0).astype(np.int64),
        laid(flat.log_step, 0.0),
        laid(flat.doubt, np.inf),
    )
