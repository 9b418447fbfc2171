"""Job arrays: a user's own limit on how many tasks run at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Blocked, JobTable, Leases, Snapshot
from slurm_fair.model.columns import NO_ROWS, Bools, Ints, any_of, find, ranks_within
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.policy.view import View


def without_limited_tasks(snapshot: Snapshot, resting: Snapshot, leases: Leases) -> tuple[Snapshot, Snapshot]:
    """Both snapshots with the tasks blocked that their array's own limit keeps back: Slurm could start none.

    `resting` is the snapshot with what rests for a while, whose place goes to the next task. What was promised is
    followed, not blocked.
    """
    rows = _limited_tasks(resting.jobs, leases)
    if not rows.size:
        return snapshot, resting
    blocked = _limited(snapshot, rows)
    return blocked, blocked if resting is snapshot else _limited(resting, rows)


def _limited_tasks(jobs: JobTable, leases: Leases) -> Ints:
    """The rows of waiting tasks beyond the limit of their array, which the first tasks of it use up."""
    if not _any_limit(jobs.array_limit):
        return NO_ROWS
    waits = (jobs.array_limit > 0) & jobs.waiting & jobs.unblocked
    if not any_of(waits):
        return NO_ROWS
    with_lease = find(jobs.key, leases.key)
    with_lease = with_lease[with_lease >= 0]
    has_gpus = jobs.holds_gpus
    has_gpus[with_lease] |= jobs.waiting[with_lease]
    waits[with_lease] = False
    rows = waits.nonzero()[0]
    return rows[_beyond_limit(jobs, rows, has_gpus)]


def over_array_limit(view: View, rows: Ints) -> Bools:
    """Waiting tasks, in the order in which their tenant offers them, that their array has no room for.

    Tasks that run count even when their lease is over: whether they stop is not known before the plan. So do those
    to which the profiler gives a turn at this look. A tick shows no policy more waiting tasks than there is room
    for: this is for views that no tick made.
    """
    jobs = view.snapshot.jobs
    over, limit = np.zeros(len(rows), dtype=bool), jobs.array_limit[rows]
    if not _any_limit(limit):
        return over
    limited = np.flatnonzero((limit > 0) & view.waiting[rows])
    has_gpus = jobs.holds_gpus | (view.lease_row >= 0)
    has_gpus[view.turns.row] = True
    over[limited] = _beyond_limit(jobs, rows[limited], has_gpus)
    return over


def _beyond_limit(jobs: JobTable, rows: Ints, has_gpus: Bools) -> Bools:
    """True where tasks before it, and those that have GPUs, use up the limit that each row's array has."""
    base = jobs.key >> TASK_BITS
    running = base[(jobs.array_limit > 0) & has_gpus]
    mine = base[rows]
    place = ranks_within(mine, np.argsort(mine, kind="stable"))
    taken = np.searchsorted(running, mine, side="right") - np.searchsorted(running, mine)
    beyond: Bools = place + taken >= jobs.array_limit[rows]
    return beyond


def _any_limit(limit: Ints) -> bool:
    return limit.size > 0 and limit.item(limit.argmax()) > 0


def _limited(snapshot: Snapshot, rows: Ints) -> Snapshot:
    blocked = snapshot.jobs.blocked.copy()
    blocked[rows] = Blocked.ARRAY_LIMIT
    return replace(snapshot, jobs=snapshot.jobs.with_columns(blocked=blocked))
