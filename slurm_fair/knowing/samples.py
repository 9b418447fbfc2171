"""Samples of speeds out of the reports of running jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.model import Beliefs, Reported, Snapshot
from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.throughput import JobClass, Samples
from slurm_fair.throughput.names import places_in

SAMPLE_SECONDS = 60.0  # between two samples of one run


def due_for_a_sample(beliefs: Beliefs, at: Ints, reported: Reported) -> Ints:
    """The reports of which a sample is taken; `at` is the row of the belief in each."""
    since = reported.read - beliefs.sampled[at]
    due: Ints = np.flatnonzero((since >= SAMPLE_SECONDS) | (since < 0))  # the clock may have been set back
    return due


def measured_rates(beliefs: Beliefs, at: Ints, reported: Reported) -> tuple[Floats, Floats]:
    """Samples a second and the samples of a step of each report, as far as they are known.

    A job that names no batch size, or counts epochs, has the pace of its steps or epochs: what it says of samples
    a second would not compare with its progress.
    """
    pace, by_epoch = beliefs.pace[at], beliefs.counts_epochs[at]
    batch = np.where(by_epoch, np.nan, reported.batch_size)
    counted = pace * np.where(np.isnan(batch), 1.0, batch)
    stated = reported.samples_per_second
    compares = ~np.isnan(batch) | np.isnan(beliefs.done[at])
    return np.where(compares & ~by_epoch & ~np.isnan(stated), stated, counted), batch


def samples_of(
    snapshot: Snapshot, reported: Reported, rates: tuple[Floats, Floats], classes: Sequence[JobClass]
) -> Samples:
    """A row for each node of the run behind each of these reports; `classes` are theirs."""
    rate, batch = rates
    held = snapshot.held
    of = find(reported.row, held.row)
    there = (of >= 0) & (np.append(rate, 0.0)[of] > 0)
    of, node, gpus = of[there], held.node[there], held.gpus[there]
    count = len(reported)
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, of, gpus)
    names = tuple(dict.fromkeys(classes))
    job_class = places_in(classes, names)[:-1]
    phases = {name: getattr(reported, name)[of] for name in ("data", "forward", "backward", "update", "sync")}
    return Samples(
        job_class=job_class[of],
        gpu_type=snapshot.nodes.gpu_type[node],
        node=node,
        gpus=np.bincount(of, gpus, count).astype(np.int64)[of],
        nodes=np.bincount(of, minlength=count)[of],
        most=most[of],
        job=snapshot.jobs.key[reported.row][of],
        time=reported.read[of],
        rate=rate[of],
        batch_size=batch[of],
        pattern=reported.pattern[of],
        classes=names,
        gpu_types=snapshot.gpu_types,
        node_names=snapshot.nodes.names,
        **phases,
    )
