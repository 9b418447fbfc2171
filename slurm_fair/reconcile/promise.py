"""Leases after a plan, and after what came of its acts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slurm_fair.model import (
    Event,
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


def promise(
    leases: Leases, plan: Plan, snapshot: Snapshot, terms: LeaseTerms, now: float
) -> tuple[Leases, tuple[Event, ...]]:
    """Renewals renewed, losers to be asked, the chosen promised their GPUs."""
    row = find(snapshot.jobs.key, leases.key)
    verdict = plan.verdict[row] if len(plan) else np.zeros(len(leases), dtype=np.int8)
    renew, revoke = verdict == Verdict.RENEW, verdict == Verdict.REVOKE
    ends = np.array([terms.end_for(now) if yes else 0.0 for yes in renew.tolist()])
    after = leases.with_columns(
        end=np.where(renew, ends, leases.end),
        granted=np.where(renew, now, leases.granted),
        renewals=leases.renewals + renew,
        phase=np.where(revoke, np.int8(LeasePhase.REVOKING), leases.phase).astype(np.int8),
    )
    events = [
        _event(
            now, "renewed", int(row[at]), snapshot, until=float(ends[at]), number=int(after.renewals[at]) + 1
        )
        for at in np.flatnonzero(renew).tolist()
    ]
    events += [
        _event(
            now, "revoked", int(row[at]), snapshot,
            why=plan.reasons[plan.reason[row[at]]], number=int(leases.renewals[at]) + 1,
        )
        for at in np.flatnonzero(revoke).tolist()
    ]  # fmt: skip
    granted = np.flatnonzero(plan.verdict == Verdict.GRANT)
    if not len(granted):
        return after, tuple(events)
    new = _granted(granted, plan, snapshot, terms, now)
    events += [_grant_event(at, row, new, snapshot, now) for at, row in enumerate(granted.tolist())]
    return merge(after, new), tuple(events)


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
    outcomes = list(outcomes)
    opened, asked = leases.opened.copy(), leases.asked.copy()
    phase, end = leases.phase.copy(), leases.end.copy()
    keep = np.ones(len(leases), dtype=bool)
    at = find(leases.key, np.array([o.action.key for o in outcomes], dtype=np.int64))
    for outcome, row in zip(outcomes, at.tolist(), strict=True):
        if row < 0 or outcome.action.whole_record:
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
    return leases.with_columns(opened=opened, asked=asked, phase=phase, end=end).take(keep)


def _event(now: float, kind: str, row: int, snapshot: Snapshot, **detail: object) -> Event:
    jobs = snapshot.jobs
    tenant = snapshot.tenants.names[jobs.tenant[row]]
    return Event(now, kind, int(jobs.key[row]), tenant, int(jobs.gpus[row]), detail)


def _grant_event(at: int, row: int, leases: Leases, snapshot: Snapshot, now: float) -> Event:
    names = [snapshot.nodes.names[node] for node in leases.places.nodes_of(at).tolist()]
    return _event(now, "granted", row, snapshot, nodes=names, until=float(leases.end[at]), number=1)
