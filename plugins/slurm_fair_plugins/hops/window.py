"""The queue, the window at its head that is planned, and how placement-sensitive jobs are (section 3.6)."""

from __future__ import annotations

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.policy import Bools, Floats, Ints, View, speed_in
from slurm_fair_plugins.priority import type_parts


def window_end(least: Ints, total: int) -> int:
    """The number of jobs in the window: the head of a queue whose least sizes come to all GPUs of the cluster."""
    return min(int(np.searchsorted(np.cumsum(least), total)) + 1, len(least))


def sensitivity(view: View, rows: Ints) -> Floats:
    """Speed on one GPU over speed per GPU on two GPUs of two nodes, on the most common GPU type (eq. 10)."""
    parts = type_parts(view)
    kind = np.full(len(rows), int(parts.argmax()) if len(parts) else 0)
    own = view.snapshot.jobs.gpu_type[rows]
    kind = np.where(own >= 0, own, kind)
    ones, apart = np.ones(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
    alone = speed_in(view, rows, kind, ones, ~apart)
    each = speed_in(view, rows, kind, 2 * ones, apart) / 2
    return ratio(alone, each, nothing=np.inf)


def with_insensitive(inside: Bools, sensitivity: Floats, least: Ints, idle: int) -> Bools:
    """The window of a plan for fragments, widened: columns are in the order of the queue.

    While its jobs are more sensitive on average than the whole queue, jobs behind it join that are less sensitive
    than the queue and whose least size is smaller than what is idle.
    """
    inside = inside.copy()
    if not inside.any() or inside.all():
        return inside
    queue_mean = float(np.mean(np.minimum(sensitivity, _MOST)))
    total, count = float(np.minimum(sensitivity[inside], _MOST).sum()), int(inside.sum())
    joining = np.flatnonzero(~inside & (sensitivity < queue_mean) & (least < idle))
    means = (total + np.cumsum(sensitivity[joining])) / (count + np.arange(1, len(joining) + 1))
    if total / count <= queue_mean:
        return inside
    enough = np.flatnonzero(means <= queue_mean)
    inside[joining[: int(enough[0]) + 1] if len(enough) else joining] = True
    return inside


_MOST = 1e3  # in means: a job that does not run apart at all is this sensitive
