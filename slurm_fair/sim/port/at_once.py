"""Requeues in the very tick that asks: a virtual job with nothing to save has answered when it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurm_fair.model import Action, Outcome, Snapshot
from slurm_fair.sim.port.cluster import VirtualCluster


class RequeuesAtOnce:
    """The Cluster port of a virtual cluster, with the requeues of jobs that answer at once."""

    acts = True

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster

    def observe(self, asked: Mapping[int, float]) -> Snapshot:
        return self.cluster.observe(asked)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Do what still applies; the outcomes of these requeues follow."""
        outcomes = self.cluster.actuate(actions)
        answered = self.cluster.requeues_of_answered(outcomes)
        return outcomes + self.cluster.actuate(answered) if answered else outcomes
