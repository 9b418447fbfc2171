"""The instant at which leases are decided on next."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.model.columns import Bools, among
from slurm_fair.model.reservation import next_due
from slurm_fair.policy.turns import has_turns, turning


def next_end(standing: Standing, terms: LeaseTerms, which: Bools, since: float = -math.inf) -> float:
    """The first renewal of these leases after an instant, or the first end of a turn or of a wait for nodes."""
    leases, due = standing.leases, next_due(standing.memory)
    ends = leases.end[which]
    instants = terms.renewed_at(ends)
    if has_turns(standing.memory):
        instants = np.where(among(leases.key[which], turning(standing.memory)), ends, instants)
    first = float(instants[instants > since].min(initial=math.inf))
    return min(first, due) if due > since else first
