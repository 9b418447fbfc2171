"""Notice that a record bears another job, or another submission of its job, than at the look before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

RunId: TypeAlias = tuple[int, int]  # record and restarts
NOBODY: Collection[RunId] = frozenset()


@dataclass(slots=True)
class Bearers:
    """The submissions of the last look. What is remembered by record and restarts alone is as old as they are.

    Slurm gives ids again (slurm-facts: ids-come-again).
    """

    _submits: Mapping[RunId, float] = field(default_factory=dict)

    def changed(self, submits: Mapping[RunId, float]) -> Collection[RunId]:
        """The runs of this look that had another submission at the last one."""
        before, self._submits = self._submits, submits
        if submits == before:
            return NOBODY
        return {who for who, submit in submits.items() if before.get(who, submit) != submit}
