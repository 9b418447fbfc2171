"""The jobs that a walk served, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slurm_fair.model import Placement
from slurm_fair.model.columns import among
from slurm_fair.policy import (
    Candidates,
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
    shut: Ints  # tenants that got no more gangs placed after a misfit
    promised: list[int]  # contested ones whose GPUs were promised to others before
    evicted: list[int]  # contested ones that lose their leases

    @classmethod
    def of(cls, walk: Walk, filled: list[int], promised: list[int]) -> Walked:
        """The part of a walk that is kept: the plan may be asked why for long."""
        granted, rows = list(walk.granted), walk.candidates.rows
        places = placed(rows[granted], list(walk.granted.values())) if granted else Placement.none()
        return cls(places, granted, filled, walk.misfits, walk.shut, promised, walk.contest.evicted)

    def why(self, candidates: Candidates, order: Ints) -> Iterator[Saying]:
        """Reasons why jobs that wait get their gangs, or do not; `order` is that of the picks."""
        rows, waits = candidates.rows, order[candidates.contest_place[order] < 0]
        yield rows[waits[among(candidates.tenant[waits], self.shut)]], TENANT_SKIPPED
        for some, text in ((self.misfits, MISFIT), (self.granted, OWED_MOST), (self.filled, FILLS)):
            if some:
                yield rows[some], text
