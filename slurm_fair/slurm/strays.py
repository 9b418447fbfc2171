"""Jobs that carry something of ours although they are not, or no longer, ours to keep back."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Action, JobState, label, pack_keys
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.ids import pack
from slurm_fair.slurm.details import DetailsBook
from slurm_fair.slurm.liberate import free_action, kept_by_us
from slurm_fair.slurm.marks import MarkBook
from slurm_fair.slurm.queue import Queue, spread_tasks


def strays(
    rows: NDArray[np.void], managed: Ints, queue: Queue, details: DetailsBook, marks: MarkBook
) -> tuple[Action, ...]:
    """Acts that free waiting jobs outside the scope, or left alone, that a gate or a mark of ours keeps back.

    They were submitted with our gate by a template or the submit hook, or left the scope since.
    """
    waits = rows[(rows["state"] == JobState.WAITING) & (rows["gpus"] > 0)]
    source, base, task = spread_tasks(waits, queue.task_lists)
    keys = pack_keys(base, task)
    outside = np.unique(source[find(managed, keys) < 0])
    kept_back = (waits["priority"] == 0) | (waits["eligible"] > waits["submit"])
    candidates = [(waits[at], free_action(waits[at])) for at in outside[kept_back[outside]].tolist()]
    return tuple(action for row, action in candidates if _is_ours(row, action, queue, details, marks))


def _is_ours(row: np.void, action: Action, queue: Queue, details: DetailsBook, marks: MarkBook) -> bool:
    mark = marks.covering(action.key, action.whole_record, action.submit, action.restarts)
    if mark is not None and (mark.pinned or _stands(mark.gate_until, row)):
        return True
    stamp = details.of(action.record, action.restarts).stamp
    reason = queue.reasons.texts[int(row["reason"])]
    return stamp is not None and kept_by_us(row, stamp, reason, lost=False)


def _stands(gate_until: float, row: np.void) -> bool:
    if math.isinf(gate_until):
        return bool(row["priority"] == 0)
    return bool(gate_until > 0 and abs(gate_until - float(row["eligible"])) <= 1.5)


def held_while_running(rows: NDArray[np.void], marks: MarkBook) -> tuple[str, ...]:
    """Ids of running jobs on which a hold of ours came to stand too late: a failed node would make it last."""
    running = rows[(rows["state"] == JobState.RUNNING) & (rows["priority"] == 0)]
    ids = []
    for row in running:
        key = pack(int(row["base"]), int(row["task"]))
        mark = marks.covering(key, False, float(row["submit"]), int(row["restarts"]))
        if mark is not None and math.isinf(mark.gate_until):
            ids.append(label(key))
    return tuple(ids)
