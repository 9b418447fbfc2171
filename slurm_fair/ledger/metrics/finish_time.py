"""Finish-time fairness: T_shared / T_independent, the papers' rho; above 1 = unfair; there are four denominators.

| name | T_independent |
| --- | --- |
| themis | T_cluster * N_avg (Themis, NSDI 2020, equations 1 and 2) |
| shockwave | T_exclusive * max(1, mean over the job's life of active jobs / M) (Shockwave, NSDI 2023, app. G) |
| static | T_exclusive * max(1, N / M), N = jobs of the whole table (that paper's own figures; simulation only) |
| sia | run time alone on a 1/N share of every GPU type (Sia, SOSP 2023) |

Means over a life are exact at every arrival and end. A job that is not over has no ratio yet (nan); it does count
among the active ones, until the instant that the table speaks of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.ledger.formulas import ratio
from slurm_fair.ledger.metrics.windows import Steps
from slurm_fair.ledger.outcomes.outcomes import Outcomes
from slurm_fair.model.columns import Floats, Ints

_ROUNDING = 1e-9


def ratio_of(outcomes: Outcomes, name: str, total_gpus: float) -> Floats:
    """The ratio of each job under the denominator of that name; with `themis`, of its app.

    No time shared and none needed alone reads as 1. `total_gpus` is M; where M changed, its mean over time.
    """
    shared = app_seconds(outcomes) if name == "themis" else outcomes.end - outcomes.submit
    return finish_time_ratio(shared, INDEPENDENT[name](outcomes, total_gpus))


def finish_time_ratio(shared: Floats, independent: Floats) -> Floats:
    """T_shared / T_independent; nan where one of them is not known."""
    known = np.isfinite(shared) & np.isfinite(independent)
    found = ratio(shared, np.where(known, independent, 0.0), nothing=np.inf)
    found[known & (shared <= 0) & (independent <= 0)] = 1.0
    found[~known] = np.nan
    return found


def worst(values: Floats) -> float:
    """Worst FTF: the highest ratio; nan when none is known."""
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else float("nan")


def unfair(values: Floats) -> float:
    """Part of the jobs with a known ratio for which it is above 1 (a rounding error is not); nan without any."""
    known = values[~np.isnan(values)]
    return float(np.mean(known > 1.0 + _ROUNDING)) if known.size else float("nan")


def themis_seconds(outcomes: Outcomes, total_gpus: float) -> Floats:
    """T_cluster * N_avg of each job's app: serial work / min(M, demand_max) * mean number of apps in the system.

    How it is read here: work is serial (T_exclusive times the gang, summed over the app's jobs: linear speedup,
    no slowdown); demand_max is the sum of the gangs of the app's jobs, which does not depend on when they were
    run; an app is in the system from its first submission to its last end; N_avg counts the app itself.
    """
    app = apps(outcomes)
    count = int(app.max(initial=-1)) + 1
    work = totals(app, outcomes.exclusive_seconds * outcomes.gpus, count)
    demand = np.minimum(totals(app, outcomes.gpus, count), total_gpus)
    since, until = _app_lives(outcomes, app, count)
    alone = ratio(work, demand, nothing=np.nan)
    return np.asarray((alone * _crowd(since, until))[app])


def shockwave_seconds(outcomes: Outcomes, total_gpus: float) -> Floats:
    """T_exclusive times the contention of the job's life: max(1, time-weighted mean of active jobs / M)."""
    crowd = _crowd(outcomes.submit, outcomes.ended_or_now)
    return outcomes.exclusive_seconds * _contention(crowd, total_gpus)


def static_seconds(outcomes: Outcomes, total_gpus: float) -> Floats:
    """T_exclusive times max(1, N / M), N = all jobs of the table, whenever they lived."""
    crowd = np.full(len(outcomes), float(len(outcomes)))
    return outcomes.exclusive_seconds * _contention(crowd, total_gpus)


def sia_seconds(outcomes: Outcomes, total_gpus: float) -> Floats:
    """Run time alone on a 1/N share of every GPU type, N = mean number of active jobs during the job's life.

    A gang on less than its GPUs goes slower in proportion (time slices), on more it goes no faster than with all
    of them. Where nobody said how long its work would take all GPUs, they are taken to be alike.
    """
    alike = ratio(outcomes.exclusive_seconds * outcomes.gpus, np.asarray(total_gpus), nothing=np.nan)
    on_all = np.where(np.isnan(outcomes.spread_seconds), alike, outcomes.spread_seconds)
    slow: Floats = np.maximum(on_all * np.maximum(mean_active(outcomes), 1.0), outcomes.exclusive_seconds)
    return slow


INDEPENDENT: Mapping[str, Callable[[Outcomes, float], Floats]] = MappingProxyType(
    {"themis": themis_seconds, "shockwave": shockwave_seconds, "static": static_seconds, "sia": sia_seconds}
)


def mean_active(outcomes: Outcomes) -> Floats:
    """Time-weighted mean number of active jobs during each job's life, itself among them."""
    return _crowd(outcomes.submit, outcomes.ended_or_now)


def apps(outcomes: Outcomes) -> Ints:
    """The number of each job's app, from 0 without gaps; a job without one is an app of its own."""
    own = -1 - np.arange(len(outcomes))
    named = np.where(outcomes.app >= 0, outcomes.app, own)
    return np.unique(named, return_inverse=True)[1].reshape(-1).astype(np.int64)


def app_seconds(outcomes: Outcomes) -> Floats:
    """T_shared of each job's app: first submission to last end; nan while one of its jobs is not over."""
    app = apps(outcomes)
    count = int(app.max(initial=-1)) + 1
    since, until = _app_lives(outcomes, app, count)
    open_ = np.bincount(app, ~outcomes.over, count) > 0
    return np.asarray(np.where(open_, np.nan, until - since)[app])


def _app_lives(outcomes: Outcomes, app: Ints, count: int) -> tuple[Floats, Floats]:
    """First submission and last end of each app; nan is the first where that of one of its jobs is not known."""
    since, until = np.full(count, np.inf), np.full(count, -np.inf)
    known = np.isfinite(outcomes.submit)
    np.minimum.at(since, app[known], outcomes.submit[known])
    np.maximum.at(until, app, outcomes.ended_or_now)
    since[app[~known]] = np.nan
    return since, until


def _crowd(since: Floats, until: Floats) -> Floats:
    """Time-weighted mean number of these lives during each of them; one without length counts those it meets."""
    mean = Steps.of(since, until).mean(since, until)
    at_once = np.flatnonzero(until <= since)
    begun = np.searchsorted(np.sort(since), since[at_once], side="right")
    gone = np.searchsorted(np.sort(until), since[at_once], side="left")
    mean[at_once] = begun - gone
    mean[np.isnan(since) | np.isnan(until)] = np.nan
    return mean


def _contention(crowd: Floats, total_gpus: float) -> Floats:
    return np.maximum(ratio(crowd, np.asarray(total_gpus), nothing=np.nan), 1.0)
