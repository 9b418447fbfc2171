"""Add rows to a ledger for tenants that it does not have yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Ledger, TenantAccounts
from slurm_fair.model.columns import Floats, Ints


def with_tenants(ledger: Ledger, names: tuple[str, ...], weight: Floats) -> tuple[Ledger, Ints]:
    """The ledger with rows for these tenants as well, and the row of each."""
    old = ledger.tenants
    if names == old.names:
        return ledger, np.arange(len(names))
    row = {name: number for number, name in enumerate(old.names)}
    new = {name: number for number, name in enumerate(names) if name not in row}
    if not new:
        return ledger, np.array([row[name] for name in names], dtype=np.int64)
    everyone = tuple(sorted([*old.names, *new]))
    from_old = np.array([row.get(name, -1) for name in everyone], dtype=np.int64)
    from_new = np.array([new.get(name, -1) for name in everyone], dtype=np.int64)
    place = np.empty(len(old), dtype=np.int64)
    place[from_old[from_old >= 0]] = np.flatnonzero(from_old >= 0)
    tenants = _widened(old, everyone, from_old)
    tenants.weight[from_new >= 0] = weight[from_new[from_new >= 0]]
    row = {name: number for number, name in enumerate(everyone)}
    wider = replace(
        ledger,
        tenants=tenants,
        jobs=ledger.jobs.with_columns(tenant=place[ledger.jobs.tenant]),
        closed=ledger.closed.with_columns(tenant=place[ledger.closed.tenant]),
    )
    return wider, np.array([row[name] for name in names], dtype=np.int64)


def _widened(old: TenantAccounts, names: tuple[str, ...], from_old: Ints) -> TenantAccounts:
    def column(values: Floats, absent: float) -> Floats:
        result = np.full(len(names), absent)
        result[from_old >= 0] = values[from_old[from_old >= 0]]
        return result

    return TenantAccounts(
        names=names,
        weight=column(old.weight, 0.0),
        had=column(old.had, 0.0),
        owed_quota=column(old.owed_quota, 0.0),
        owed_demand=column(old.owed_demand, 0.0),
        last_job=column(old.last_job, -np.inf),
    )
