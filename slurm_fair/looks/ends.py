"""The instant at which leases are decided on next."""

from __future__ import annotations

import math

from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.model.columns import Bools
from slurm_fair.model.reservation import next_due
from slurm_fair.policy.turns import next_renewals


def next_decision_on_leases(
    standing: Standing, terms: LeaseTerms, which: Bools, since: float = -math.inf
) -> float:
    """The first renewal of these leases after an instant, or the first end of a turn or of a wait for nodes."""
    leases, due = standing.leases, next_due(standing.memory)
    instants = next_renewals(leases.key[which], leases.end[which], terms, standing.memory)
    first = float(instants[instants > since].min(initial=math.inf))
    return min(first, due) if due > since else first
