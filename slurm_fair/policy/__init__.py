"""The interface of policies, their registry, and the parts that policies share."""

from slurm_fair.policy.alike import alike
from slurm_fair.policy.arrays import over_array_limit
from slurm_fair.policy.contest import Contest
from slurm_fair.policy.draft import Draft, placed
from slurm_fair.policy.gang import Gang, Pools, Sites
from slurm_fair.policy.placement import Placer, consolidated, placer, relaxed
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.registry import load, names
from slurm_fair.policy.room import Loss, Room
from slurm_fair.policy.shapes import Shapes
from slurm_fair.policy.two_phase import Balances, by_tenant, expected_winners, merged
from slurm_fair.policy.view import View
from slurm_fair.policy.walk import Candidates, Walk

__all__ = [
    "Balances",
    "Candidates",
    "Contest",
    "Draft",
    "Gang",
    "Loss",
    "Placer",
    "Policy",
    "Pools",
    "Room",
    "Shapes",
    "Sites",
    "View",
    "Walk",
    "alike",
    "by_tenant",
    "consolidated",
    "expected_winners",
    "load",
    "merged",
    "names",
    "over_array_limit",
    "placed",
    "placer",
    "relaxed",
]
