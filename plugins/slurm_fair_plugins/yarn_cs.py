"""YARN's capacity scheduler with static quotas (Vavilapalli et al., SoCC 2013), as Astraea's paper compares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slurm_fair.model import NEVER_ENDS_SECONDS, Plan
from slurm_fair.policy import (
    Ints,
    Order,
    PlacerName,
    View,
    Words,
    age,
    check_settings,
    oldest_first,
    ordered,
    over_array_limit,
    whole_parts,
)
from slurm_fair.policy.orders.in_line import in_line

WORDS = Words(granted="it is next in its tenant's quota", waits="its tenant's quota is used up")


@dataclass(frozen=True, slots=True)
class YarnCs:
    """Each tenant has a fixed number of GPUs by its weight: FIFO inside it, nothing lent, nobody stopped.

    Reading: Astraea (section 6) says only "a static quota by the users' weights". Quotas are whole GPUs (largest
    remainders) that add up to the cluster; the head of a tenant's line blocks its line. A gang bigger than the
    whole quota would never run: it may start when its tenant runs nothing else.
    """

    score_is: ClassVar[Order] = Order(
        "the seconds since it was submitted",
        highest_first=True,
        then="whether its array's limit leaves it room, then its tenant and its number",
    )
    lease_seconds: ClassVar[float] = NEVER_ENDS_SECONDS

    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "yarn-cs")

    def plan(self, view: View) -> Plan:
        """Free GPUs to each tenant's oldest jobs, as far as its quota reaches."""
        jobs = view.snapshot.jobs
        waits = np.flatnonzero(view.waiting)
        if len(waits):
            waits = waits[np.lexsort((view.first_submit[waits], jobs.tenant[waits]))]
            over = over_array_limit(view, waits)
            able = waits[~over]
            able = able[_within_quota(view, able)]
            waits = np.append(oldest_first(view, able), waits[over])
        return ordered(
            view,
            waits,
            preempt=False,
            lanes=jobs.tenant,
            place=self.placement,
            score=lambda: age(view),
            words=WORDS,
        )


def _within_quota(view: View, waits: Ints) -> Ints:
    """Places in `waits`, which is sorted by tenant and age, of those that may start."""
    jobs = view.snapshot.jobs
    tenant, gpus = jobs.tenant[waits], jobs.gpus[waits]
    quota = whole_parts(view.snapshot.total_gpus, view.snapshot.tenants.weight)
    used = view.tenant_gpus
    first, through = in_line(tenant, gpus)
    fits = used[tenant] + through <= quota[tenant]
    alone = (gpus > quota[tenant]) & (used[tenant] == 0) & first
    return np.flatnonzero(fits | alone)
