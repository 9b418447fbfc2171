"""Mutable columns that grow: what the virtual cluster knows of its jobs."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from inspect import get_annotations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobTable
from slurm_fair.model.columns import DTYPES, Bools, Codes, Floats, Ints

# What a look shows of a job.
_CHANGING = (
    "record", "restarts", "gpus", "submit", "gate_until", "gate_set", "start", "end",
    "gated", "pinned", "state", "blocked", "acknowledged",
)  # fmt: skip
# The same from its submission on, and for all jobs of a trace that says nothing of it.
_STEADY = (
    "key", "tenant", "user", "partition", "usual_gpus", "nodes", "most_nodes", "gpus_per_node", "gpu_type",
    "cpus", "memory_mb", "array_limit", "time_limit_seconds", "weight",
    "checkpoints", "requeueable", "restartable",
)  # fmt: skip
_BY_PLACE = "gpu_weight"  # changes with each start where GPUs are weighed, else never
_MOST_LENGTHS = 512


class Steady:
    """Columns that stay as they are for each job.

    Those of the jobs of the last look are kept. A column whose entries are all alike is cut once for each number
    of jobs, and kept.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        alike = {name: _alike(column) for name, column in columns.items()}
        # As long as there are jobs, where they are alike.
        self._alike = [(name, column) for name, column in alike.items() if column is not None]
        self._differ = {name: column for name, column in columns.items() if alike[name] is None}
        self._made: dict[int, dict[str, NDArray[Any]]] = {}  # by number of jobs
        self._rows: Ints | None = None  # of the last look
        self._shown: dict[str, NDArray[Any]] = {}

    def at(self, rows: Ints) -> dict[str, NDArray[Any]]:
        """The columns at these rows."""
        count = len(rows)
        made = self._made.get(count)
        if made is None:
            if len(self._made) >= _MOST_LENGTHS:
                self._made.clear()
            made = self._made[count] = {name: column[:count] for name, column in self._alike}
        if rows is not self._rows:
            self._rows, self._shown = rows, _taken(self._differ, rows)
        return made | self._shown


def _taken(columns: Mapping[str, NDArray[Any]], rows: Ints) -> dict[str, NDArray[Any]]:
    """The entries of these rows, never to change."""
    taken = {name: column[rows] for name, column in columns.items()}
    for column in taken.values():
        column.setflags(write=False)
    return taken


def _alike(column: NDArray[Any]) -> NDArray[Any] | None:
    """The column itself, never to change, where its entries are the same; else None."""
    if not len(column) or not np.array_equal(
        column, np.broadcast_to(column[0], column.shape), equal_nan=True
    ):
        return None
    alike = column.copy()
    alike.setflags(write=False)
    return alike


