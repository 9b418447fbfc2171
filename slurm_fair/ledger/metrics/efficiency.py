"""Use of the cluster and durations of jobs: one definition of each metric, over a table of outcomes.

All are over the jobs that have ended, however they ended: take `outcomes.take(outcomes.completed)` for those that
ended well. nan = not known, or nobody to speak of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.ledger.metrics.windows import Steps
from slurm_fair.ledger.outcomes.outcomes import Outcomes
from slurm_fair.model.columns import Bools, Floats

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of a quantity over jobs; percentiles are interpolated linearly."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Floats) -> Self:
        """The distribution of the values that are known."""
        known = values[~np.isnan(values)]
        if not known.size:
            return cls(0, _NAN, _NAN, _NAN, _NAN, _NAN)
        p50, p95, p99 = np.percentile(known, [50, 95, 99]).tolist()
        return cls(known.size, float(known.mean()), p50, p95, p99, float(known.max()))


def makespan(outcomes: Outcomes) -> float:
    """Last end less first submission, in seconds; jobs that are not over make it no longer."""
    return float(np.nanmax(outcomes.end) - np.nanmin(outcomes.submit)) if _some(outcomes) else _NAN


def span(outcomes: Outcomes) -> tuple[float, float]:
    """First submission, and the last end or, while a job lives, the instant that the table speaks of."""
    known = np.isfinite(outcomes.submit)
    if not known.any():
        return outcomes.until, outcomes.until
    return float(outcomes.submit[known].min()), float(outcomes.ended_or_now.max())


def mean_gpus(capacity: Steps, outcomes: Outcomes) -> float:
    """M, averaged over the time that the metrics speak of."""
    since, until = span(outcomes)
    return float(capacity.mean(np.array([since]), np.array([until]))[0])


def completion_seconds(outcomes: Outcomes) -> Floats:
    """JCT of each job: end less submission."""
    return outcomes.end - outcomes.submit


def wait_seconds(outcomes: Outcomes) -> Floats:
    """JCT less the time spent running; time under a hold is in it, unlike in `waited` of the ledger."""
    return np.maximum(completion_seconds(outcomes) - outcomes.ran, 0.0)


def slowdown(outcomes: Outcomes) -> Floats:
    """JCT / run time; nan for a job that ended without having run."""
    return ratio(completion_seconds(outcomes), outcomes.ran, nothing=np.nan)


def gpu_seconds_held(outcomes: Outcomes) -> float:
    """GPU-seconds that all jobs held (the GPU time of Themis, section 6.1)."""
    return float(np.nansum(outcomes.held))


def utilization(held_gpu_seconds: float, capacity_gpu_seconds: float) -> float:
    """GPU-seconds held by those that there were; over a whole run these are M * makespan."""
    return held_gpu_seconds / capacity_gpu_seconds if capacity_gpu_seconds > 0 else _NAN


def loaded_utilization(held: Steps, demand: Steps, capacity: Steps, until: float) -> float:
    """Utilisation over the loaded interval: the time in which active jobs asked for all GPUs or more."""
    time, asked, there = demand.together(capacity)
    loaded = (asked >= there * (1.0 - 1e-9)) & (there > 0) & (time < until)  # sums of fractions are not exact
    since, ends = time[loaded], np.minimum(np.append(time[1:], until), until)[loaded]
    return utilization(float(held.integral(since, ends).sum()), float(capacity.integral(since, ends).sum()))


def mean_fragments(rounds: Mapping[int, int]) -> float:
    """GPUs that a plan leaves idle while jobs wait, mean over the plans after which somebody waits.

    `rounds` = how many plans there were, by the number of GPUs that they left idle; 0 where nobody ever waited.
    """
    total = sum(rounds.values())
    return sum(idle * count for idle, count in rounds.items()) / total if total else 0.0


def placement_score(leases: Mapping[float, int]) -> float:
    """Mean over leases of 1 / slowdown caused by placement (Themis, section 6.1): 1 = all well placed.

    `leases` = how many of them there were, by slowdown; nan where nothing was ever placed.
    """
    total = sum(leases.values())
    return sum(count / slowdown for slowdown, count in leases.items()) / total if total else _NAN


def overhead_fraction(lost_gpu_seconds: float, held_gpu_seconds: float) -> float:
    """GPU-seconds lost to checkpoints and restarts by those held; nothing was lost where nothing was held."""
    return lost_gpu_seconds / held_gpu_seconds if held_gpu_seconds > 0 else 0.0 * lost_gpu_seconds


def _some(outcomes: Outcomes) -> bool:
    ended: Bools = outcomes.over & np.isfinite(outcomes.submit)
    return bool(ended.any())
