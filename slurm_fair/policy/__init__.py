"""The interface of policies, their registry, and the bricks that policies share.

What stands in `__all__` is what policies outside this package may use: docs/policy-guide.md.
"""

from slurm_fair.model.columns import Bools, Codes, Floats, Ints, absent, all_of, any_of, find, ranks, take_or
from slurm_fair.model.once import once
from slurm_fair.policy.ahead import LeaseEnds
from slurm_fair.policy.deadlines import MUST_GO_ON, MUST_START, TOO_LATE, Deadlines, Urgency
from slurm_fair.policy.decided import Decided, Order, age
from slurm_fair.policy.draft import Draft, placed
from slurm_fair.policy.history import Ended, JobHistory, Lately, ended_now
from slurm_fair.policy.memory import (
    job_columns,
    job_numbers,
    keep_job_numbers,
    keep_tenant_numbers,
    tenant_numbers,
)
from slurm_fair.policy.never_stopped import never_stopped, with_never_stopped
from slurm_fair.policy.orders.alike import alike
from slurm_fair.policy.orders.apportion import whole_parts
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.offer import Offer, only_one_shape
from slurm_fair.policy.orders.ordered import OrderOptions, Words, contenders, oldest_first, ordered
from slurm_fair.policy.orders.two_phase import Balances, by_tenant, expected_winners, merged
from slurm_fair.policy.orders.walk import Candidates, Walk
from slurm_fair.policy.packing.contest import Contest
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import Placer, consolidated, placer, relaxed, spreads
from slurm_fair.policy.packing.room import Loss, Room
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.registry import load, names
from slurm_fair.policy.remaining import attained
from slurm_fair.policy.rests import only_renews, with_again
from slurm_fair.policy.setting_words import PLACEMENT_WORDS, URGENT_WORDS, SettingWords
from slurm_fair.policy.settings import YEARS, OneOf, PlacerName, Rising, Within, check_settings
from slurm_fair.policy.speed import ShapeSpeeds, sizes_of, speed_in, usual_gpus
from slurm_fair.policy.view import View

__all__ = [
    "MUST_GO_ON",
    "MUST_START",
    "PLACEMENT_WORDS",
    "TOO_LATE",
    "URGENT_WORDS",
    "YEARS",
    "Balances",
    "Bools",
    "Candidates",
    "Codes",
    "Contest",
    "Deadlines",
    "Decided",
    "Draft",
    "Ended",
    "Floats",
    "Gang",
    "Ints",
    "JobHistory",
    "Lately",
    "LeaseEnds",
    "Loss",
    "Offer",
    "OneOf",
    "Order",
    "OrderOptions",
    "Placer",
    "PlacerName",
    "Policy",
    "Pools",
    "Rising",
    "Room",
    "SettingWords",
    "ShapeSpeeds",
    "Shapes",
    "Sites",
    "Urgency",
    "View",
    "Walk",
    "Within",
    "Words",
    "absent",
    "age",
    "alike",
    "all_of",
    "any_of",
    "attained",
    "by_tenant",
    "check_settings",
    "consolidated",
    "contenders",
    "ended_now",
    "expected_winners",
    "find",
    "job_columns",
    "job_numbers",
    "keep_job_numbers",
    "keep_tenant_numbers",
    "load",
    "merged",
    "names",
    "never_stopped",
    "oldest_first",
    "once",
    "only_one_shape",
    "only_renews",
    "ordered",
    "over_array_limit",
    "placed",
    "placer",
    "ranks",
    "relaxed",
    "sizes_of",
    "speed_in",
    "spreads",
    "take_or",
    "tenant_numbers",
    "usual_gpus",
    "whole_parts",
    "with_again",
    "with_never_stopped",
]
