"""Compare the plan with the cluster, and work out the acts that make the cluster follow the plan."""

from slurm_fair.reconcile.diff import actions_for
from slurm_fair.reconcile.follow import follow, taken_back
from slurm_fair.reconcile.guard import Limits, hold_back
from slurm_fair.reconcile.lease_changes import apply_outcomes, apply_plan

__all__ = [
    "Limits",
    "actions_for",
    "apply_outcomes",
    "apply_plan",
    "follow",
    "hold_back",
    "taken_back",
]
