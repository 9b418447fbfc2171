"""The fold: a ledger and a look at the cluster make the next ledger, and say what happened between."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.ledger.charging.charge import charge
from slurm_fair.ledger.charging.from_snapshot import window_seen
from slurm_fair.ledger.charging.left_alone import with_those_left_alone
from slurm_fair.ledger.charging.set_back import seconds_set_back, set_back
from slurm_fair.ledger.charging.shares import Changes
from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.ledger.charging.window_events import Happened, WindowLooks
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Event, EventKind, Ledger, Snapshot, TenantAccounts
from slurm_fair.model.columns import Floats, Ints, all_of
from slurm_fair.model.spans import DAY_SECONDS

DEFAULTS = LedgerSettings()
BY_WEIGHT = "by_weight"  # of an event of the cluster's size


def advance(
    ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings = DEFAULTS
) -> tuple[Ledger, tuple[Event, ...]]:
    """The ledger at the snapshot's instant; a snapshot that is a little older than the ledger changes nothing.

    One that is older by more comes after the clock was set back: the ledger goes on from there.

    Arrivals, starts and ends count from the instants that Slurm gives. Holds, weights, gangs and a job's account
    have no such instants: their changes count from the snapshot that shows them. So does M where the snapshot does
    not tell when it changed: then what is owed is exact to one interval. What the first look shows was there
    before it.
    """
    if seconds_set_back(ledger, snapshot.time):
        ledger = set_back(ledger, snapshot.time)
    elif snapshot.time < ledger.time:
        return ledger, ()
    seen = with_those_left_alone(snapshot)
    after, happened = folded(ledger, WindowLooks((seen,), seen.jobs), settings)
    return after, (*resized(ledger, snapshot), *happened.events[0])


def folded(ledger: Ledger, looks: WindowLooks, settings: LedgerSettings) -> tuple[Ledger, Happened]:
    """The ledger at the last of the looks, and what each look is the first to tell."""
    last = looks.snapshots[-1]
    if ledger.total_gpus < 0:
        ledger = replace(ledger, total_gpus=float(last.total_gpus), weighted_gpus=_by_weight(last))
    known, tenant_row = with_tenants(ledger, last.tenants.names, last.tenants.weight)
    window = window_seen(known, looks.jobs, last.time, tenant_row, settings)
    looked = [snapshot.time for snapshot in looks.snapshots]
    charged, result = charge(known, window, last.time, settings, _resized_by_weight(last), looked)
    tenants = _with_weights(charged.tenants, tenant_row, last.tenants.weight)
    total, by_weight = float(last.total_gpus), _by_weight(last)
    after = replace(charged, total_gpus=total, weighted_gpus=by_weight, tenants=tenants)
    return after, Happened(known, looks, window, result)


def _by_weight(snapshot: Snapshot) -> float:
    """M by weight; -1 where each GPU counts 1."""
    return -1.0 if snapshot.gpu_weights is None else snapshot.weighted_gpus


def _resized_by_weight(snapshot: Snapshot) -> Changes:
    return snapshot.resized if snapshot.gpu_weights is None else snapshot.resized_by_weight


def resized(ledger: Ledger, snapshot: Snapshot) -> tuple[Event, ...]:
    """M at first, when it changes, and once a day: reports of a period need to know it at its beginning."""
    total, now, by_weight = snapshot.total_gpus, snapshot.time, _by_weight(snapshot)
    known, known_by_weight, new_day = (
        ledger.total_gpus,
        ledger.weighted_gpus,
        now // DAY_SECONDS != ledger.time // DAY_SECONDS,
    )
    if total == known and by_weight == known_by_weight and not snapshot.resized and not new_day:
        return ()
    sizes = snapshot.resized or ((now, total),)
    weighed = [level for _, level in snapshot.resized_by_weight] or [by_weight] * len(sizes)
    events: list[Event] = []
    for (instant, gpus), level in zip(sizes, weighed, strict=True):
        if gpus != known or level != known_by_weight:
            events.append(_capacity(max(instant, ledger.time), gpus, level))
            known, known_by_weight = gpus, level
    if new_day and not events:
        events.append(_capacity(now, total, by_weight))
    return tuple(events)


def _capacity(instant: float, gpus: int, by_weight: float) -> Event:
    """M, and what it is by weight where GPUs are weighed."""
    said = {} if by_weight < 0 else {BY_WEIGHT: by_weight}
    return Event(instant, EventKind.CAPACITY, 0, "", gpus, said)


def _with_weights(tenants: TenantAccounts, row: Ints, weight: Floats) -> TenantAccounts:
    """Tenants that count with the weights of the snapshot from here on."""
    if all_of(tenants.weight[row] == weight):
        return tenants
    weights = tenants.weight.copy()
    weights[row] = weight
    return tenants.with_columns(weight=weights)
