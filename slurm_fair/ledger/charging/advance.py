"""The fold: a ledger and a look at the cluster make the next ledger, and say what happened between."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.ledger.charging.charge import charge
from slurm_fair.ledger.charging.from_snapshot import window_seen
from slurm_fair.ledger.charging.left_alone import with_those_left_alone
from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.ledger.charging.window_events import Happened, Strip
from slurm_fair.ledger.settings import DAY, LedgerSettings
from slurm_fair.model import Event, EventKind, Ledger, Snapshot, TenantAccounts
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
    seen = with_those_left_alone(snapshot)
    after, happened = folded(ledger, Strip((seen,), seen.jobs), settings)
    return after, (*resized(ledger, snapshot), *happened.events[0])


def folded(ledger: Ledger, strip: Strip, settings: LedgerSettings) -> tuple[Ledger, Happened]:
    """The ledger at the last of the looks, and what each look is the first to tell."""
    last = strip.snapshots[-1]
    if ledger.total_gpus < 0:
        ledger = replace(ledger, total_gpus=float(last.total_gpus))
    known, tenant_row = with_tenants(ledger, last.tenants.names, last.tenants.weight)
    window = window_seen(known, strip.jobs, last.time, tenant_row, settings)
    looked = [snapshot.time for snapshot in strip.snapshots]
    charged, result = charge(known, window, last.time, settings, last.resized, looked)
    tenants = _with_weights(charged.tenants, tenant_row, last.tenants.weight)
    after = replace(charged, total_gpus=float(last.total_gpus), tenants=tenants)
    return after, Happened(known, strip, window, result)


def resized(ledger: Ledger, snapshot: Snapshot) -> tuple[Event, ...]:
    """M at first, when it changes, and once a day: reports of a period need to know it at its beginning."""
    total, now, level = snapshot.total_gpus, snapshot.time, ledger.total_gpus
    new_day = now // DAY != ledger.time // DAY
    if total == level and not snapshot.resized and not new_day:
        return ()
    events: list[Event] = []
    for instant, gpus in snapshot.resized or ((now, total),):
        if gpus != level:
            events.append(Event(max(instant, ledger.time), EventKind.CAPACITY, 0, "", gpus))
            level = gpus
    if new_day and not events:
        events.append(Event(now, EventKind.CAPACITY, 0, "", total))
    return tuple(events)


def _with_weights(tenants: TenantAccounts, row: Ints, weight: Floats) -> TenantAccounts:
    """From here on tenants count with the weights that the snapshot shows."""
    if all_of(tenants.weight[row] == weight):
        return tenants
    weights = tenants.weight.copy()
    weights[row] = weight
    return tenants.with_columns(weight=weights)
