"""Mutable columns that grow: each name is a row of a matrix of its kind, so a look at many jobs is few gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Bools, Codes, Floats, Ints

INTS = (
    "key", "record", "restarts", "tenant", "user", "partition", "gpus", "nodes", "gpus_per_node", "gpu_type",
    "cpus", "memory_mb", "array_limit",
)  # fmt: skip
FLOATS = ("submit", "gate_until", "gate_set", "start", "end", "time_limit_seconds", "weight")
BOOLS = ("gated", "pinned", "checkpoints", "requeueable")
CODES = ("state", "blocked", "acknowledged")
# What only the virtual cluster knows, and the jobs' reports may tell in part.
HIDDEN_FLOATS = (
    "work",  # seconds of the whole job at rate 1
    "done",  # of them done when its last run ended, or when it saved
    "saved",  # of them safe in a checkpoint
    "rate",  # of the present run
    "progress_from",  # instant from which the present run makes progress
    "stopped_at",  # instant at which the last run ended; -inf = never ran
    "eligible_at",  # Slurm does not start it before
    "deadline",
    "declared",
    "spread_rate",
)
HIDDEN_INTS = ("first_regime", "last_regime", "model", "runs", "preemptions")


class Matrix:
    """Rows with names over a growing number of columns."""

    def __init__(self, names: tuple[str, ...], dtype: type[np.generic]) -> None:
        self.names, self._dtype = names, dtype
        self.all: NDArray[Any] = np.zeros((len(names), 0), dtype=dtype)

    def grow(self, capacity: int) -> None:
        """Room for so many."""
        wider = np.zeros((len(self.names), capacity), dtype=self._dtype)
        wider[:, : self.all.shape[1]] = self.all
        self.all = wider

    def of(self, rows: Ints) -> dict[str, NDArray[Any]]:
        """The columns at these rows, by name."""
        picked = self.all.take(rows, axis=1)
        return dict(zip(self.names, picked, strict=True))


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
    spread_rate: Floats
    first_regime: Ints
    last_regime: Ints
    model: Ints
    runs: Ints
    preemptions: Ints

    def __init__(self, capacity: int = 0) -> None:
        self.count = 0
        self.ints, self.floats = Matrix(INTS, np.int64), Matrix(FLOATS, np.float64)
        self.bools, self.codes = Matrix(BOOLS, np.bool_), Matrix(CODES, np.int8)
        self.hidden, self.hidden_ints = Matrix(HIDDEN_FLOATS, np.float64), Matrix(HIDDEN_INTS, np.int64)
        self._matrices = (self.ints, self.floats, self.bools, self.codes, self.hidden, self.hidden_ints)
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        for matrix in self._matrices:
            matrix.grow(capacity)
            for name, row in zip(matrix.names, matrix.all, strict=True):
                setattr(self, name, row)

    def add(self, count: int) -> slice:
        """Room for so many more jobs; returns their rows."""
        rows = slice(self.count, self.count + count)
        if rows.stop > self.ints.all.shape[1]:
            self._grow(max(rows.stop, 2 * self.count))
        self.count = rows.stop
        return rows

    def seen(self, rows: Ints) -> dict[str, NDArray[Any]]:
        """What a look shows of these jobs, by the names of the snapshot's job table."""
        return self.ints.of(rows) | self.floats.of(rows) | self.bools.of(rows) | self.codes.of(rows)
