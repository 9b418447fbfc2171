"""The fold: a ledger and a look at the cluster make the next ledger, and say what happened between."""

from __future__ import annotations

from slurm_fair.ledger.pending import Pending
from slurm_fair.ledger.settings import DAY, LedgerSettings
from slurm_fair.model import Event, EventKind, Events, Ledger, Snapshot

DEFAULTS = LedgerSettings()


def advance(ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings = DEFAULTS) -> tuple[Ledger, Events]:
    """The ledger at the snapshot's instant; a snapshot older than the ledger changes nothing.

    Arrivals, starts and ends count from the instants that Slurm gives. Holds, weights, gangs and a job's account
    have no such instants: their changes count from the snapshot that shows them. So does M where the snapshot does
    not tell when it changed: then what is owed is exact to one interval. What the first look shows was there
    before it.

    The work is done when somebody reads the ledger's tables, or the events: many looks that nobody has asked about
    cost little more than one.
    """
    if snapshot.time < ledger.time:
        return ledger, Events()
    pending, told = Pending.after(ledger, snapshot, settings)
    at_hand = {"time": snapshot.time, "began": ledger.began, "total_gpus": float(snapshot.total_gpus)}
    return Ledger.made_of(at_hand, pending), Events(_resized(ledger, snapshot), told)


def _resized(ledger: Ledger, snapshot: Snapshot) -> tuple[Event, ...]:
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
