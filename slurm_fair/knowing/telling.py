"""Policies are told of jobs: their speeds by what was measured, their progress as far as it is believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.knowing.beliefs import FADING_SECONDS, SILENCE_SECONDS
from slurm_fair.knowing.places import speeds_here, types_of
from slurm_fair.model import Beliefs, Reported, Snapshot, Speeds, Told
from slurm_fair.model.columns import Floats, Ints, any_of, find
from slurm_fair.throughput import RunTimes, faded

_LEAST_RATE, _MOST_RATE = 0.01, 100.0  # of one GPU type or placement against another
_LEAST_SECONDS = 1.0
_ENOUGH = 2.5  # ended jobs, as their age leaves them, before they bound what a job may claim
_DEVIATIONS = 2.0  # below the median of the ended jobs


@dataclass(frozen=True, slots=True)
class Learned:
    """All that is known beside the look itself, but for speeds."""

    beliefs: Beliefs
    run_times: RunTimes  # of ended jobs of each row's class
    ran: Floats  # seconds that each job has run in all

    @property
    def says_anything(self) -> bool:
        """True if jobs of the class of any have ended."""
        return any_of(~np.isnan(self.run_times.seconds))


def told_of(told: Told, snapshot: Snapshot, learned: Learned) -> Told:
    """The same with progress and run times; speeds and deadlines were told already."""
    told = _with_run_times(told, learned)
    if snapshot.reported is not None:
        told = _with_words(told, snapshot.reported, learned.beliefs, snapshot.jobs.key)
    return _with_progress(told, snapshot, learned)


def with_speeds(told: Told, snapshot: Snapshot, speeds: Speeds) -> Told:
    """Rates against the reference type, which is the first, and how a gang scales; as before where unknown."""
    rows = np.flatnonzero(speeds.job_class >= 0)
    if not len(rows):
        return told
    gpus, types = snapshot.usual_gpus[rows], len(snapshot.gpu_types)
    near, apart = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)
    rate, spread_rate, scaling = told.rate.copy(), told.spread_rate.copy(), told.scaling.copy()
    reference = np.zeros(len(rows), dtype=np.int64)
    base = speeds.rates(rows, reference, gpus, near)
    for kind in range(types):
        there = np.full(len(rows), kind)
        together = speeds.rates(rows, there, gpus, near)
        rate[rows, kind] = _ratio(together, base, rate[rows, kind])
        scattered = speeds.rates(rows, there, gpus, apart)
        spread_rate[rows, kind] = _ratio(scattered, together, spread_rate[rows, kind])
    alone = speeds.rates(rows, reference, np.ones(len(rows), dtype=np.int64), near)
    scaling[rows] = _ratio(base, alone, scaling[rows])
    return told.with_columns(rate=rate, spread_rate=spread_rate, scaling=scaling)


def with_place_speeds(beliefs: Beliefs, snapshot: Snapshot, rate: Floats, speeds: Speeds) -> Beliefs:
    """The beliefs with the speed of the place and size in which each job runs; those that wait keep theirs."""
    row = find(snapshot.jobs.key, beliefs.key)
    here = speeds_here(snapshot, rate)[row] * _size_ratios(snapshot, row, speeds)
    return beliefs.with_columns(speed=np.where(np.isnan(here), beliefs.speed, here))


def _size_ratios(snapshot: Snapshot, row: Ints, speeds: Speeds) -> Floats:
    """The speed of each of these jobs in its present size against its usual one; GPUs are counted if need be."""
    gpus, usual = snapshot.jobs.gpus[row], snapshot.usual_gpus[row]
    if not any_of(gpus != usual):
        return np.ones(len(row))
    kind, near = types_of(snapshot, row), np.zeros(len(row), dtype=bool)
    now, then = (speeds.rates(row, kind, size, near) for size in (gpus, usual))
    measured = _ratio(now, then, np.full(len(row), np.nan))
    return np.where(np.isnan(measured), gpus / np.maximum(usual, 1), measured)


def _ratio(rate: Floats, base: Floats, unknown: Floats) -> Floats:
    """One speed over another, within what can be; as before where one of them is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rate / base
    return np.where(np.isfinite(ratio), np.clip(ratio, _LEAST_RATE, _MOST_RATE), unknown)


