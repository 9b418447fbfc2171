"""Job arrays: a user's own limit on how many tasks run at once."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Ints, ranks_within
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.policy.view import View


def over_array_limit(view: View, rows: Ints) -> Bools:
    """Waiting tasks, in the order in which their tenant offers them, that their array has no room for.

    Tasks that run count even when their lease is over: whether they stop is not known before the plan. So do those
    to which the profiler gives a turn at this look.
    """
    jobs = view.snapshot.jobs
    over, limit = np.zeros(len(rows), dtype=bool), jobs.array_limit[rows]
    if not limit.size or limit.item(limit.argmax()) <= 0:
        return over
    has_one = limit > 0
    limited = np.flatnonzero(has_one & view.waiting[rows])
    base = jobs.key >> TASK_BITS
    has_gpus = jobs.holds_gpus | (view.lease_row >= 0)
    has_gpus[view.turns.row] = True
    running = base[(jobs.array_limit > 0) & has_gpus]
    running.sort()
    mine = base[rows[limited]]
    place = ranks_within(mine, np.argsort(mine, kind="stable"))
    taken = np.searchsorted(running, mine, side="right") - np.searchsorted(running, mine)
    over[limited] = place + taken >= limit[limited]
    return over
