"""Job arrays: a user's own limit on how many tasks run at once."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.policy.view import View


def over_array_limit(view: View, rows: Ints) -> Bools:
    """Waiting tasks, in the order in which their tenant offers them, that their array has no room for.

    Tasks that run count even when their lease is over: whether they stop is not known before the plan.
    """
    jobs = view.snapshot.jobs
    over, limit = np.zeros(len(rows), dtype=bool), jobs.array_limit[rows]
    if not limit.size or limit.item(limit.argmax()) <= 0:
        return over
    has_one = limit > 0
    limited = np.flatnonzero(has_one & view.waiting[rows])
    base = jobs.key >> TASK_BITS
    running = base[(jobs.array_limit > 0) & (jobs.holds_gpus | (view.lease_row >= 0))]
    running.sort()
    mine = base[rows[limited]]
    order = np.argsort(mine, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(mine[order], mine[order], side="left")
    taken = np.searchsorted(running, mine[order], side="right") - np.searchsorted(running, mine[order])
    over[limited[order]] = place + taken >= jobs.array_limit[rows[limited[order]]]
    return over
