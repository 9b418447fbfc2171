"""The names and ids of the jobs that a virtual cluster has been given so far."""

from __future__ import annotations

import math
from array import array

import numpy as np

from slurm_fair.model import pack_keys
from slurm_fair.model.columns import Ints
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.sim.world.columns import JobColumns


class Roster:
    """Keys and records of jobs; those of a trace come at their times, others when somebody submits them."""

    def __init__(self, jobs: JobColumns) -> None:
        self._jobs = jobs
        self._of_trace = jobs.count
        self._row: dict[int, int] = {}  # of others; those of the trace are numbered from 1 on
        self._arrivals: array[float] = array("d", [*jobs.submit[: jobs.count].tolist(), math.inf])
        self._next = 0  # first job of the trace that is not submitted yet
        self.next_arrival: float = self._arrivals[0]  # when it is
        self._tasks: dict[int, list[int]] = {}  # rows of the tasks that share an array's record
        self._number = jobs.count + 1
        self.living: Ints = np.zeros(0, dtype=np.int64)  # rows that a look shows, ascending

    # -- jobs of the trace ------------------------------------------------------------------------------------

    def arrive(self, instant: float) -> None:
        """Admit the jobs of the trace that are submitted by then."""
        first = self._next
        while self._arrivals[self._next] <= instant:
            self._next += 1
        self.next_arrival = self._arrivals[self._next]
        self._add(np.arange(first, self._next))

    @property
    def exhausted(self) -> bool:
        """Nobody of the trace is still to come."""
        return self._next == self._of_trace

    # -- others -----------------------------------------------------------------------------------------------

    def name(self, rows: slice, tasks: tuple[int, ...]) -> int:
        """Give new rows their keys: a job, or the tasks of an array, which share one record."""
        base = self.number()
        these = np.array(tasks or (-1,), dtype=np.int64)
        self._jobs.key[rows] = pack_keys(np.full(len(these), base), these)
        self._jobs.record[rows] = base
        numbers = range(rows.start, rows.stop)
        self._row |= dict(zip(self._jobs.key[rows].tolist(), numbers, strict=True))
        if tasks:
            self._tasks[base] = list(numbers)
        self._add(np.arange(rows.start, rows.stop))
        return base

    def number(self) -> int:
        """A record's number that nobody had before."""
        self._number += 1
        return self._number - 1

    def split(self, job: int) -> None:
        """A task that goes its own way gets a record of its own."""
        mine = self._tasks.get(int(self._jobs.record[job])) if self._tasks else None
        if mine:
            mine.remove(job)
            self._jobs.cells.record[job] = self.number()

    def tasks_of(self, record: int) -> tuple[int, ...]:
        """Rows of the tasks that share a record."""
        return tuple(self._tasks.get(record, ()))

    def row(self, key: int) -> int:
        """Row of a job that has been submitted, else -1."""
        row = (key >> TASK_BITS) - 1
        if 0 <= row < self._next and self._jobs.cells.key[row] == key:
            return row
        return self._row.get(key, -1)

    def _add(self, rows: Ints) -> None:
        living = self.living
        behind = not living.size or not rows.size or living.item(-1) < rows.item(0)
        together = np.concatenate((living, rows))
        self.living = together if behind else np.sort(together)
