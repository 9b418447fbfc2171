"""The choices that LTGF leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from slurm_fair.model.spans import DAY_SECONDS

# How a tenant's share is owed to its jobs: eq. 13 of the paper, or what small jobs cannot use to their siblings.
JobShare = Literal["proportional", "max-min"]

# What a tenant is owed in reports: at most what its jobs ask for (eq. 8), or all of its quota (eq. 16).
ReportShare = Literal["demand", "quota"]

# Who counts in quotas: a tenant from its first job on until its memory is over, or each all the time.
Counted = Literal["seen", "all"]


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Settings of the ledger's counting."""

    # A tenant without jobs counts in everybody's quota for so long.
    tenant_memory_seconds: float = 30 * DAY_SECONDS
    # True: every tenant counts from the first look that shows it, for who will come is known.
    everyone_counts: bool = False
    late_seconds: float = 5.0  # how far behind the last snapshot news may change what siblings were owed
    closed_memory_seconds: float = (
        DAY_SECONDS / 4
    )  # how long a closed run can still be settled with accounting
    half_life_seconds: float = 0.0  # of what counts when policies compare tenants; 0 = it never fades
    water_filled: bool = False  # share among a tenant's jobs: the paper's eq. 13, or max-min

    @property
    def counted(self) -> Counted:
        """The tenants that count, in the configuration's word."""
        return "all" if self.everyone_counts else "seen"

    @property
    def job_share(self) -> JobShare:
        """The rule of job shares, in the configuration's word."""
        return "max-min" if self.water_filled else "proportional"

    @property
    def counts_seconds(self) -> float:
        """The time for which a tenant counts in quotas beyond its jobs; inf = each does all the time."""
        return math.inf if self.everyone_counts else self.tenant_memory_seconds