class Changing:
    """Columns that change for some jobs from look to look. What did not change stays from the last look."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], noted: set[int]) -> None:
        """`noted` are the jobs that changed since the last look."""
        self._columns, self._noted = columns, noted
        self._rows: Ints | None = None  # of the last look
        self._shown: dict[str, NDArray[Any]] = {}

    def at(self, rows: Ints) -> dict[str, NDArray[Any]]:
        """The columns at these rows, which ascend. They stay as they are, whatever happens later."""
        if rows is not self._rows:
            self._rows, self._shown = rows, _taken(self._columns, rows)
        elif self._noted and rows.size:
            noted = np.array(list(self._noted))
            place = rows.searchsorted(noted)
            here = rows.take(place, mode="clip") == noted
            place, noted = place[here], noted[here]
            self._shown = {name: column.copy() for name, column in self._shown.items()}
            for name, column in self._shown.items():
                column[place] = self._columns[name][noted]
                column.setflags(write=False)
        self._noted.clear()
        return dict(self._shown)


class NotingCells:
    """Cells of one column that note each job that is written to."""

    def __init__(self, cells: memoryview, noted: set[int]) -> None:
        self._cells, self._noted = cells, noted

    def __getitem__(self, job: Any) -> Any:
        return self._cells[job]

    def __setitem__(self, job: Any, value: Any) -> None:
        self._cells[job] = value
        self._noted.add(job)


class Cells:
    """The same columns, to read and write one number at a time: plain Python numbers, faster than numpy's.

    What a look shows of a job is written here from its submission on: so the look knows who changed.
    """

    key: MutableSequence[int]
    record: MutableSequence[int]
    restarts: MutableSequence[int]
    tenant: MutableSequence[int]
    user: MutableSequence[int]
    gpus: MutableSequence[int]
    usual_gpus: MutableSequence[int]
    nodes: MutableSequence[int]
    gpus_per_node: MutableSequence[int]
    gpu_type: MutableSequence[int]
    submit: MutableSequence[float]
    gate_until: MutableSequence[float]
    gate_set: MutableSequence[float]
    start: MutableSequence[float]
    end: MutableSequence[float]
    time_limit_seconds: MutableSequence[float]
    gpu_weight: MutableSequence[float]
    gated: MutableSequence[bool]
    pinned: MutableSequence[bool]
    checkpoints: MutableSequence[bool]
    requeueable: MutableSequence[bool]
    state: MutableSequence[int]
    blocked: MutableSequence[int]
    acknowledged: MutableSequence[int]
    work: MutableSequence[float]
    done: MutableSequence[float]
    saved: MutableSequence[float]
    rate: MutableSequence[float]
    progress_from: MutableSequence[float]
    stopped_at: MutableSequence[float]
    eligible_at: MutableSequence[float]
    deadline: MutableSequence[float]
    at_home: MutableSequence[int]
    runs: MutableSequence[int]
    preemptions: MutableSequence[int]


class JobColumns:
    """Columns of every job that the virtual cluster was ever given, in order of submission."""

    # What a look shows.
    key: Ints
    record: Ints
    restarts: Ints
    tenant: Ints
    user: Ints
    partition: Ints
    gpus: Ints
    usual_gpus: Ints
    nodes: Ints
    most_nodes: Ints
    gpus_per_node: Ints
    gpu_type: Ints
    cpus: Ints
    memory_mb: Ints
    array_limit: Ints
    submit: Floats
    gate_until: Floats
    gate_set: Floats
    start: Floats
    end: Floats
    time_limit_seconds: Floats
    weight: Floats
    gpu_weight: Floats
    gated: Bools
    pinned: Bools
    checkpoints: Bools
    requeueable: Bools
    restartable: Bools
    state: Codes
    blocked: Codes
    acknowledged: Codes
    # How far it is: only the virtual cluster knows, and the jobs' reports may tell.
    done: Floats  # seconds of work that were done when its last run ended, or when it saved
    rate: Floats  # of the present run
    progress_from: Floats  # instant from which the present run makes progress
    # The same from its submission on: what its user declared, and what nobody knows yet.
    work: Floats  # seconds of the whole job at rate 1
    deadline: Floats
    declared: Floats
    scaling: Floats
    first_regime: Ints
    last_regime: Ints
    model: Ints
    mode: Codes
    at_home: Ints  # nodes on which its work takes `work` seconds; on as few as can be where that is more
    # Hidden.
    saved: Floats  # seconds of work that are safe in a checkpoint
    stopped_at: Floats  # instant at which the last run ended; -inf = never ran
    eligible_at: Floats  # Slurm does not start it before
    runs: Ints
    preemptions: Ints

    def __init__(self, capacity: int = 0, *, weighed: bool = False) -> None:
        self.count, self.cells = 0, Cells()
        self._names = (*_CHANGING, _BY_PLACE) if weighed else _CHANGING
        self._steady_names = _STEADY if weighed else (*_STEADY, _BY_PLACE)
        self._noted: set[int] = set()
        self._steady: Steady | None = None  # of the jobs that there are
        for name, kind in get_annotations(JobColumns).items():
            setattr(self, name, np.zeros(0, dtype=DTYPES[str(kind)]))
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        for name in get_annotations(JobColumns):
            column = getattr(self, name)
            wider = np.zeros(capacity, dtype=column.dtype)
            wider[: len(column)] = column
            setattr(self, name, wider)
            setattr(
                self.cells, name, NotingCells(wider.data, self._noted) if name in self._names else wider.data
            )
        self._changing = Changing({name: getattr(self, name) for name in self._names}, self._noted)

    def add(self, count: int) -> slice:
        """Room for so many more jobs; returns their rows."""
        rows = slice(self.count, self.count + count)
        if rows.stop > len(self.key):
            self._grow(max(rows.stop, 2 * self.count))
        self.count, self._steady = rows.stop, None
        self.gpu_weight[rows] = 1.0
        return rows

    def seen(self, rows: Ints) -> JobTable:
        """The table that a look shows of these jobs: as they are now, whatever happens later."""
        if self._steady is None:
            self._steady = Steady({name: getattr(self, name)[: self.count] for name in self._steady_names})
        return JobTable.unchecked(self._changing.at(rows) | self._steady.at(rows))

    def renumber_tenants(self, number: Ints) -> None:
        """Give each job's tenant its new number; `number` is by the old one."""
        self.tenant[: self.count] = number[self.tenant[: self.count]]
        self._steady = None

    def progress(self, rows: Ints) -> tuple[Floats, Floats]:
        """The speed of these jobs now, and since when they have it."""
        return self.rate[rows], self.progress_from[rows]
