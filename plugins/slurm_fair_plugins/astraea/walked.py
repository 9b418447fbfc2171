"""The jobs that a walk served, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slurm_fair.model import Placement
from slurm_fair.policy import (
    Ints,
    Walk,
    placed,
)
from slurm_fair.policy.draft import Saying
from slurm_fair_plugins.astraea.words import (
    FILLS,
    MISFIT,
    OWED_MOST,
    TENANT_SKIPPED,
)


class Walked(NamedTuple):
    """The result of a round's walk; candidates by number."""

    places: Placement
    granted: list[int]
    filled: list[int]  # those of them that got what was left over
    misfits: list[int]
    skipped: Ints  # those whose tenant has a misfit
    promised: list[int]  # contested ones whose GPUs were promised to others before
    evicted: list[int]  # contested ones that lose their leases

    @classmethod
    def of(cls, walk: Walk, order: Ints, filled: list[int], promised: list[int]) -> Walked:
        """The part of a walk that is kept: the plan may be asked why for long."""
        granted, rows, skipped = list(walk.granted), walk.candidates.rows, order[:0]
        if walk.misfits:
            waits = order[walk.candidates.contested[order] < 0]
            skipped = waits[walk.skipped(waits)]
        places = placed(rows[granted], list(walk.granted.values())) if granted else Placement.none()
        return cls(places, granted, filled, walk.misfits, skipped, promised, walk.contest.evicted)

    def why(self, rows: Ints) -> Iterator[Saying]:
        """Reasons why jobs that wait get their gangs, or do not; `rows` are those of the candidates."""
        yield rows[self.skipped], TENANT_SKIPPED
        for some, text in ((self.misfits, MISFIT), (self.granted, OWED_MOST), (self.filled, FILLS)):
            if some:
                yield rows[some], text
