"""Renew leases without a look, where looks at their ends would do nothing but renew them."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_fair.model import Event, Leases, LeaseTerms, Snapshot
from slurm_fair.model.columns import Ints, find
from slurm_fair.reconcile.lease_changes import renewals, with_next_term


def renewed_until(leases: Leases, terms: LeaseTerms, until: float) -> Leases:
    """The leases after plans that only renew, one at each renewal of a lease before an instant."""
    over = (terms.renewed_at(leases.end) < until).nonzero()[0]
    if not over.size:
        return leases
    end, granted, renewals = leases.end.copy(), leases.granted.copy(), leases.renewals.copy()
    while over.size:
        granted[over] = terms.renewed_at(end[over])
        end[over] = [terms.renewed_end(each) for each in granted[over].tolist()]
        renewals[over] += 1
        over = over[terms.renewed_at(end[over]) < until]
    return leases.with_columns(end=end, granted=granted, renewals=renewals)


def renewals_until(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, until: float) -> tuple[Event, ...]:
    """The events of the renewals of these leases until an instant."""
    job = find(snapshot.jobs.key, leases.key)
    return tuple(
        event
        for at, over, after in _renewing(leases, terms, until)
        for event in renewals(after, over, job[over], snapshot, terms, at)
    )


def _renewing(leases: Leases, terms: LeaseTerms, until: float) -> Iterator[tuple[float, Ints, Leases]]:
    """Each instant of a renewal, the leases that are renewed then, and all of them afterwards."""
    while len(leases.key):
        instants = terms.renewed_at(leases.end)
        first = instants.item(instants.argmin())
        if first >= until:
            return
        over = (instants == first).nonzero()[0]
        leases = with_next_term(leases, over, terms, first)
        yield first, over, leases
