"""Quotas at one instant, by the rule that the ledger charges by: `timeline` has the same rule over a window."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair.ledger.formulas import quota
from slurm_fair.model import TenantAccounts
from slurm_fair.model.columns import Bools, Floats, Ints


def who_counts(tenants: TenantAccounts, with_jobs: Ints, now: float, counts_seconds: float) -> Bools:
    """Tenants that count in everybody's quota: those `with_jobs` (rows), and for a time after."""
    if math.isinf(counts_seconds):
        return np.ones(len(tenants), dtype=bool)
    counts: Bools = tenants.last_job + counts_seconds >= now
    counts[with_jobs[with_jobs >= 0]] = True
    return counts


def quotas_now(
    total_gpus: float, tenants: TenantAccounts, with_jobs: Ints, now: float, counts_seconds: float
) -> Floats:
    """GPUs that each tenant is owed now (eq. 6); nothing for one that does not count."""
    weight = np.where(who_counts(tenants, with_jobs, now, counts_seconds), tenants.weight, 0.0)
    return quota(total_gpus, weight, float(weight.sum()))
