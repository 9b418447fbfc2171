"""The remit: a job may be acted on if it is in scope and still is the job that the last look showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ScopeSection
from slurm_fair.model.columns import Ints, find
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.scope import Territory, in_scope, left_alone

_IDENTITY = ("base", "user", "account")


@dataclass(frozen=True, slots=True)
class Remit:
    """The scope, and the job that each record belonged to at the last look."""

    territory: Territory
    scope: ScopeSection
    record: Ints  # in order
    who: NDArray[np.void]  # of each record

    @classmethod
    def of(cls, rows: NDArray[np.void], territory: Territory, scope: ScopeSection) -> Self:
        """The jobs on which a look allows acts."""
        order = np.argsort(rows["record"], kind="stable")
        return cls(territory, scope, rows["record"][order].astype(np.int64), rows[order])

    def objections(self, rows: NDArray[np.void], queue: Queue, details: JobDetails) -> dict[int, str]:
        """The reasons against acts on jobs of a fresh read, by record."""
        inside = in_scope(rows, queue, self.territory, self.scope)
        alone, _ = left_alone(rows, queue, details, self.territory, self.scope)
        at = find(self.record, rows["record"].astype(np.int64))
        seen = at >= 0
        same = seen.copy()
        for name in _IDENTITY:
            same[seen] &= self.who[name][at[seen]] == rows[name][seen]
        reasons = np.select(
            [~seen, ~same, ~inside, alone],
            [
                "the last look did not show it",
                "its user or account is not the one that was looked at",
                "it is outside of the scope",
                "it is left alone",
            ],
            default="",
        )
        odd = np.flatnonzero(reasons != "")
        return dict(zip(rows["record"][odd].tolist(), reasons[odd].tolist(), strict=True))
