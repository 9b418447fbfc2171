"""Learning from samples: a fold that keeps the newest, so that the order in which they come does not matter."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, ranks_within
from slurm_fair.model.reported import PHASES
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.throughput.groups import groups
from slurm_fair.throughput.known import Keeping, Known
from slurm_fair.throughput.names import as_one, in_order, tidied
from slurm_fair.throughput.samples import ANY_NODE, Ends, Samples

_MOST_RATE, _MOST_SECONDS = 1e15, 1e6
_SHAPE = ("job_class", "node", "gpu_type", "gpus", "nodes", "most")
Table = TypeVar("Table", Samples, Ends)


def learned(known: Known, samples: Samples, now: float, keeping: Keeping) -> Known:
    """Fold some more samples in. A row that cannot be believed costs that row.

    Of each class the newest samples in each shape stay, taken in turns from its jobs: one that reports often does
    not push out the others. What stays is the same in whatever order samples come and however they are cut
    into calls, as long as no tenant has more classes and shapes than are kept.
    """
    if not len(samples):
        return known
    new = _both_layers(samples.take(_believable(samples, now)))
    kept = as_one(known.samples, new)
    kept = kept.take(kept.time >= now - keeping.forget_days * DAY_SECONDS)
    names = {*new.classes}
    touched = np.array([name in names for name in kept.classes], dtype=bool)[kept.job_class]
    changed = in_order(kept.take(touched))
    for keep in (_newest_of_shapes, _newest_shapes):
        changed = changed.take(keep(changed, keeping))
    kept = kept.take(~touched).joined(changed) if len(changed) < len(kept) else changed
    return Known(tidied(kept.take(_newest_classes(kept, keeping))), known.ends)


def learned_ends(known: Known, ends: Ends, now: float, keeping: Keeping) -> Known:
    """Fold some more ended jobs in; the newest of each class stay."""
    if not len(ends):
        return known
    good = np.isfinite(ends.seconds) & (ends.seconds > 0) & (ends.gpus > 0) & (ends.time <= now)
    good &= _within(ends.job_class, len(ends.classes)) & (ends.gpu_type < len(ends.gpu_types))
    kept = in_order(as_one(known.ends, ends.take(good)))
    kept = kept.take(kept.time >= now - keeping.forget_days * DAY_SECONDS)
    kept = kept.take(_nth_newest(kept.job_class, kept.job, kept.time, kept.seconds) == 0)  # a job ends once
    place = _nth_newest(kept.job_class, np.zeros(len(kept), dtype=np.int64), kept.time, kept.seconds)
    kept = kept.take(place < keeping.samples)
    return Known(known.samples, tidied(kept.take(_newest_classes(kept, keeping))))


def _believable(samples: Samples, now: float) -> Bools:
    """Rows whose numbers can be: in range, and not from the future."""
    most = _most(samples)
    return (
        (samples.rate > 0)
        & (samples.rate < _MOST_RATE)
        & (samples.time <= now)
        & (samples.nodes >= 1)
        & (samples.gpus >= samples.nodes)
        & (most * samples.nodes >= samples.gpus)
        & (most <= samples.gpus - samples.nodes + 1)
        & _within(samples.job_class, len(samples.classes))
        & _within(samples.gpu_type, len(samples.gpu_types))
        & (samples.node >= ANY_NODE)
        & (samples.node < len(samples.node_names))
    )


def _within(index: Ints, count: int) -> Bools:
    return (index >= 0) & (index < count)


def _most(samples: Samples) -> Ints:
    return np.where(samples.most > 0, samples.most, -(-samples.gpus // np.maximum(samples.nodes, 1)))


def _both_layers(samples: Samples) -> Samples:
    """The same rows of no node in particular, each report once, and then those of nodes.

    A run over several GPU types goes at the pace of the slowest: it tells nothing of either.
    """
    phases = {name: _seconds(getattr(samples, name)) for name in PHASES}
    batch = np.where(samples.batch_size > 0, samples.batch_size, np.nan)
    clean = samples.with_columns(most=_most(samples), batch_size=batch, **phases)
    report, first = groups(clean.job, clean.time)
    least, largest = np.full(len(first), len(clean.gpu_types)), np.full(len(first), -1)
    np.minimum.at(least, report, clean.gpu_type)
    np.maximum.at(largest, report, clean.gpu_type)
    pure = (least == largest)[report]
    anywhere = clean.with_columns(node=np.full(len(clean), ANY_NODE)).take(pure)
    return anywhere.joined(clean.take(pure & (clean.node != ANY_NODE)))


def _seconds(given: Floats) -> Floats:
    return np.where((given >= 0) & (given < _MOST_SECONDS), given, np.nan)


def _nth_newest(group: Ints, job: Ints, time: Floats, value: Floats) -> Ints:
    """The place of each row among those of its group and job, the newest first."""
    order = np.lexsort((-value, -time, job, group))
    return ranks_within(groups(group, job)[0], order)


def _newest_of_shapes(samples: Samples, keeping: Keeping) -> Bools:
    """The newest of each job, then the second newest of each, as many as are kept; a report counts once."""
    shape = groups(*(getattr(samples, name) for name in _SHAPE))[0]
    order = np.lexsort((-samples.rate, -samples.time, samples.job, shape))
    again = np.zeros(len(order), dtype=bool)
    again[order[1:]] = (
        (np.diff(shape[order]) == 0)
        & (np.diff(samples.job[order]) == 0)
        & (np.diff(samples.time[order]) == 0)
    )
    once = np.flatnonzero(~again)
    few = samples.take(once)
    of_job = _nth_newest(shape[once], few.job, few.time, few.rate)
    place = ranks_within(shape[once], np.lexsort((few.job, -few.time, of_job, shape[once])))
    most = np.where(few.node == ANY_NODE, keeping.samples, keeping.node_samples)
    kept = np.zeros(len(samples), dtype=bool)
    kept[once[place < most]] = True
    return kept


def _newest_shapes(samples: Samples, keeping: Keeping) -> Bools:
    """The samples of the shapes that were measured last, so many of each class and layer."""
    shape = groups(*(getattr(samples, name) for name in _SHAPE))[0]
    layer = groups(samples.job_class, (samples.node == ANY_NODE).astype(np.int64))[0]
    most = np.where(samples.node == ANY_NODE, keeping.shapes, keeping.node_shapes)
    return _rank_of_newest(layer, shape, samples.time) < most


def _newest_classes(table: Table, keeping: Keeping) -> Bools:
    """The rows of the classes that were seen last, so many of each tenant."""
    numbers = {name: number for number, name in enumerate(sorted({c.tenant for c in table.classes}))}
    tenant = np.array([numbers[c.tenant] for c in table.classes], dtype=np.int64)
    return _rank_of_newest(tenant[table.job_class], table.job_class, table.time) < keeping.classes


def _rank_of_newest(group: Ints, part: Ints, time: Floats) -> Ints:
    """The place of each row's part among the parts of its group, the one with the newest row first."""
    newest, of = np.full(part.max(initial=-1) + 1, -np.inf), np.full(part.max(initial=-1) + 1, -1)
    np.maximum.at(newest, part, time)
    of[part] = group
    rank: Ints = ranks_within(of, np.lexsort((-newest, of)))[part]
    return rank
