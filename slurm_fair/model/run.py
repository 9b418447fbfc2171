"""Finished and open runs of jobs as accounting knows them: the facts that charges settle on."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Codes, Columns, Floats, Ints, check_lengths


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

    def __post_init__(self) -> None:
        check_lengths(self)
