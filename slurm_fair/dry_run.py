"""A run that does not act: a shadow beside Slurm, or a daemon that is paused.

The port is wrapped, so that every act is refused; and a tick leaves behind what is so when nothing was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slurm_fair.model import Action, Blind, LeasePhase, Leases, Outcome, Plan, Result, Snapshot, Untried
from slurm_fair.policy.turns import with_turns_of
from slurm_fair.policy.view import View
from slurm_fair.ports import Cluster


class DryRun:
    """A Cluster that looks and never acts."""

    acts = False

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        return self.cluster.observe(asked)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """A dry run does nothing."""
        why = Untried.DRY_RUN
        return tuple(Outcome(each, Result.REFUSED, why.value, later=True, untried=why) for each in actions)


def without_effect(leases: Leases, plan: Plan, view: View) -> tuple[Leases, Plan]:
    """The leases and the plan of a tick that does not act: nothing starts, so nothing is promised or tried."""
    memory = with_turns_of(plan.memory, view.memory)
    return _without_promises(leases), replace(plan, memory=memory)


def _without_promises(leases: Leases) -> Leases:
    revoking = leases.revoking
    phase = np.where(revoking, np.int8(LeasePhase.RUNNING), leases.phase).astype(np.int8)
    asked = np.where(revoking, 0.0, leases.asked)  # whoever is revoked later is asked anew
    return leases.with_columns(phase=phase, asked=asked).take(~leases.promised)
