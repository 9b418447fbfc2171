"""Each tenant's account at the instant of a tick."""

from __future__ import annotations

import numpy as np

from slurm_fair.ledger import with_those_left_alone
from slurm_fair.model import Snapshot, Standing
from slurm_fair.model.tenant_moment import TenantMoment


def moments_of(snapshot: Snapshot, standing: Standing) -> list[TenantMoment]:
    """One row per tenant of the ledger; a tenant that has no job now holds and asks for nothing."""
    snapshot = with_those_left_alone(snapshot)
    jobs, names = snapshot.jobs, snapshot.tenants.names
    held = np.bincount(jobs.tenant[snapshot.held.row], weights=snapshot.held.gpus, minlength=len(names))
    asked = np.bincount(jobs.tenant, weights=np.where(jobs.active, jobs.usual_gpus, 0), minlength=len(names))
    now = dict(zip(names, zip(held.tolist(), asked.tolist(), strict=True), strict=True))
    accounts, time = standing.ledger.tenants, standing.ledger.time
    columns = [
        column.tolist()
        for column in (accounts.weight, accounts.had, accounts.owed_quota, accounts.owed_demand)
    ]
    return [
        TenantMoment(time, name, weight, had, quota, demand, *now.get(name, (0.0, 0.0)))
        for name, weight, had, quota, demand in zip(accounts.names, *columns, strict=True)
    ]
