"""The fold: a ledger and a look at the cluster make the next ledger, and say what happened between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.ledger.charge import charge
from slurm_fair.ledger.happened import happened, resized
from slurm_fair.ledger.observed import window_seen
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Event, Ledger, Snapshot, TenantAccounts
from slurm_fair.model.columns import Floats, Ints, all_of

DEFAULTS = LedgerSettings()


def advance(
    ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings = DEFAULTS
) -> tuple[Ledger, tuple[Event, ...]]:
    """The ledger at the snapshot's instant; a snapshot older than the ledger changes nothing.

    Arrivals, starts and ends count from the instants that Slurm gives. Holds, weights, gangs and a job's account
    have no such instants: their changes count from the snapshot that shows them. So does M where the snapshot does
    not tell when it changed: then what is owed is exact to one interval. What the first look shows was there
    before it.
    """
    if snapshot.time < ledger.time:
        return ledger, ()
    capacity = resized(ledger, snapshot)
    if ledger.total_gpus < 0:
        ledger = replace(ledger, total_gpus=float(snapshot.total_gpus))
    known, tenant_row = with_tenants(ledger, snapshot.tenants.names, snapshot.tenants.weight)
    window, seen = window_seen(known, snapshot, tenant_row, settings)
    charged, result = charge(known, window, snapshot.time, settings, snapshot.resized)
    events = happened(known, snapshot, window, seen, result)
    tenants = _with_weights(charged.tenants, tenant_row, snapshot.tenants.weight)
    total_gpus = float(snapshot.total_gpus)
    return Ledger(
        charged.time, charged.began, total_gpus, tenants, charged.jobs, charged.closed
    ), capacity + events


def _with_weights(tenants: TenantAccounts, row: Ints, weight: Floats) -> TenantAccounts:
    """From here on tenants count with the weights that the snapshot shows."""
    if all_of(tenants.weight[row] == weight):
        return tenants
    weights = tenants.weight.copy()
    weights[row] = weight
    return replace(tenants, weight=weights)


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
