"""What lies ahead of the jobs of a virtual cluster, in order of time."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

from slurm_fair.sim.columns import JobColumns


class Happens(NamedTuple):
    """Something that will happen to a job unless its run is another one by then."""

    what: str  # end, limit, saved, resumes, leaves, eligible, begins, opens
    job: int
    run: int


class Agenda:
    """A heap; what was expected of an earlier run of a job never comes."""

    def __init__(self, jobs: JobColumns) -> None:
        self._cells = jobs.cells
        self.ahead: list[tuple[float, int, Happens]] = []
        self._count = 0

    def expect(self, instant: float, what: str, job: int) -> None:
        """Note what will happen to a job's present run."""
        self._count += 1
        event = Happens(what, job, self._cells.runs[job])
        heapq.heappush(self.ahead, (instant, self._count, event))

    def next_event(self) -> float:
        """When something will next happen."""
        while self.ahead and self._cells.runs[self.ahead[0][2].job] != self.ahead[0][2].run:
            heapq.heappop(self.ahead)
        return self.ahead[0][0] if self.ahead else math.inf

    def pop(self) -> Happens | None:
        """The next entry; None when it does not come any more."""
        event = heapq.heappop(self.ahead)[2]
        return event if self._cells.runs[event.job] == event.run else None
