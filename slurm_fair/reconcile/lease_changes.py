"""Leases after a plan, and after the outcomes of its acts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slurm_fair.model import (
    Event,
    EventKind,
    Explanation,
    LeasePhase,
    Leases,
    LeaseTerms,
    Outcome,
    Plan,
    Result,
    Snapshot,
    Verb,
)
from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.model.reservation import reservations
from slurm_fair.model.sizes import gangs_in
from slurm_fair.reconcile.events import job_event

_OF_LEASES = (Verb.ASK, Verb.REQUEUE, Verb.OPEN)


def apply_plan(
    leases: Leases,
    plan: Plan,
    snapshot: Snapshot,
    terms: LeaseTerms,
    now: float,
    *,
    tell_all: bool = True,
    tell_why: bool = True,
) -> tuple[Leases, tuple[Event, ...]]:
    """Renewals renewed, losers to be asked, the chosen promised their GPUs.

    Losers are told of in any case; renewals, grants and reasons where they are wanted. A lease that was renewed
    while nobody waited has no reason.
    """
    said = plan.explanation if tell_why else None
    granted, renewed, revoked = plan.granted, plan.renewed, plan.revoked
    after, events = leases, list[Event]()
    if renewed.size:
        at, renewed = _with_lease(leases, renewed, snapshot)
        after = _ended_by_due(with_next_term(after, at, terms, now), at, renewed, plan, snapshot)
        if tell_all:
            reasons = said if said is not None and plan.anybody_waited else None
            events += renewals(after, at, renewed, snapshot, terms, now, reasons)
    if revoked.size:
        losers, revoked = _with_lease(leases, revoked, snapshot)
        after = _revoked(after, losers)
        events += _revocations(leases, losers, revoked, snapshot, now, said)
    if granted.size:
        after = _granted(after, granted, plan, snapshot, terms, now)
        if tell_all:
            events += _grants(granted, plan, snapshot, terms, now, said)
    return after, tuple(events)


def _with_lease(leases: Leases, rows: Ints, snapshot: Snapshot) -> tuple[Ints, Ints]:
    """The leases of these jobs, and the rows of those that have one."""
    at = find(leases.key, snapshot.jobs.key[rows])
    has = at >= 0
    return at[has], rows[has]


def with_next_term(leases: Leases, rows: Ints, terms: LeaseTerms, now: float) -> Leases:
    """The leases; these rows are renewed now."""
    end, granted, renewals = leases.end.copy(), leases.granted.copy(), leases.renewals.copy()
    end[rows], granted[rows] = terms.renewed_end(now), now
    renewals[rows] += 1
    return leases.with_columns(end=end, granted=granted, renewals=renewals)


def _ended_by_due(leases: Leases, rows: Ints, job: Ints, plan: Plan, snapshot: Snapshot) -> Leases:
    """The renewed leases of these rows; on nodes that are set aside they end when the gang is to start."""
    reserved = reservations(plan.memory)
    if not reserved:
        return leases
    due = np.full(len(snapshot.nodes.names), np.inf)
    for each in reserved:
        due[np.isin(snapshot.nodes.names, each.nodes)] = each.due
    soonest = np.full(len(snapshot.jobs.key), np.inf)
    np.minimum.at(soonest, snapshot.held.row, due[snapshot.held.node])
    end = leases.end.copy()
    end[rows] = np.minimum(end[rows], soonest[job])
    return leases.with_columns(end=end)


def renewals(
    leases: Leases,
    rows: Ints,
    job: Ints,
    snapshot: Snapshot,
    terms: LeaseTerms,
    now: float,
    said: Explanation | None = None,
) -> list[Event]:
    """An event for each of these rows of renewed leases; `job` = the row of its job."""
    until, numbers = leases.end[rows].tolist(), (leases.renewals[rows] + 1).tolist()
    return [
        job_event(
            now,
            EventKind.RENEWED,
            snapshot,
            row,
            until=terms.said_end(end),
            number=number,
            **_reason(said, row),
        )
        for row, end, number in zip(job.tolist(), until, numbers, strict=True)
    ]


def _reason(said: Explanation | None, row: int) -> dict[str, str]:
    """The reason of the plan for this row, as a part of an event."""
    return {} if said is None else {"why": said.reasons[said.reason.item(row)]}


def _revoked(leases: Leases, rows: Ints) -> Leases:
    phase, asked = leases.phase.copy(), leases.asked.copy()
    phase[rows], asked[rows] = LeasePhase.REVOKING, 0.0  # an earlier request says nothing of this one
    return leases.with_columns(phase=phase, asked=asked)


def _revocations(
    leases: Leases, rows: Ints, job: Ints, snapshot: Snapshot, now: float, said: Explanation | None
) -> list[Event]:
    """An event for each of these leases."""
    numbers = (leases.renewals[rows] + 1).tolist()
    return [
        job_event(now, EventKind.REVOKED, snapshot, row, **_reason(said, row), number=number)
        for row, number in zip(job.tolist(), numbers, strict=True)
    ]


def _granted(
    leases: Leases, rows: Ints, plan: Plan, snapshot: Snapshot, terms: LeaseTerms, now: float
) -> Leases:
    """The leases with a promise for each of these jobs."""
    jobs = snapshot.jobs
    fresh = plan.places.with_columns(row=jobs.key[plan.places.row])
    earlier = leases.promises.renamed(leases.node_names, snapshot.nodes.names)
    return leases.extended(
        len(rows),
        key=jobs.key[rows],
        phase=LeasePhase.GRANTED,
        restarts=jobs.restarts[rows],
        gpus=gangs_in(plan.places, jobs.gpus, snapshot.sizes)[rows],
        granted=now,
        start=0.0,
        end=terms.end_for(now),
        renewals=0,
        asked=0.0,
        opened=0.0,
        adopted=False,
        promises=earlier.plus(fresh),
        node_names=snapshot.nodes.names,
    )


def _grants(
    rows: Ints, plan: Plan, snapshot: Snapshot, terms: LeaseTerms, now: float, said: Explanation | None
) -> list[Event]:
    until, names = terms.said_end(terms.end_for(now)), snapshot.nodes.names
    return [
        job_event(
            now,
            EventKind.GRANTED,
            snapshot,
            row,
            nodes=[names[node] for node in plan.places.nodes_of(row).tolist()],
            until=until,
            number=1,
            **_reason(said, row),
        )
        for row in rows.tolist()
    ]


def apply_outcomes(leases: Leases, outcomes: Iterable[Outcome], terms: LeaseTerms, now: float) -> Leases:
    """Apply the outcomes of acts: opened gates, asked jobs, and promises that could not be kept."""
    outcomes = [o for o in outcomes if o.action.verb in _OF_LEASES and not o.action.whole_record]
    if not outcomes:
        return leases
    opened: list[int] = []
    asked: list[int] = []
    stays: list[int] = []
    dropped: list[int] = []
    at = find(leases.key, np.array([o.action.key for o in outcomes], dtype=np.int64))
    for outcome, row in zip(outcomes, at.tolist(), strict=True):
        verb, refused = outcome.action.verb, outcome.refused_for_good
        if row < 0:
            continue
        if verb is Verb.OPEN and refused:
            dropped.append(row)
        elif verb is Verb.OPEN and not outcome.later:
            # An unknown end counts as opened: the job may start, so its GPUs stay promised.
            opened.append(row)
        elif verb is Verb.ASK and outcome.result is Result.DONE:
            asked.append(row)
        elif refused:
            stays.append(row)
    after = _kept_on(_noted(leases, opened, asked, now), stays, terms, now)
    if not dropped:
        return after
    keep = np.ones(len(leases.key), dtype=bool)
    keep[dropped] = False
    return after.take(keep)


def _noted(leases: Leases, opened: list[int], asked: list[int], now: float) -> Leases:
    """Note in the leases which gates opened and which jobs were asked."""
    changed: dict[str, Floats] = {}
    for name, rows in (("opened", opened), ("asked", asked)):
        if rows:
            changed[name] = column = getattr(leases, name).copy()
            column[rows] = now
    return leases.with_columns(**changed) if changed else leases


def _kept_on(leases: Leases, stays: list[int], terms: LeaseTerms, now: float) -> Leases:
    """Renew the leases of jobs that Slurm will not take off their GPUs."""
    if not stays:
        return leases
    phase, asked = leases.phase.copy(), leases.asked.copy()
    phase[stays], asked[stays] = LeasePhase.RUNNING, 0.0
    renewed = with_next_term(leases, np.array(stays, dtype=np.int64), terms, now)
    return renewed.with_columns(phase=phase, asked=asked)
