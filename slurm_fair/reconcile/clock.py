"""A clock that was set back: notes that lie ahead count as made now, rests end as much earlier."""

from __future__ import annotations

import numpy as np

from slurm_fair.ledger import seconds_set_back
from slurm_fair.model import Leases, LeaseTerms, Standing
from slurm_fair.model.columns import any_of
from slurm_fair.model.reservation import with_earlier_reservations

_SLACK_SECONDS = 1.0  # clocks are set by less all the time


def without_the_future(standing: Standing, terms: LeaseTerms, now: float) -> Standing:
    """Nobody keeps GPUs, rests, or has time to save for longer by what the clock was set back."""
    back = seconds_set_back(standing.ledger, now)
    if back:
        standing = _brought_forward(standing, back)
    leases, unsettled = standing.leases, standing.unsettled
    if len(leases.key):
        leases = _noted_by(leases, terms, now)
    if any(at > now + _SLACK_SECONDS for at in unsettled.values()):
        unsettled = {key: min(at, now) for key, at in unsettled.items()}
    if leases is standing.leases and unsettled is standing.unsettled:
        return standing
    return standing._replace(leases=leases, unsettled=unsettled)


def _brought_forward(standing: Standing, seconds: float) -> Standing:
    """The standing with rests, and GPUs that are set aside, until so much earlier; the policy plans anew."""
    return standing._replace(
        backoff=standing.backoff.earlier_by(seconds),
        unmoved=standing.unmoved.earlier_by(seconds),
        unshut=standing.unshut.earlier_by(seconds),
        memory=with_earlier_reservations(standing.memory, seconds),
        left_over=0,
    )


def _noted_by(leases: Leases, terms: LeaseTerms, now: float) -> Leases:
    latest = now + _SLACK_SECONDS
    ahead = leases.granted > latest
    if any_of(ahead):
        latest_end = np.where(leases.renewals > 0, terms.renewed_end(now), terms.end_for(now))
        end = np.where(ahead, np.minimum(leases.end, latest_end), leases.end)
        leases = leases.with_columns(end=end, granted=np.where(ahead, now, leases.granted))
    for name in ("asked", "opened"):
        column = getattr(leases, name)
        if any_of(column > latest):
            leases = leases.with_columns(**{name: np.where(column > latest, now, column)})
    return leases
