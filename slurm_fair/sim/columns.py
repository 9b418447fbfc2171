"""Mutable columns that grow: each name is a row of a matrix of its kind, so a look at many jobs is few gathers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobTable
from slurm_fair.model.columns import Bools, Codes, Floats, Ints

# What a look shows of a job.
INTS = (
    "key", "record", "restarts", "tenant", "user", "partition", "gpus", "nodes", "most_nodes", "gpus_per_node",
    "gpu_type", "cpus", "memory_mb", "array_limit",
)  # fmt: skip
FLOATS = ("submit", "gate_until", "gate_set", "start", "end", "time_limit_seconds", "weight")
BOOLS = ("gated", "pinned", "checkpoints", "requeueable")
CODES = ("state", "blocked", "acknowledged")
# How far it is: only the virtual cluster knows, and the jobs' reports may tell.
PROGRESS = (
    "done",  # seconds of work that were done when its last run ended, or when it saved
    "rate",  # of the present run
    "progress_from",  # instant from which the present run makes progress
)
# The same from its submission on: what its user declared, and what nobody knows yet.
GIVEN_FLOATS = (
    "work",  # seconds of the whole job at rate 1
    "deadline",
    "declared",
    "scaling",
)
GIVEN_INTS = (
    "first_regime", "last_regime", "model",
    "at_home",  # nodes on which its work takes `work` seconds; on as few as can be where that is more
)  # fmt: skip
HIDDEN_FLOATS = (
    "saved",  # seconds of work that are safe in a checkpoint
    "stopped_at",  # instant at which the last run ended; -inf = never ran
    "eligible_at",  # Slurm does not start it before
)
HIDDEN_INTS = ("runs", "preemptions")


class Matrix:
    """Rows with names over a growing number of columns; its kinds of numbers take equally many bytes."""

    def __init__(self, **kinds: tuple[str, ...]) -> None:
        self.names = tuple(chain.from_iterable(kinds.values()))
        self._parts: list[tuple[slice, np.dtype[Any]]] = []
        first = 0
        for kind, names in kinds.items():
            self._parts.append((slice(first, first + len(names)), np.dtype(kind)))
            first += len(names)
        self.all: NDArray[Any] = np.zeros((first, 0), dtype=self._parts[0][1])

    def grow(self, capacity: int) -> None:
        """Room for so many."""
        wider = np.zeros((len(self.all), capacity), dtype=self.all.dtype)
        wider[:, : self.all.shape[1]] = self.all
        self.all = wider

    def of(self, rows: Ints) -> Iterator[tuple[str, NDArray[Any]]]:
        """The columns at these rows, by name."""
        return self.named(self.all.take(rows, axis=1))

    def named(self, table: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
        """The rows of such a matrix by name, each as its kind."""
        parts = [table[part].view(kind) for part, kind in self._parts]
        return zip(self.names, chain.from_iterable(parts), strict=True)


class JobColumns:
    """What the virtual cluster knows of every job it was ever given, in order of submission."""

    key: Ints
    record: Ints
    restarts: Ints
    tenant: Ints
    user: Ints
    partition: Ints
    gpus: Ints
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
    gated: Bools
    pinned: Bools
    checkpoints: Bools
    requeueable: Bools
    state: Codes
    blocked: Codes
    acknowledged: Codes
    work: Floats
    done: Floats
    saved: Floats
    rate: Floats
    progress_from: Floats
    stopped_at: Floats
    eligible_at: Floats
    deadline: Floats
    declared: Floats
    scaling: Floats
    first_regime: Ints
    last_regime: Ints
    model: Ints
    at_home: Ints
    runs: Ints
    preemptions: Ints

    def __init__(self, capacity: int = 0) -> None:
        self.count = 0
        self._seen, self._seen_codes = Matrix(int64=INTS, float64=FLOATS), Matrix(bool=BOOLS, int8=CODES)
        self._progress = Matrix(float64=PROGRESS)
        others = Matrix(int64=GIVEN_INTS + HIDDEN_INTS, float64=GIVEN_FLOATS + HIDDEN_FLOATS)
        self._matrices = (self._seen, self._seen_codes, self._progress, others)
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        for matrix in self._matrices:
            matrix.grow(capacity)
            for name, row in matrix.named(matrix.all):
                setattr(self, name, row)

    def add(self, count: int) -> slice:
        """Room for so many more jobs; returns their rows."""
        rows = slice(self.count, self.count + count)
        if rows.stop > len(self.key):
            self._grow(max(rows.stop, 2 * self.count))
        self.count = rows.stop
        return rows

    def seen(self, rows: Ints) -> JobTable:
        """What a look shows of these jobs."""
        return JobTable.made_of(chain(self._seen.of(rows), self._seen_codes.of(rows)))

    def progress(self, rows: Ints) -> Floats:
        """How far these jobs are: [what is told of it, job]."""
        return self._progress.all.take(rows, axis=1)