def _with_run_times(told: Told, learned: Learned) -> Told:
    """The same with what jobs of the class took, less what this one has run, where nobody said what is left."""
    times, ran = learned.run_times, learned.ran
    silent = np.isnan(told.left_seconds) & np.isnan(told.declared_seconds) & ~np.isnan(times.seconds)
    left = np.where(silent, np.maximum(times.seconds - ran, _LEAST_SECONDS), told.left_seconds)
    return told.with_columns(
        left_seconds=left, left_spread=np.where(silent, times.deviation, told.left_spread)
    )


def _with_words(told: Told, reported: Reported, beliefs: Beliefs, key: Ints) -> Told:
    """Epochs, batch sizes, modes and models as jobs report them; epochs no further than their progress."""
    row = reported.row
    at = find(beliefs.key, key[row])
    with np.errstate(divide="ignore", invalid="ignore"):
        part = beliefs.done[at] / reported.step
    epoch, epochs = told.epoch.copy(), told.epochs.copy()
    by_epoch = beliefs.counts_epochs[at]
    held = np.where(np.isfinite(part), np.minimum(part, 1.0), 1.0)
    epoch[row] = np.where(by_epoch, beliefs.done[at], reported.epoch * held)
    epochs[row] = reported.epochs
    batch, mode, model = told.batch_size.copy(), told.mode.copy(), told.model.copy()
    batch[row] = np.nan_to_num(reported.batch_size).astype(np.int64)
    mode[row], model[row] = reported.mode, reported.model
    return told.with_columns(
        epoch=epoch, epochs=epochs, batch_size=batch, mode=mode, model=model, models=reported.models
    )


def _with_progress(told: Told, snapshot: Snapshot, learned: Learned) -> Told:
    """Work done and left by what is believed, in seconds on the reference type."""
    beliefs = learned.beliefs
    row = find(snapshot.jobs.key, beliefs.key)
    counted = ~np.isnan(beliefs.done) & (beliefs.pace > 0)
    beliefs, row = beliefs.take(counted), row[counted]
    steps, done, left = told.steps_per_second.copy(), told.done_seconds.copy(), told.left_seconds.copy()
    deviation = told.left_spread.copy()
    steps[row] = np.where(beliefs.counts_epochs, np.nan, beliefs.pace / beliefs.speed)
    done[row] = beliefs.done / beliefs.pace * beliefs.speed
    pace = faded(beliefs.pace, _silence(snapshot, beliefs.key), FADING_SECONDS)
    claimed = np.maximum(beliefs.total - beliefs.done, 0.0) / pace * beliefs.speed
    least = _least_left(learned, row)
    said = ~np.isnan(claimed)
    left[row[said]] = np.maximum(np.fmax(claimed, least), _LEAST_SECONDS)[said]
    deviation[row[said]] = np.nan
    return told.with_columns(
        steps_per_second=steps, done_seconds=done, left_seconds=left, left_spread=deviation
    )


def _silence(snapshot: Snapshot, key: Ints) -> Floats:
    """For how long the report of each job was not renewed while it ran, beyond what is usual."""
    silent, reported = np.zeros(len(key)), snapshot.reported
    if reported is not None:
        at = find(snapshot.jobs.key[reported.row], key)
        found = at >= 0
        silent[found] = np.maximum(reported.silent_seconds[at[found]] - SILENCE_SECONDS, 0.0)
    return silent


def _least_left(learned: Learned, row: Ints) -> Floats:
    """No job of a class is believed to end much sooner than those that ended; nan where few have."""
    times, ran = learned.run_times, learned.ran[row]
    shortest = times.seconds[row] * np.exp(-_DEVIATIONS * times.deviation[row])
    return np.where(times.count[row] >= _ENOUGH, shortest - ran, np.nan)
