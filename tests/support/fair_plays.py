"""Plays of the policy fair: two tenants, with what they declare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.policy import View
from slurm_fair_plugins.fair import Fair
from tests.support.builders import JobSpec, job
from tests.support.rounds import Play

HOUR = 3600.0
NO_GUARDS = {"claim_weight": 0.0, "makespan_weight": 0.0, "inertia": 0.0, "restart_seconds": 0.0}


def plain(**settings: float) -> Fair:
    """The policy without claims, makespan guard and advantage of who runs, but for what is given."""
    return Fair(**{**NO_GUARDS, **settings})  # type: ignore[arg-type]


def four(tenant: str, *bases: int, submit: float = 0.0) -> list[JobSpec]:
    """Jobs of four GPUs."""
    return [job(base, gpus=4, tenant=tenant, submit=submit) for base in bases]


# Sixteen jobs of one tenant on eight GPUs: a fair finish is after twice the run time.
CROWD = [job(1, gpus=8), *(job(base, gpus=8, submit=900.0) for base in range(2, 17))]
CROWD_DECLARED = {str(base): 2.9 * HOUR for base in range(2, 17)} | {"1": 3 * HOUR}


def lacking(play: Play, hours: float, tenant: str = "b") -> View:
    """The policy's view of a tenant that was owed and wanted so many hours of its quota more than it had."""
    seen = play.seen()
    accounts, tenants = seen.ledger.tenants, seen.snapshot.tenants.names
    quota = dict(zip(tenants, seen.tenant_quota.tolist(), strict=True))
    more = np.array([hours * HOUR * quota[name] * (name == tenant) for name in accounts.names])
    accounts = accounts.with_columns(owed_demand=accounts.had + more)
    return replace(seen, ledger=replace(seen.ledger, tenants=accounts))


def short_beside_long() -> Play:
    """Tenant a fills its quota and has a job of half an hour more; job 3 of tenant b takes 18 hours."""
    return Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=HALF_AND_LONG)


HALF_AND_LONG = {"1": 0.4 * HOUR, "2": 0.5 * HOUR, "3": 18 * HOUR}
