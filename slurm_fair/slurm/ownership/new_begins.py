"""Find begin times that no mark explains: the job's comment may say by now that the submit hook set them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.ids import NO_TASK
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import Noted, WaitState, is_noted_gate
from slurm_fair.slurm.reading.queue import UNSPLIT, Queue


def begins_without_mark(
    rows: NDArray[np.void], queue: Queue, marks: Marks, now: float
) -> dict[tuple[int, int], float]:
    """The begin times of waiting jobs that none of our marks tells of, by record and restarts.

    The hook puts a job that its owner releases behind a new gate, and notes that in its comment.
    """
    later = rows[(rows["state"] == JobState.WAITING) & (rows["eligible"] > now)]
    if not len(later):
        return {}
    arrays = pack_keys(later["base"], np.full(len(later), NO_TASK))
    tasks = np.where(later["task"] == UNSPLIT, NO_TASK, later["task"])
    run = later["submit"], later["restarts"]
    own = marks.join(pack_keys(later["base"], tasks), False, *run)
    noted = Noted.of(own, marks.join(arrays, True, *run))
    unknown = later[~np.asarray(is_noted_gate(WaitState.of(later, queue.reasons), noted))]
    columns = (unknown[name].tolist() for name in ("record", "restarts", "eligible"))
    return {(record, restarts): eligible for record, restarts, eligible in zip(*columns, strict=True)}
