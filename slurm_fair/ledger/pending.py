"""A ledger that is brought up to the looks since when somebody reads it: plain ones in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slurm_fair.ledger.charge import charge
from slurm_fair.ledger.happened import Happened, Share
from slurm_fair.ledger.looks import Look, Strip, strips
from slurm_fair.ledger.observed import window_seen
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.ledger.tenants import with_tenants
from slurm_fair.model import (
    ClosedRuns,
    Event,
    JobAccounts,
    Ledger,
    Snapshot,
    TenantAccounts,
    Untold,
)
from slurm_fair.model.columns import Floats, Ints, all_of

# So much is kept until it is folded, read or not: looks, and rows of their jobs in all.
_MOST_LOOKS, _MOST_ROWS = 64, 65_536


class Pending:
    """What the tables of a ledger are read from: a ledger that is at hand, and the looks that it lacks."""

    def __init__(
        self, base: Ledger, before: Snapshot | None, looks: tuple[Look, ...], settings: LedgerSettings
    ) -> None:
        self._base, self._before, self._looks = base, before, looks
        self._last, self._highest, self._settings = looks[-1].snapshot, looks[-1].highest, settings

    @classmethod
    def after(cls, ledger: Ledger, snapshot: Snapshot, settings: LedgerSettings) -> tuple[Pending, Untold]:
        """The ledger and one look more; and what became of jobs since the look before."""
        source = getattr(ledger, "_source", None)
        told = Untold(lambda: later._tell(look))
        look = Look(snapshot, told, source._highest if isinstance(source, Pending) else -1)
        if not isinstance(source, Pending):
            later = cls(ledger, None, (look,), settings)
        elif source._goes_on(settings):
            later = cls(source._base, source._before, (*source._looks, look), settings)
        else:
            later = cls(source.folded(), source._last, (look,), settings)
        return later, told

    def folded(self) -> Ledger:
        """The ledger with nothing left to read later."""
        looks = iter(self._looks)
        for strip in strips(self._base.time, self._before, self._looks):
            self._base, happened = _folded(self._base, strip, self._settings)
            for number, look in zip(range(happened.looks), looks, strict=False):
                look.told.told(Share(happened, number))
        self._before, self._looks = self._last, ()
        return self._base

    @property
    def tenants(self) -> TenantAccounts:
        return self.folded().tenants

    @property
    def jobs(self) -> JobAccounts:
        return self.folded().jobs

    @property
    def closed(self) -> ClosedRuns:
        return self.folded().closed

    def _tell(self, look: Look) -> Sequence[Event]:
        """Of the last look; whoever folds the looks tells of all of them."""
        self.folded()
        return look.told.events

    def _goes_on(self, settings: LedgerSettings) -> bool:
        """Whether one look more can be kept until somebody reads all of them."""
        looks = len(self._looks)
        if not looks or self._before is None or settings != self._settings:
            return False
        return looks < _MOST_LOOKS and (looks + 1) * len(self._last.jobs) <= _MOST_ROWS


def _folded(ledger: Ledger, strip: Strip, settings: LedgerSettings) -> tuple[Ledger, Happened]:
    """The ledger at the last of the looks, and what each look is the first to tell."""
    last = strip.snapshots[-1]
    if ledger.total_gpus < 0:
        ledger = replace(ledger, total_gpus=float(last.total_gpus))
    known, tenant_row = with_tenants(ledger, last.tenants.names, last.tenants.weight)
    window = window_seen(known, strip.jobs, last.time, tenant_row, settings)
    looked = [snapshot.time for snapshot in strip.snapshots]
    charged, result = charge(known, window, last.time, settings, last.resized, looked)
    tenants = _with_weights(charged.tenants, tenant_row, last.tenants.weight)
    total_gpus = float(last.total_gpus)
    after = Ledger(charged.time, charged.began, total_gpus, tenants, charged.jobs, charged.closed)
    return after, Happened(known, strip, window, result)


def _with_weights(tenants: TenantAccounts, row: Ints, weight: Floats) -> TenantAccounts:
    """From here on tenants count with the weights that the snapshot shows."""
    if all_of(tenants.weight[row] == weight):
        return tenants
    weights = tenants.weight.copy()
    weights[row] = weight
    return replace(tenants, weight=weights)
