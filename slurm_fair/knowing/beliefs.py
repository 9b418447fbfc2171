"""Reports of running jobs weighed: progress only grows, and no faster than can be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slurm_fair.model import Beliefs, JobTable, Reported
from slurm_fair.model.columns import Bools, Floats, Ints, find, take_or
from slurm_fair.model.ids import is_same_job
from slurm_fair.throughput import believed_progress

PACE_SECONDS_LEAST, PACE_SECONDS_MOST = 20.0, 300.0  # over which a pace is measured
_DELAY_SECONDS = 15.0  # a report is read so much later than it was written
SILENCE_SECONDS = 60.0  # after which a pace that nobody renews begins to fade
FADING_SECONDS = 600.0  # in which it then loses half of itself
_SLACK = 1e-6  # of numbers that were rounded


def still_there(beliefs: Beliefs, jobs: JobTable) -> Beliefs:
    """The beliefs of jobs that are listed and not over; the next bearer of an id is another job."""
    if not len(beliefs):
        return beliefs
    row = find(jobs.key, beliefs.key)
    at = np.maximum(row, 0)
    same = is_same_job(beliefs.submit, jobs.submit[at], jobs.restarts[at])
    kept = np.flatnonzero((row >= 0) & same & ~jobs.done[at]) if len(jobs) else np.zeros(0, dtype=np.int64)
    return beliefs.take(kept).with_columns(submit=jobs.submit[row[kept]])


def said_progress(reported: Reported) -> tuple[Bools, Floats, Floats]:
    """True for each that counts in epochs; its progress; all that it has to do."""
    by_epoch = np.isnan(reported.step) & ~np.isnan(reported.epoch)
    done = np.where(by_epoch, reported.epoch, reported.step)
    return by_epoch, done, np.where(by_epoch, reported.epochs, reported.steps)


def unweighed(beliefs: Beliefs, jobs: JobTable, reported: Reported) -> Ints:
    """The reports that have not been weighed yet."""
    row = find(beliefs.key, jobs.key[reported.row])
    fresh: Ints = np.flatnonzero(
        (take_or(beliefs.read, row, -np.inf) != reported.read)
        | (take_or(beliefs.start, row, -1.0) != jobs.start[reported.row])
    )
    return fresh


def weighed(beliefs: Beliefs, jobs: JobTable, reported: Reported, best: Floats) -> Beliefs:
    """The beliefs after these new reports; `best` = the most progress a second of each, nan = not known."""
    if not len(reported):
        return beliefs
    after = _after(beliefs, jobs, reported, best)
    kept = beliefs.take(~np.isin(beliefs.key, after.key)).joined(after)
    return kept.take(np.argsort(kept.key, kind="stable"))


def _after(beliefs: Beliefs, jobs: JobTable, reported: Reported, best: Floats) -> Beliefs:
    key, start = jobs.key[reported.row], jobs.start[reported.row]
    by_epoch, said, total = said_progress(reported)
    at = find(beliefs.key, key)
    old = np.where(take_or(beliefs.counts_epochs, at, False) == by_epoch, at, -1)
    same_run = (old >= 0) & (take_or(beliefs.start, old, -1.0) == start)
    run = np.where(same_run, old, -1)
    since = _since(beliefs, jobs, reported, at, run)
    most = believed_progress(since.base, said, reported.read - since.began, best)
    before = take_or(beliefs.done, old, np.nan)
    # A new run may resume from an earlier state than the last one reached.
    least = np.nan_to_num(np.where(same_run, before, np.minimum(before, said)))
    done = np.where(np.isnan(said), before, np.maximum(least, np.minimum(most, said)))
    measure = _measured(beliefs, run, said, reported)
    stated = np.where(by_epoch, np.nan, reported.steps_per_second)
    last = take_or(beliefs.pace, run, np.nan)
    counts = ~np.isnan(said)
    pace = _first_known(
        measure.pace,
        np.where(counts, last, stated),
        np.where(counts, stated, last),
        take_or(beliefs.pace, old, np.nan),
    )
    limit = np.where(np.isnan(best), np.inf, best)
    own = ~np.isnan(measure.pace) | (pace == stated) | ~np.isnan(reported.samples_per_second)
    sampled = take_or(beliefs.sampled, run, np.nan)
    return Beliefs(
        key=key,
        submit=jobs.submit[reported.row],
        start=start,
        counts_epochs=by_epoch,
        done=done,
        total=_first_known(total, take_or(beliefs.total, old, np.nan)),
        read=reported.read,
        run_base=since.base,
        run_began=since.began,
        pace_base=measure.base,
        pace_written=measure.written,
        pace_read=measure.read,
        pace=np.minimum(pace, limit),
        speed=take_or(beliefs.speed, run, 1.0),
        sampled=np.where(np.isnan(sampled) & own, -np.inf, sampled),
        clamped=(said > done * (1 + _SLACK)) | (pace > limit * (1 + _SLACK)),
    )


class _Since(NamedTuple):
    """Progress and instant from which the progress of each run is bounded."""

    base: Floats
    began: Floats


def _since(beliefs: Beliefs, jobs: JobTable, reported: Reported, at: Ints, run: Ints) -> _Since:
    """A run begins with what was believed then: nothing, if it is its job's first.

    What a job did before anybody knew of it is taken as it says it.
    """
    _, said, _ = said_progress(reported)
    start, again = jobs.start[reported.row], jobs.restarts[reported.row] > 0
    by_epoch = np.isnan(reported.step) & ~np.isnan(reported.epoch)
    alike = (at >= 0) & (take_or(beliefs.counts_epochs, at, False) == by_epoch)
    before = take_or(beliefs.done, np.where(alike, at, -1), np.nan)
    stranger = again & (at < 0)
    base = np.where(stranger, said, np.nan_to_num(before))
    began = np.where(stranger, reported.read, start)
    of_run = take_or(beliefs.run_base, run, np.nan)
    kept = ~np.isnan(of_run)
    return _Since(
        np.where(kept, of_run, base), np.where(kept, take_or(beliefs.run_began, run, np.nan), began)
    )


class _Pace(NamedTuple):
    """The state of the measuring of each pace, and the pace itself as far as it is known."""

    base: Floats
    written: Floats
    read: Floats
    pace: Floats


def _measured(beliefs: Beliefs, run: Ints, said: Floats, reported: Reported) -> _Pace:
    """Progress over time by the clock of the job, which may not run slower than ours."""
    base = take_or(beliefs.pace_base, run, np.nan)
    written = take_or(beliefs.pace_written, run, np.nan)
    read = take_or(beliefs.pace_read, run, np.nan)
    seconds = np.maximum(reported.written - written, reported.read - read - _DELAY_SECONDS)
    going = (said >= base) & (seconds > 0)  # false where one of them is not known
    enough = going & (seconds >= PACE_SECONDS_LEAST)
    pace = np.full(len(said), np.nan)
    pace[enough] = (said - base)[enough] / seconds[enough]
    anew = (~going & ~(said == base)) | (seconds > PACE_SECONDS_MOST)
    return _Pace(
        np.where(anew, said, base),
        np.where(anew, reported.written, written),
        np.where(anew, reported.read, read),
        pace,
    )


def _first_known(*columns: Floats) -> Floats:
    """The first of several values of each row that is known."""
    found = columns[0]
    for column in columns[1:]:
        found = np.where(np.isnan(found), column, found)
    return found
