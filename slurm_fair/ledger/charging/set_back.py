"""A ledger that is ahead of the clock, because the clock was set back: it goes on from now.

What was charged stays charged, and the time that comes is charged although the clock has shown it before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Ledger
from slurm_fair.model.columns import ZERO

_SLACK_SECONDS = 10.0  # clocks are set by less all the time: the ledger waits until they are there again


def seconds_set_back(ledger: Ledger, now: float) -> float:
    """Seconds by which the clock was set back since the ledger's last look, at least; 0 where they are few."""
    ahead = ledger.time - now
    return ahead if ahead > _SLACK_SECONDS else 0.0


def set_back(ledger: Ledger, now: float) -> Ledger:
    """The ledger at an instant before its own; an open run counts as charged for its time until now."""
    jobs, tenants, closed, began = ledger.jobs, ledger.tenants, ledger.closed, min(ledger.began, now)
    seconds = np.maximum(now - np.maximum(jobs.run_start, began), ZERO)
    run_had = np.minimum(jobs.run_had, seconds * jobs.run_gpus * jobs.gpu_weight)
    return replace(
        ledger,
        time=now,
        began=began,
        jobs=jobs.with_columns(run_had=run_had),
        tenants=tenants.with_columns(last_job=np.minimum(tenants.last_job, now)),
        closed=closed.with_columns(since=min(closed.since, now)),
    )
