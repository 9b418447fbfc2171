"""Knowledge of classes of jobs, and the answers that are worked out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from slurm_fair.knowing.classes import NO_CLASS
from slurm_fair.model import Snapshot, Speeds
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.throughput import (
    Ends,
    Estimator,
    JobClass,
    Keeping,
    Known,
    Links,
    RunTimes,
    Samples,
    estimator,
    expected_run_times,
    learned,
    learned_ends,
    speeds_for,
)

WORK_OUT_SECONDS = 30.0  # between two fits of all speeds, unless a class is new
_STALE_SECONDS = 3600.0  # what was learned grows older
Table = TypeVar("Table", Samples, Ends)
_Asked = tuple[tuple[JobClass, ...], tuple[str, ...], tuple[int, ...], tuple[int, ...], tuple[str, ...]]


@dataclass
class Knowledge:
    """Measured speeds and run times of job classes: it takes reports and ends, and gives estimates."""

    known: Known
    keeping: Keeping
    links: Links = field(default_factory=Links.unknown)
    changed: bool = False  # since it was kept last
    measured: frozenset[JobClass] = frozenset()
    _worked_out: Estimator | None = None
    _at: float = -np.inf  # when it was
    _behind: bool = False  # something was learned since
    _table: tuple[_Asked, Speeds] | None = None

    def __post_init__(self) -> None:
        self.measured = frozenset(self.known.samples.classes)

    def learn(self, samples: Samples, now: float) -> None:
        """Take in samples of speeds."""
        if not len(samples):
            return
        self.known = learned(self.known, samples, now, self.keeping)
        measured = frozenset(self.known.samples.classes)
        if measured != self.measured:
            self._at = -np.inf
        self.measured, self.changed, self._behind = measured, True, True

    def learn_ends(self, ends: Ends, now: float) -> None:
        """Take in run times of jobs that ended."""
        if len(ends):
            self.known, self.changed = learned_ends(self.known, ends, now, self.keeping), True

    def forget_others(self, tenants: frozenset[str]) -> None:
        """Drop the classes of tenants that the ledger has forgotten."""
        samples, ends = _of(self.known.samples, tenants), _of(self.known.ends, tenants)
        if (len(samples), len(ends)) != (len(self.known.samples), len(self.known.ends)):
            self.known, self.changed, self._behind = Known(samples, ends), True, True

    def speeds(self, classes: Sequence[JobClass], snapshot: Snapshot, now: float) -> Speeds:
        """The speeds of jobs of these classes, row by row, in every shape that one of them can have."""
        named = [one if one in self.measured else NO_CLASS for one in classes]
        every = tuple(sorted(set(named) - {NO_CLASS}))
        number = {one: at for at, one in enumerate((*every, NO_CLASS))}
        rows = np.array([number[one] for one in named], dtype=np.int64)
        asked = every, snapshot.gpu_types, _sizes(snapshot), _node_gpus(snapshot), snapshot.nodes.names
        self._work_out(now)
        if self._table is None or self._table[0] != asked:
            assert self._worked_out is not None
            self._table = asked, speeds_for(self._worked_out, (*every, NO_CLASS), *asked[1:])
        return self._table[1].for_rows(rows)

    def _work_out(self, now: float) -> None:
        """Fit anew what has changed, and rarely what has only grown older."""
        patience = WORK_OUT_SECONDS if self._behind else _STALE_SECONDS
        if self._worked_out is None or not 0 <= now - self._at < patience:
            self._worked_out = estimator(self.known, self.links, now, self.keeping)
            self._at, self._behind, self._table = now, False, None

    def run_times(self, classes: Sequence[JobClass], ran: Floats, now: float) -> RunTimes:
        """Run times of ended jobs of each class longer than each has run; equal questions are asked once."""
        ended = frozenset(self.known.ends.classes)
        rows = [row for row, one in enumerate(classes) if one in ended]
        asked: dict[tuple[JobClass, float], int] = {}
        at = [asked.setdefault((classes[row], ran.item(row)), len(asked)) for row in rows]
        found = expected_run_times(
            self.known,
            [one for one, _ in asked],
            np.array([seconds for _, seconds in asked]),
            now,
            self.keeping,
        )
        return RunTimes(
            _by_row(found.seconds, at, rows, len(classes), np.nan),
            _by_row(found.deviation, at, rows, len(classes), np.nan),
            _by_row(found.count, at, rows, len(classes), 0.0),
        )


def _by_row(column: Floats, at: list[int], rows: list[int], count: int, unknown: float) -> Floats:
    """The answers by row, and `unknown` for rows that were not asked for."""
    by_row = np.full(count, unknown)
    by_row[rows] = column[at]
    return by_row


def _of(table: Table, tenants: frozenset[str]) -> Table:
    """The rows of the classes of these tenants."""
    there = np.array([one.tenant in tenants for one in table.classes], dtype=bool)
    return table if there.all() else table.take(there[table.job_class])


def _sizes(snapshot: Snapshot) -> tuple[int, ...]:
    gpus: Ints = snapshot.jobs.gpus[~snapshot.jobs.done]
    elastic = snapshot.sizes.gpus if snapshot.sizes is not None else np.zeros(0, dtype=np.int64)
    return tuple(np.unique(np.concatenate([[1], gpus[gpus > 0], elastic])).tolist())


def _node_gpus(snapshot: Snapshot) -> tuple[int, ...]:
    """GPUs of the largest node of each type."""
    most = np.ones(len(snapshot.gpu_types), dtype=np.int64)
    np.maximum.at(most, snapshot.nodes.gpu_type, snapshot.nodes.gpus)
    return tuple(most.tolist())
