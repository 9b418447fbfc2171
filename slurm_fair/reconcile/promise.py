"""Leases after a plan, and after what came of its acts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from slurm_fair.model import (
    Event,
    Events,
    LeasePhase,
    Leases,
    LeaseTerms,
    Outcome,
    Plan,
    Result,
    Snapshot,
    Verb,
    Verdict,
)
from slurm_fair.model.columns import Ints, find
from slurm_fair.reconcile.follow import merge

_GRANT, _RENEW, _REVOKE = int(Verdict.GRANT), int(Verdict.RENEW), int(Verdict.REVOKE)
_OF_LEASES = (Verb.ASK, Verb.REQUEUE, Verb.OPEN)


def promise(
    leases: Leases, plan: Plan, snapshot: Snapshot, terms: LeaseTerms, now: float
) -> tuple[Leases, Events]:
    """Renewals renewed, losers to be asked, the chosen promised their GPUs."""
    row = find(snapshot.jobs.key, leases.key)
    verdict = plan.verdict.take(row) if len(plan) else np.zeros(len(leases), dtype=np.int8)
    renew, revoke = (verdict == _RENEW).nonzero()[0], (verdict == _REVOKE).nonzero()[0]
    granted = (plan.verdict == _GRANT).nonzero()[0]
    after, parts = leases, list[Sequence[Event] | Callable[[], Sequence[Event]]]()
    if len(renew):
        after = renewed = _renewed(after, renew, terms, now)
        parts.append(lambda: _renewals(renewed, renew, row, snapshot, now))
    if len(revoke):
        after = _revoked(after, revoke)
        parts.append(_revocations(leases, revoke, row, plan, snapshot, now))
    if len(granted):
        new = _granted(granted, plan, snapshot, terms, now)
        parts.append([_grant_event(at, row, new, snapshot, now) for at, row in enumerate(granted.tolist())])
        after = merge(after, new)
    return after, Events(*parts)


def _renewed(leases: Leases, rows: Ints, terms: LeaseTerms, now: float) -> Leases:
    end, granted, renewals = leases.end.copy(), leases.granted.copy(), leases.renewals.copy()
    end[rows], granted[rows] = terms.end_for(now), now
    renewals[rows] += 1
    return leases.with_columns(end=end, granted=granted, renewals=renewals)


def _renewals(leases: Leases, rows: Ints, job: Ints, snapshot: Snapshot, now: float) -> list[Event]:
    until, numbers = leases.end[rows].tolist(), (leases.renewals[rows] + 1).tolist()
    return [
        _event(now, "renewed", row, snapshot, until=end, number=number)
        for row, end, number in zip(job[rows].tolist(), until, numbers, strict=True)
    ]


def _revoked(leases: Leases, rows: Ints) -> Leases:
    phase = leases.phase.copy()
    phase[rows] = LeasePhase.REVOKING
    return leases.with_columns(phase=phase)


def _revocations(
    leases: Leases, rows: Ints, job: Ints, plan: Plan, snapshot: Snapshot, now: float
) -> list[Event]:
    numbers = (leases.renewals[rows] + 1).tolist()
    return [
        _event(now, "revoked", row, snapshot, why=plan.reasons[plan.reason[row]], number=number)
        for row, number in zip(job[rows].tolist(), numbers, strict=True)
    ]


def _granted(rows: Ints, plan: Plan, snapshot: Snapshot, terms: LeaseTerms, now: float) -> Leases:
    jobs, count = snapshot.jobs, len(rows)
    number = np.full(len(jobs), -1, dtype=np.int64)
    number[rows] = np.arange(count)
    zeros = np.zeros(count)
    return Leases(
        key=jobs.key[rows],
        phase=np.full(count, LeasePhase.GRANTED, dtype=np.int8),
        restarts=jobs.restarts[rows],
        gpus=jobs.gpus[rows],
        granted=np.full(count, now),
        start=zeros,
        end=np.full(count, terms.end_for(now)),
        renewals=np.zeros(count, dtype=np.int64),
        asked=zeros,
        opened=zeros,
        adopted=np.zeros(count, dtype=bool),
        places=plan.places.renumber(number),
        node_names=snapshot.nodes.names,
    )


def settle(leases: Leases, outcomes: Iterable[Outcome], terms: LeaseTerms, now: float) -> Leases:
    """What came of the acts: opened gates, asked jobs, and promises that could not be kept."""
    outcomes = [o for o in outcomes if o.action.verb in _OF_LEASES and not o.action.whole_record]
    if not outcomes:
        return leases
    opened, asked = leases.opened.copy(), leases.asked.copy()
    phase, end = leases.phase.copy(), leases.end.copy()
    keep = np.ones(len(leases), dtype=bool)
    at = find(leases.key, np.array([o.action.key for o in outcomes], dtype=np.int64))
    for outcome, row in zip(outcomes, at.tolist(), strict=True):
        if row < 0:
            continue
        if outcome.action.verb is Verb.ASK and outcome.result is Result.DONE:
            asked[row] = now
        refused = outcome.result is Result.REFUSED and not outcome.later
        if outcome.action.verb in (Verb.ASK, Verb.REQUEUE) and refused:
            # Slurm will not take it off its GPUs; if it still runs at the next look, it has another lease.
            phase[row], end[row], asked[row] = LeasePhase.RUNNING, terms.end_for(now), 0.0
        if outcome.action.verb is Verb.OPEN and not outcome.later:
            # An unknown end counts as opened: the job may start, so its GPUs stay promised.
            opened[row] = now
            keep[row] = not refused
    settled = leases.with_columns(opened=opened, asked=asked, phase=phase, end=end)
    return settled if keep.all() else settled.take(keep)


def _event(now: float, kind: str, row: int, snapshot: Snapshot, **detail: object) -> Event:
    jobs = snapshot.jobs
    tenant = snapshot.tenants.names[jobs.tenant[row]]
    return Event(now, kind, int(jobs.key[row]), tenant, int(jobs.gpus[row]), detail)


def _grant_event(at: int, row: int, leases: Leases, snapshot: Snapshot, now: float) -> Event:
    names = [snapshot.nodes.names[node] for node in leases.places.nodes_of(at).tolist()]
    return _event(now, "granted", row, snapshot, nodes=names, until=float(leases.end[at]), number=1)
