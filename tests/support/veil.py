"""A virtual cluster that cannot always be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_fair.model import Action, Blind, Outcome, Result, Snapshot
from slurm_fair.ports import Clock, Cluster


@dataclass(slots=True)
class Veil:
    """A Cluster in front of another one. While it has a reason, it shows nothing and does nothing."""

    cluster: Cluster
    clock: Clock
    reason: str = ""

    @property
    def acts(self) -> bool:
        """True if the cluster behind it acts."""
        return self.cluster.acts

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        """The cluster, or why it cannot be seen."""
        return Blind(self.clock.now(), self.reason) if self.reason else self.cluster.observe(asked)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Nothing reaches a cluster that cannot be seen; the next look may try again."""
        if self.reason:
            return tuple(Outcome(a, Result.REFUSED, f"not tried: {self.reason}", later=True) for a in actions)
        return self.cluster.actuate(actions)
