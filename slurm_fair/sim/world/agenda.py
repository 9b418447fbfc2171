"""The agenda of a virtual cluster: what is due, in order of time."""

from __future__ import annotations

import heapq
import math
from enum import Enum

from slurm_fair.sim.world.columns import JobColumns


class Due(Enum):
    """Everything that can be ahead of a job."""

    END = "its work is done"
    LIMIT = "its time limit is reached"
    HEARS = "it hears that it is to save"
    SAVED = "it has saved"
    RESUMES = "it has saved, nobody takes its GPUs, and it goes on"
    LEAVES = "it has left its GPUs"
    STARTS = "Slurm starts it on the nodes for which its gate was opened"
    ELIGIBLE = "Slurm may start it again after a requeue"
    BEGINS = "the begin time of its user"
    OPENS = "its begin gate opens by itself"


class Agenda:
    """A heap of coming events; an event that was expected of an earlier run of a job is dropped."""

    def __init__(self, jobs: JobColumns) -> None:
        self._cells = jobs.cells
        self.ahead: list[tuple[float, int, Due, int, int]] = []  # instant, number, what, job and its run
        self._count = 0

    def expect(self, instant: float, what: Due, job: int) -> None:
        """Note what will happen to a job's present run."""
        self._count += 1
        heapq.heappush(self.ahead, (instant, self._count, what, job, self._cells.runs[job]))

    def next_event(self) -> float:
        """The instant of the next entry."""
        while self.ahead and self._cells.runs[self.ahead[0][3]] != self.ahead[0][4]:
            heapq.heappop(self.ahead)
        return self.ahead[0][0] if self.ahead else math.inf

    def pop(self) -> tuple[Due, int] | None:
        """The next entry and its job; None when it does not come any more."""
        _, _, what, job, run = heapq.heappop(self.ahead)
        return (what, job) if self._cells.runs[job] == run else None
