"""The latency ratio (Hops, SoCC 2024, section 3.6): how long a job waited, measured against its own length.

`LR = wait / age`; `age` is the run time that was to be expected without waiting. nan = not known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger.formulas import ratio
from slurm_fair.ledger.outcomes.expected import is_estimate
from slurm_fair.model.columns import Floats

_HOUR = 3600.0


def modelled_seconds(
    samples: Floats, throughput: NDArray[np.float64], part: Floats, mean_gpus: Floats
) -> Floats:
    """The paper's age: sum over types of P(type) * samples / (throughput * R_avg).

    `throughput` is [job, type], samples a second on one GPU; `part` is P(type), each type's part of the cluster's
    GPUs; `mean_gpus` is R_avg, the mean of the job's requirement set. A type on which a job's throughput is not
    known (nan or 0) is left out and the others' parts are scaled to 1; nan where none is known.
    """
    known = throughput > 0
    seconds_on_one = ratio(samples[:, None], np.where(known, throughput, 0.0), nothing=0.0)
    weighted = (seconds_on_one * np.where(known, part, 0.0)).sum(axis=1)
    parts = np.where(known, part, 0.0).sum(axis=1)
    return ratio(weighted, parts * mean_gpus, nothing=np.nan)


def latency_ratio(waited: Floats, expected: Floats) -> Floats:
    """LR: seconds spent waiting, pre-empted time too, by the expected run time; nan where none is expected."""
    return ratio(waited, np.where(is_estimate(expected), expected, 0.0), nothing=np.nan)


def recent_latency_ratio(latency: Floats, end: Floats, now: float, hours: float) -> float:
    """RAQLR(h): mean LR of the jobs that ended in the last `hours`; nan when none did."""
    recent = (end > now - hours * _HOUR) & (end <= now) & np.isfinite(latency)
    return float(np.mean(latency[recent])) if recent.any() else float("nan")
