"""Leases follow the facts: what was promised starts, what runs ends, what runs unasked is adopted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import (
    NO_PLACES,
    Event,
    EventKind,
    JobTable,
    LeasePhase,
    Leases,
    LeaseTerms,
    Snapshot,
)
from slurm_fair.model.columns import NO_ROWS, Ints, all_of, among, any_of, find
from slurm_fair.reconcile.events import GATE_WAS_OPENED, job_event, lease_event
from slurm_fair.reconcile.moved_gates import moved
from slurm_fair.reconcile.vain import in_vain


class Followed(NamedTuple):
    """The leases after a look, and their events."""

    leases: Leases
    events: tuple[Event, ...]
    job: Ints  # row of each lease's job in the snapshot


def follow(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, *, tell_ends: bool = True) -> Followed:
    """The leases after what was seen, and what happened to them; ends of leases are told where they are wanted."""
    row, complete = _jobs_of(leases, snapshot.jobs)
    gone, unasked = _gone(leases, row, snapshot.jobs, complete)
    begun, waits = _promised(leases, row, snapshot.jobs)
    if gone.size and waits.size:
        waits = waits[~among(waits, gone)]  # nobody waits for what was promised to those
    late = in_vain(leases, row, waits, snapshot, terms) if waits.size else {}
    events: tuple[Event, ...] = ()
    kept = None
    if gone.size or late:
        leaves = np.zeros(len(row), dtype=bool)
        leaves[gone] = True
        if late:
            leaves[list(late)] = True
            waits = waits[~leaves[waits]]
        stays = ~leaves
        kept, begun = stays.nonzero()[0], begun[stays[begun]]
        ended = gone.tolist() if tell_ends else ()
        events = (
            *(_ended(leases, at, row.item(at), snapshot) for at in ended),
            *(_taken_back(leases, at, row.item(at), why, snapshot) for at, why in late.items()),
        )
    leases = _as_seen(leases, row, begun, waits, kept, snapshot, terms)
    row = row if kept is None else row[kept]
    if unasked or not complete:
        new = _unasked(row, snapshot)
        if new.size:
            leases, adoptions = _adopted(leases, new, snapshot, terms)
            events, row = (*events, *adoptions), np.sort(np.concatenate((row, new)))
    return Followed(leases, events, row)


def _jobs_of(leases: Leases, jobs: JobTable) -> tuple[Ints, bool]:
    """Row of each lease's job, -1 where it is gone, and whether all jobs that do not wait have one, as a rule."""
    row: Ints = (~jobs.waiting).nonzero()[0]
    if row.size == leases.key.size and all_of(jobs.key[row] == leases.key):
        return row, True
    return find(jobs.key, leases.key), False


def _gone(leases: Leases, row: Ints, jobs: JobTable, listed: bool) -> tuple[Ints, bool]:
    """Leases that are over, and whether the job of one may hold GPUs all the same.

    A lease lives while its own run holds GPUs, or waits to start with them promised. `listed` = no row is missing.
    """
    if not len(jobs.key):
        return np.arange(len(row)), False
    doubts = ~jobs.running[row]
    doubts |= jobs.restarts[row] != leases.restarts
    doubts |= jobs.submit[row] > leases.start
    if not listed:
        doubts |= row < 0
    doubtful: Ints = doubts.nonzero()[0]
    if not doubtful.size:
        return doubtful, False
    job = row[doubtful]
    lives = ~jobs.done[job]
    if not listed:
        lives &= job >= 0
    if not any_of(lives):
        return doubtful, False
    was = leases.restarts[doubtful]
    holds = jobs.holds_gpus[job]
    waits = leases.promised[doubtful] & jobs.waiting[job] & jobs.unblocked[job]
    # Slurm counts the restart while the old run is still completing.
    same_run = (jobs.restarts[job] == was) | (jobs.ending[job] & (jobs.restarts[job] == was + 1))
    # What was submitted after the start, and started at another instant, is another job under the id. A run starts
    # before its own submission where the clock was set back in between, and keeps its start.
    start = leases.start[doubtful]
    same_run &= (jobs.submit[job] <= start) | (jobs.start[job] == start) | leases.promised[doubtful]
    over = ~((holds | waits) & same_run & lives)
    return doubtful[over], any_of(holds & over)


def _promised(leases: Leases, row: Ints, jobs: JobTable) -> tuple[Ints, Ints]:
    """The leases that were promised: those whose jobs wait no more, and those that wait."""
    promised = leases.promised.nonzero()[0]
    if not promised.size or not len(jobs.key):
        return NO_ROWS, NO_ROWS
    wait = jobs.waiting[row[promised]]
    return (promised[~wait], promised[wait]) if any_of(wait) else (promised, NO_ROWS)


def _as_seen(
    leases: Leases,
    row: Ints,
    begun: Ints,
    waits: Ints,
    kept: Ints | None,
    snapshot: Snapshot,
    terms: LeaseTerms,
) -> Leases:
    """The kept ones, or all: promised ones that run now have begun, those that wait keep their promises."""
    columns = _begun(leases, row, begun, kept, snapshot, terms) if begun.size else {}
    names = snapshot.nodes.names
    promises = NO_PLACES
    if waits.size:
        promises = leases.promises.only(leases.key[waits]).renamed(leases.node_names, names)
    seen = leases if kept is None else leases.take(kept)
    return seen.with_columns(promises=promises, node_names=names, **columns)


