"""Find the holds that may be those of their jobs' submissions, so that Slurm is asked about these jobs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import WaitState, may_be_as_submitted
from slurm_fair.slurm.ownership.ours_afresh import free_action
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue, may_take_gpus


def maybe_held_since(
    rows: NDArray[np.void], queue: Queue, details: JobDetails, marks: Marks
) -> list[tuple[int, int]]:
    """Record and restarts of held jobs without a mark whose stamp says that they were submitted so."""
    waiting = rows[(rows["state"] == JobState.WAITING) & may_take_gpus(rows)]
    held = np.asarray(may_be_as_submitted(WaitState.of(waiting, queue.reasons), True))
    found = []
    for row in waiting[held]:
        run, act = (int(row["record"]), int(row["restarts"])), free_action(row)
        unknown = marks.covering(act.key, act.whole_record, act.submit, act.restarts) is None
        if unknown and details.of(*run).gate_stamp.is_hold:
            found.append(run)
    return found
