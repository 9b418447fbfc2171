"""The instant of the daemon's next look."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair.model import LeaseTerms, Result, Standing, TickRecord, Verb
from slurm_fair.slurm.acting.rounds import TOO_LATE

_BUSY_SECONDS = 0.12  # at least, between looks while somebody is asked, requeued or about to start
_LEAST_SECONDS = 0.05


def next_look(
    standing: Standing,
    terms: LeaseTerms,
    began: float,
    now: float,
    breath_seconds: float = 0.0,
    gates_left: bool = False,
) -> float:
    """At the next interval, or earlier: when a lease or a grace ends, and often while jobs change places.

    `gates_left` = jobs wait without a gate for which the last tick had no time left: the next one follows at once.
    """
    if gates_left:
        return now + _LEAST_SECONDS
    leases = standing.leases
    due = min(began, now) + terms.interval  # the clock may have been set back in this tick
    busy = leases.revoking | leases.promised
    if busy.any():
        due = min(due, now + max(_BUSY_SECONDS, breath_seconds))
        due = min(due, _next_grace(standing, terms, now)) if math.isfinite(breath_seconds) else due
    ends = leases.end[leases.running & (leases.end > now)]
    if len(ends):
        due = min(due, float(ends.min()))
    if not terms.grants_at(now):
        due = min(due, terms.next_end(now))
    return max(due, now + _LEAST_SECONDS)


def _next_grace(standing: Standing, terms: LeaseTerms, now: float) -> float:
    """When the next job that was asked has had the site's grace."""
    leases = standing.leases
    asked = leases.asked[leases.revoking & (leases.asked > 0)]
    ends = asked[asked + terms.grace > now] + terms.grace
    return float(ends.min(initial=math.inf))


def gates_left(record: TickRecord) -> bool:
    """True if the tick set gates and had no time, or no room, for all jobs that wait without one."""
    closes = [o for o in record.outcomes if o.action.verb is Verb.CLOSE]
    late = any(o.detail == TOO_LATE for o in closes)
    if not (late or record.guard) or not any(o.result is Result.DONE for o in closes):
        return False
    jobs = record.snapshot.jobs
    bare = jobs.record[jobs.waiting & ~jobs.gated]
    tried = {o.action.record for o in closes if o.detail != TOO_LATE}
    return not np.isin(bare, list(tried)).all()


def look_seconds(record: TickRecord, tick_seconds: float) -> float:
    """The seconds of a tick without its acts: the seconds of acts do not predict the next look."""
    return max(tick_seconds - record.seconds.get("act", 0.0), 0.0)
