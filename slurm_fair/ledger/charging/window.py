"""Jobs and runs of a window: the one form in which snapshots and accounting charge the ledger."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeVar

import numpy as np

from slurm_fair.model import ClosedRuns, JobAccounts, JobState
from slurm_fair.model.columns import Bools, Floats, Ints, among, take_or

# By state: whether a job in it holds GPUs.
HOLDS = np.isin(np.arange(len(JobState)), (JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED))
HOLDS.setflags(write=False)
_FIRST_INSTANT = np.nextafter(0.0, 1.0)  # an end without a run is closed with a start of 0


class JobLives(NamedTuple):
    """One row per job that lived at some time of the window: the ledger's accounts in their order, then new ones.

    What it claims, as last seen, counts in the window; what it claims then counts from the window's end on.
    """

    key: Ints
    submit: Floats  # of the job
    tenant: Ints  # row of the ledger's tenants
    gpus: Ints  # D_i
    weight: Floats
    gpu_weight: Floats  # what each of its GPUs counts
    active: Bools
    active_from: Floats  # may lie before the window for a job that was not known yet
    active_to: Floats  # may lie before the window for a job whose end was not known yet
    waits_from: Floats  # what is not run from here to `active_to` is waited
    ended: Bools
    incarnation: Floats  # SubmitTime and restarts as known at the window's end
    restarts: Ints
    then_tenant: Ints
    then_gpus: Ints
    then_weight: Floats
    then_gpu_weight: Floats
    then_active: Bools
    then_waits: Bools


class JobRuns(NamedTuple):
    """One row per run that touched the window; a life may have several."""

    life: Ints  # row of the lives
    incarnation: Floats
    restarts: Ints
    gpus: Ints
    then_gpus: Ints  # of an open run: from the window's end on
    gpu_weight: Floats  # what each of them counts
    start: Floats
    end: Floats  # the window's end for an open run
    open: Bools
    charged: Floats  # GPU-seconds by weight that were charged earlier
    charged_seconds: Floats
    news: Bools  # nobody has been told of its start

    def less_already_charged(self, fresh: Ints, keys: Ints, closed: ClosedRuns) -> tuple[Self, ClosedRuns]:
        """Runs that were closed (or settled) earlier are opened again, so that nothing is charged twice.

        `fresh` are the runs that are news, `keys` those of the lives.
        """
        if not fresh.size or not closed.key.size:
            return self, closed
        # As a rule all that is closed began before anything that is news.
        known = (closed.start >= np.maximum(self.start[fresh].min(), _FIRST_INSTANT)).nonzero()[0]
        known = known[among(closed.key[known], keys[self.life[fresh]])] if known.size else known
        if not known.size:
            return self, closed
        row_of = {run: row for row, run in zip(known, _pairs(closed.key, closed.start, known), strict=True)}
        ours = _pairs(keys[self.life], self.start, fresh)
        both = [(run, row_of[pair]) for run, pair in zip(fresh, ours, strict=True) if pair in row_of]
        runs, rows = np.array(both, dtype=np.int64).reshape(-1, 2).T
        charged, seconds, news = self.charged.copy(), self.charged_seconds.copy(), self.news.copy()
        charged[runs] = closed.charged[rows]
        seconds[runs] = closed.end[rows] - closed.start[rows]
        news[runs] = False
        left = np.delete(np.arange(len(closed)), rows)
        return self._replace(charged=charged, charged_seconds=seconds, news=news), closed.take(left)


Rows = TypeVar("Rows", JobLives, JobRuns)


class Window(NamedTuple):
    """The jobs that lived between two instants, the runs of that time, and the rows that want more work."""

    lives: JobLives
    runs: JobRuns
    ended: Ints  # rows of the lives
    over: Ints  # rows of the runs: those that are not open
    fresh: Ints  # rows of the runs that are news
    in_order: bool  # of the lives' keys, as far as is known

    @classmethod
    def of(cls, lives: JobLives, runs: JobRuns, in_order: bool = False) -> Self:
        """The window of these lives and runs, with its rows worked out."""
        ended, over, fresh = lives.ended.nonzero()[0], (~runs.open).nonzero()[0], runs.news.nonzero()[0]
        return cls(lives, runs, ended, over, fresh, in_order)


def stacked(first: Rows, second: Rows) -> Rows:
    """Both tables' rows, one after the other."""
    return type(first)._make(np.concatenate(both) for both in zip(first, second, strict=True))


def rows_taken(table: Rows, rows: Ints) -> Rows:
    return type(table)._make(column.take(rows) for column in table)


def known_ends(closed: ClosedRuns, keys: Ints, submits: Floats) -> Bools:
    """True for incarnations that are in the closed runs already."""
    rows = among(closed.key, keys).nonzero()[0]
    there = set(_pairs(closed.key, closed.submit, rows))
    everyone = _pairs(keys, submits, np.arange(len(keys)))
    return np.array([pair in there for pair in everyone], dtype=bool)


def seconds_charged(jobs: JobAccounts, rows: Ints, time: float) -> Floats:
    """Seconds of the open runs that were charged up to `time`; 0 for accounts without one."""
    start = take_or(jobs.run_start, rows, 0.0)
    return np.where(start > 0, np.maximum(time - start, 0.0), 0.0)


def _pairs(keys: Ints, instants: Floats, rows: Ints) -> list[tuple[int, float]]:
    return list(zip(keys[rows].tolist(), instants[rows].tolist(), strict=True))
