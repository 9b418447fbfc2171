"""Expected run times of jobs, from declarations and from the past of jobs of their kind."""

from __future__ import annotations

from bisect import insort

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, absent


def expected_seconds(modelled: Floats, declared: Floats, usual: Floats, limit: Floats) -> Floats:
    """The best estimate at hand: throughput model, declared run time, usual run time, the time limit.

    The order of the arguments is the order of trust; what is nan, infinite, or not above 0 is no estimate.
    """
    best = np.full(len(limit), np.nan)
    for estimate in (limit, usual, declared, modelled):
        best = np.where(is_estimate(estimate), estimate, best)
    return best


def usual_seconds(group: Ints, submit: Floats, end: Floats, ran: Floats) -> Floats:
    """Median run time of the jobs of one group (one user and one name) that had ended when each was submitted.

    Only jobs that ran count, and only what was known then: an estimate that knew the job's own run time would
    measure nothing. Group -1 has no name and no past.
    """
    usual = np.full(len(group), np.nan)
    named = np.flatnonzero((group >= 0) & np.isfinite(submit))
    past = np.flatnonzero((group >= 0) & np.isfinite(end) & (ran > 0))
    # At one instant an end comes before a submission.
    row = np.concatenate([past, named])
    asks = np.repeat(np.array([False, True]), [len(past), len(named)])
    time = np.concatenate([end[past], submit[named]])
    order = np.lexsort((asks, time, group[row]))
    run_times: list[float] = []
    now = -1
    columns = (row[order], asks[order], group[row[order]], ran[row[order]])
    for at, asking, mine, seconds in zip(*(column.tolist() for column in columns), strict=True):
        if mine != now:
            run_times, now = [], mine
        if not asking:
            insort(run_times, seconds)
        elif run_times:
            usual[at] = _median(run_times)
    return usual


def _median(ascending: list[float]) -> float:
    middle = len(ascending) // 2
    return ascending[middle] if len(ascending) % 2 else (ascending[middle - 1] + ascending[middle]) / 2


def user_and_name(user: Ints, name: Ints) -> Ints:
    """One number for each pair of user and job name, as `usual_seconds` wants it; -1 where either is unknown."""
    group = absent(len(user))
    known = np.flatnonzero((user >= 0) & (name >= 0))
    pair = user[known] * (int(name.max(initial=0)) + 1) + name[known]
    group[known] = np.unique(pair, return_inverse=True)[1].reshape(-1)
    return group


def is_estimate(seconds: Floats) -> Bools:
    """True where a number is a run time: finite and above 0."""
    is_one: Bools = np.isfinite(seconds) & (seconds > 0)
    return is_one
