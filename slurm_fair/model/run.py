"""Finished and open runs of jobs as accounting knows them: the facts that charges settle on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from slurm_fair.model.columns import Codes, Columns, Floats, Ints
from slurm_fair.model.job import JobState


@dataclass(frozen=True)
class RunTable(Columns):
    """One row per run (a requeued job has several), sorted by (key, start)."""

    key: Ints
    tenant: Ints  # index into `tenants`
    tenants: tuple[str, ...]
    user: Ints  # index into `users`
    users: tuple[str, ...]
    gpus: Ints
    submit: Floats  # of this incarnation
    start: Floats  # 0 = never started
    end: Floats  # 0 = still running or waiting
    state: Codes  # JobState
    requeued: Codes  # 1 = this run ended in a requeue, so the job lived on

    def of_tenants(self, known: Collection[str]) -> Self:
        """The runs of these tenants, and no other tenant's name."""
        known = frozenset(known)
        names = tuple(name for name in self.tenants if name in known)
        if names == self.tenants:
            return self
        at = {name: number for number, name in enumerate(names)}
        number = np.array([at.get(name, -1) for name in self.tenants], dtype=np.int64)[self.tenant]
        kept = self.take(number >= 0)
        return replace(kept, tenant=number[number >= 0], tenants=names)

    def as_it_stood(self, instant: float) -> Self:
        """The table that accounting would have told at an instant, without what it knows of the time since."""
        again = np.zeros(len(self), dtype=bool)  # other rows of one submission: its job was resized
        again[1:] = (self.key[1:] == self.key[:-1]) & (self.submit[1:] == self.submit[:-1])
        some = self.take(np.flatnonzero((self.submit <= instant) & ~(again & (self.start > instant))))
        unstarted, unended = some.start > instant, some.end > instant
        start = np.where(unstarted, 0.0, some.start)
        lives = np.where(start > 0, JobState.RUNNING, JobState.WAITING)
        return some.with_columns(
            start=start,
            end=np.where(unended, 0.0, some.end),
            state=np.where(unstarted | unended, lives, some.state).astype(some.state.dtype),
            requeued=np.where(unended, 0, some.requeued).astype(some.requeued.dtype),
        )