def _begun(
    leases: Leases, row: Ints, seen: Ints, kept: Ints | None, snapshot: Snapshot, terms: LeaseTerms
) -> dict[str, NDArray[Any]]:
    """The columns of the kept ones, or of all, that change where a promised job was seen on its GPUs."""
    begins, granted = snapshot.jobs.start[row[seen]], leases.granted[seen]
    if kept is None:
        phase, start, end = leases.phase.copy(), leases.start.copy(), leases.end.copy()
    else:
        seen = kept.searchsorted(seen)
        phase, start, end = leases.phase[kept], leases.start[kept], leases.end[kept]
    phase[seen], start[seen] = LeasePhase.RUNNING, begins
    # An aligned lease keeps the common end that it was granted for, however long its GPUs took to come free.
    late = (end[seen] <= snapshot.time) | (not terms.aligned)
    if any_of(late):
        since = np.maximum(begins[late], granted[late])
        end[seen[late]] = [terms.end_for(begin) for begin in since.tolist()]
    return {"phase": phase, "start": start, "end": end}


def _unasked(row: Ints, snapshot: Snapshot) -> Ints:
    """Jobs that run without a lease: started before us, or by somebody else's hand."""
    without = snapshot.jobs.running | snapshot.jobs.suspended
    without[row] = False
    new: Ints = without.nonzero()[0]
    return new


def _adopted(leases: Leases, new: Ints, snapshot: Snapshot, terms: LeaseTerms) -> tuple[Leases, list[Event]]:
    """The leases with one for each of these jobs, and the events that say so."""
    jobs, now = snapshot.jobs, snapshot.time
    start = jobs.start[new]
    since = np.where(now - start < max(3 * terms.interval, 5.0), start, now)
    end = np.array([terms.end_for(instant) for instant in since.tolist()])
    after = leases.extended(
        len(new),
        key=jobs.key[new],
        phase=LeasePhase.RUNNING,
        restarts=jobs.restarts[new],
        gpus=jobs.gpus[new],
        granted=since,
        start=start,
        end=end,
        renewals=0,
        asked=0.0,
        opened=since,
        adopted=True,
    )
    return after, [
        _adoption(at, terms.said_end(until), by_hand, snapshot)
        for at, until, by_hand in zip(
            new.tolist(), end.tolist(), moved(jobs, terms)[new].tolist(), strict=True
        )
    ]


def taken_back(leases: Leases, at: Ints, why: str, snapshot: Snapshot) -> tuple[Leases, tuple[Event, ...]]:
    """The leases without these promises, and an event for each."""
    rows = find(snapshot.jobs.key, leases.key[at]).tolist()
    events = [
        _taken_back(leases, one, row, why, snapshot) for one, row in zip(at.tolist(), rows, strict=True)
    ]
    keep = np.ones(len(leases), dtype=bool)
    keep[at] = False
    return leases.take(keep), tuple(events)


# -- events ---------------------------------------------------------------------------------------------------


def _ended(leases: Leases, at: int, row: int, snapshot: Snapshot) -> Event:
    phase, why = leases.phase[at], "its job ended"
    if row >= 0 and snapshot.jobs.waiting[row]:
        why = "revoked" if phase == LeasePhase.REVOKING else "requeued by somebody else, or its node failed"
        if phase == LeasePhase.GRANTED:
            why = "held, or blocked otherwise, before it started"
    number, held = int(leases.renewals[at]) + 1, _held_seconds(leases, at, row, snapshot)
    return lease_event(
        EventKind.RETURNED, leases, at, snapshot, row, why=why, number=number, held_seconds=held
    )


def _held_seconds(leases: Leases, at: int, row: int, snapshot: Snapshot) -> float:
    """Seconds that its run held GPUs; one that ended before this look held them until it ended."""
    start, until = float(leases.start[at]), snapshot.time
    if row >= 0 and snapshot.jobs.done[row]:
        start, end = start or float(snapshot.jobs.start[row]), float(snapshot.jobs.end[row])
        until = end if end > start else until
    return max(until - start, 0.0) if start else 0.0


def _taken_back(leases: Leases, at: int, row: int, why: str, snapshot: Snapshot) -> Event:
    nodes = [leases.node_names[node] for node in leases.promises.nodes_of(leases.key.item(at)).tolist()]
    opened = {GATE_WAS_OPENED: bool(leases.opened[at])}
    return lease_event(EventKind.TAKEN_BACK, leases, at, snapshot, row, why=why, **opened, nodes=nodes)


def _adoption(row: int, until: float | None, by_hand: bool, snapshot: Snapshot) -> Event:
    start = snapshot.jobs.start.item(row)
    more = {"moved": True} if by_hand else {}
    return job_event(snapshot.time, EventKind.ADOPTED, snapshot, row, until=until, start=start, **more)
