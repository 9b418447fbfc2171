"""What lies ahead of the jobs of a virtual cluster, in order of time."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from slurm_fair.sim.columns import JobColumns


@dataclass(frozen=True, slots=True)
class Happens:
    """Something that will happen to a job unless its run is another one by then."""

    what: str  # end, limit, saved, resumes, leaves, eligible, begins, opens
    job: int
    run: int


class Agenda:
    """A heap; what was expected of an earlier run of a job never comes."""

    def __init__(self, jobs: JobColumns) -> None:
        self._jobs = jobs
        self._ahead: list[tuple[float, int, Happens]] = []
        self._count = 0

    def expect(self, instant: float, what: str, job: int) -> None:
        """Note what will happen to a job's present run."""
        self._count += 1
        event = Happens(what, job, int(self._jobs.runs[job]))
        heapq.heappush(self._ahead, (instant, self._count, event))

    def next_entry(self) -> float:
        """When the next entry is due, whether it will still come or not."""
        return self._ahead[0][0] if self._ahead else math.inf

    def next_event(self) -> float:
        """When something will next happen."""
        while self._ahead and self._jobs.runs[self._ahead[0][2].job] != self._ahead[0][2].run:
            heapq.heappop(self._ahead)
        return self.next_entry()

    def pop(self) -> Happens | None:
        """The next entry; None when it does not come any more."""
        event = heapq.heappop(self._ahead)[2]
        return event if self._jobs.runs[event.job] == event.run else None
