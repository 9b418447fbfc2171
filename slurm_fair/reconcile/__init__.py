"""From what is planned and what is seen to what must be done about the difference."""

from slurm_fair.reconcile.diff import actions_for, requeues_for
from slurm_fair.reconcile.follow import follow
from slurm_fair.reconcile.guard import Limits, hold_back
from slurm_fair.reconcile.lease_changes import promise, settle

__all__ = [
    "Limits",
    "actions_for",
    "follow",
    "hold_back",
    "promise",
    "requeues_for",
    "settle",
]
