"""Leases follow the facts: what was promised starts, what runs ends, what runs unasked is adopted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import (
    Blocked,
    Event,
    JobState,
    JobTable,
    LeasePhase,
    Leases,
    LeaseTerms,
    Placement,
    Snapshot,
)
from slurm_fair.model.columns import Bools, Ints, absent, all_of, any_of, code, find

_WAITING, _RUNNING, _ENDING, _SUSPENDED, _DONE = map(code, JobState)
_GRANTED, _LEASED, _REVOKING = map(code, LeasePhase)
_FREE_TO_START = int(Blocked.NOT_BLOCKED)


class Followed(NamedTuple):
    """What became of the leases."""

    leases: Leases
    events: tuple[Event, ...]
    job: Ints  # row of each lease's job in the snapshot


def follow(leases: Leases, snapshot: Snapshot, terms: LeaseTerms) -> Followed:
    """The leases after what was seen, and what happened to them."""
    row, complete = _jobs_of(leases, snapshot.jobs)
    gone = _gone(leases, row, snapshot.jobs)
    promised = (leases.phase == _GRANTED).nonzero()[0]
    late = _late(leases, row, promised, snapshot, terms)
    kept: Ints | None = None
    events: list[Event] = []
    if gone.size or late.size:
        goes = np.zeros(len(row), dtype=bool)
        goes[gone] = True
        late = late[~goes[late]]
        goes[late] = True
        events += [_ended(leases, at, int(row[at]), snapshot) for at in gone.tolist()]
        events += [_taken_back(leases, at, int(row[at]), snapshot) for at in late.tolist()]
        kept, promised = (~goes).nonzero()[0], promised[~goes[promised]]
    leases = _as_seen(leases, row, promised, kept, snapshot, terms)
    row = row if kept is None else row[kept]
    new = None if complete and kept is None else _unasked(row, snapshot)
    if new is not None and new.size:
        leases, adoptions = _adopted(leases, new, snapshot, terms)
        events, row = events + adoptions, np.sort(np.concatenate((row, new)))
    return Followed(leases, tuple(events), row)


def _jobs_of(leases: Leases, jobs: JobTable) -> tuple[Ints, bool]:
    """Row of each lease's job, -1 where it is gone, and whether all jobs that do not wait have one, as a rule."""
    row: Ints = (jobs.state != _WAITING).nonzero()[0]
    if row.size == leases.key.size and all_of(jobs.key[row] == leases.key):
        return row, True
    return find(jobs.key, leases.key), False


def _gone(leases: Leases, row: Ints, jobs: JobTable) -> Ints:
    """Leases that are over: one lives while its own run holds GPUs, or waits to start with them promised."""
    if not len(jobs.key):
        return np.arange(len(row))
    state = jobs.state[row]
    held = (state >= _RUNNING) & (state <= _SUSPENDED)
    if row.size and row.item(row.argmin()) < 0:
        held &= row >= 0
    doubtful: Ints = (~(held & (jobs.restarts[row] == leases.restarts))).nonzero()[0]
    if not doubtful.size:
        return doubtful
    job, state = row[doubtful], state[doubtful]
    if not ((job >= 0) & (state != _DONE)).nonzero()[0].size:
        return doubtful
    was = leases.restarts[doubtful]
    waits = (leases.phase[doubtful] == _GRANTED) & (state == _WAITING) & (jobs.blocked[job] == _FREE_TO_START)
    # Slurm counts the restart while the old run is still completing.
    same_run = (jobs.restarts[job] == was) | ((state == _ENDING) & (jobs.restarts[job] == was + 1))
    gone: Ints = doubtful[~((held[doubtful] | (waits & (job >= 0))) & same_run)]
    return gone


def _late(leases: Leases, row: Ints, promised: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Ints:
    """Promised, the gate open, and yet not started in time; or promised in vain: for a whole term, on nodes that
    take no work any more, or what its holder keeps."""
    if promised.size and len(snapshot.jobs.key):
        promised = promised[snapshot.jobs.state[row[promised]] == _WAITING]
    if not promised.size:
        return promised
    opened, granted = leases.opened[promised], leases.granted[promised]
    shut = opened <= 0
    in_vain = np.where(
        shut,
        snapshot.time - granted > max(terms.term, terms.grace + terms.start_timeout),
        snapshot.time - opened > terms.start_timeout,
    )
    if shut.any():
        in_vain |= shut & _out_of_service(leases, snapshot)[promised]
        in_vain |= shut & _overdrawn(leases, row, promised, snapshot)
    late: Ints = promised[in_vain]
    return late


def _overdrawn(leases: Leases, row: Ints, promised: Ints, snapshot: Snapshot) -> Bools:
    """Behind shut gates, on nodes that have too little for all that was promised there, because somebody who was
    to give his GPUs back has kept them: the latest promises, as many as it takes."""
    stays = (snapshot.jobs.state == _RUNNING) | (snapshot.jobs.state == _SUSPENDED)
    leaving = row[leases.phase == _REVOKING]
    stays[leaving[leaving >= 0]] = False
    nodes, held, to_come = len(snapshot.nodes.names), snapshot.held, leases.places.only(promised)
    if leases.node_names != snapshot.nodes.names:
        to_come = _renamed(to_come, leases.node_names, snapshot.nodes.names)
    too_many = held.take(stays[held.row]).per_node(nodes) + to_come.per_node(nodes) - snapshot.nodes.capacity
    overdrawn, shut = np.zeros(len(promised), dtype=bool), leases.opened[promised] <= 0
    if not any_of(too_many > 0):
        return overdrawn
    for at in np.lexsort((promised, leases.granted[promised]))[::-1].tolist():
        mine = to_come.only(promised[at : at + 1])
        if shut[at] and any_of(too_many[mine.node] > 0):
            too_many[mine.node] -= mine.gpus
            overdrawn[at] = True
    return overdrawn


def _out_of_service(leases: Leases, snapshot: Snapshot) -> Bools:
    """Leases on a node that takes no new work any more, or is gone."""
    nodes = snapshot.nodes
    if leases.node_names == nodes.names:
        out = ~nodes.usable
    else:
        usable = {name for name, ok in zip(nodes.names, nodes.usable.tolist(), strict=True) if ok}
        out = np.array([name not in usable for name in leases.node_names], dtype=bool)
    stuck = np.zeros(len(leases), dtype=bool)
    if len(leases.places.row):
        stuck[leases.places.row[out[leases.places.node]]] = True
    return stuck


def _as_seen(
    leases: Leases, row: Ints, promised: Ints, kept: Ints | None, snapshot: Snapshot, terms: LeaseTerms
) -> Leases:
    """The kept ones, or all; what was promised and runs now has begun, and all lie where the snapshot says."""
    waits, begun = promised, {}
    if promised.size:
        not_yet = snapshot.jobs.state[row[promised]] == _WAITING
        waits, begun = promised[not_yet], _begun(leases, row, promised[~not_yet], snapshot, terms)
    places, names = _places(leases, row, waits, kept, snapshot), snapshot.nodes.names
    if kept is None:
        return leases.with_columns(places=places, node_names=names, **begun)
    return (leases.with_columns(**begun) if begun else leases).take(kept, places=places, node_names=names)


def _begun(
    leases: Leases, row: Ints, seen: Ints, snapshot: Snapshot, terms: LeaseTerms
) -> dict[str, NDArray[Any]]:
    """The columns that change where a promised job was seen on its GPUs."""
    if not seen.size:
        return {}
    phase, start, end = leases.phase.copy(), leases.start.copy(), leases.end.copy()
    begins = snapshot.jobs.start[row[seen]]
    phase[seen], start[seen] = _LEASED, begins
    # An aligned lease keeps the common end that it was granted for, however long its GPUs took to come free.
    late = (end[seen] <= snapshot.time) | (not terms.aligned)
    if any_of(late):
        since = np.maximum(begins[late], leases.granted[seen[late]])
        end[seen[late]] = [terms.end_for(begin) for begin in since.tolist()]
    return {"phase": phase, "start": start, "end": end}


def _places(leases: Leases, row: Ints, promised: Ints, kept: Ints | None, snapshot: Snapshot) -> Placement:
    """Places in this snapshot's node numbers: Slurm's own for what runs, the promise for what waits."""
    lease_of_job = absent(len(snapshot.jobs.key))
    stay = row if kept is None else row[kept]
    lease_of_job[stay] = np.arange(stay.size)
    if not promised.size:
        return snapshot.held.renumber(lease_of_job)
    number = absent(len(row))
    number[promised] = lease_of_job[row[promised]]
    lease_of_job[row[promised]] = -1
    to_come = leases.places.renumber(number)
    if leases.node_names != snapshot.nodes.names:
        to_come = _renamed(to_come, leases.node_names, snapshot.nodes.names)
    return snapshot.held.renumber(lease_of_job).plus(to_come)


def _renamed(places: Placement, old: tuple[str, ...], new: tuple[str, ...]) -> Placement:
    """The same nodes under the numbers of another snapshot; a node that is gone is dropped."""
    at = {name: row for row, name in enumerate(new)}
    number = np.array([at.get(name, -1) for name in old] or [-1], dtype=np.int64)
    kept = places.take(number[places.node] >= 0)
    return kept.with_columns(node=number[kept.node])


def _unasked(row: Ints, snapshot: Snapshot) -> Ints:
    """Jobs that run without a lease: started before us, or by somebody else's hand."""
    state = snapshot.jobs.state
    without = (state == _RUNNING) | (state == _SUSPENDED)
    without[row] = False
    new: Ints = without.nonzero()[0]
    return new


def _adopted(leases: Leases, new: Ints, snapshot: Snapshot, terms: LeaseTerms) -> tuple[Leases, list[Event]]:
    """With a lease for each of these jobs."""
    jobs, now = snapshot.jobs, snapshot.time
    start = jobs.start[new]
    since = np.where(now - start < max(3 * terms.interval, 5.0), start, now)
    end = np.array([terms.end_for(instant) for instant in since.tolist()])
    number = absent(len(jobs.key))
    number[new] = np.arange(len(leases.key), len(leases.key) + len(new))
    after = leases.extended(
        len(new),
        key=jobs.key[new],
        phase=_LEASED,
        restarts=jobs.restarts[new],
        gpus=jobs.gpus[new],
        granted=since,
        start=start,
        end=end,
        renewals=0,
        asked=0.0,
        opened=since,
        adopted=True,
        places=leases.places.joined(snapshot.held.renumber(number)),
    )
    return after, [
        _adoption(at, terms.said_end(until), snapshot)
        for at, until in zip(new.tolist(), end.tolist(), strict=True)
    ]


# -- events ---------------------------------------------------------------------------------------------------


def _tenant(row: int, snapshot: Snapshot) -> str:
    return snapshot.tenants.names[snapshot.jobs.tenant[row]] if row >= 0 else ""


def _ended(leases: Leases, at: int, row: int, snapshot: Snapshot) -> Event:
    phase, why = leases.phase[at], "its job ended"
    if row >= 0 and snapshot.jobs.state[row] == _WAITING:
        why = "revoked" if phase == _REVOKING else "requeued by somebody else, or its node failed"
        if phase == _GRANTED:
            why = "held, or blocked otherwise, before it started"
    detail = {
        "why": why,
        "number": int(leases.renewals[at]) + 1,
        "held_seconds": _held_seconds(leases, at, row, snapshot),
    }
    return Event(
        snapshot.time, "returned", int(leases.key[at]), _tenant(row, snapshot), int(leases.gpus[at]), detail
    )


def _held_seconds(leases: Leases, at: int, row: int, snapshot: Snapshot) -> float:
    """How long its run held GPUs; one that ended before this look held them until it ended."""
    start, until = float(leases.start[at]), snapshot.time
    if row >= 0 and snapshot.jobs.state[row] == _DONE:
        start, end = start or float(snapshot.jobs.start[row]), float(snapshot.jobs.end[row])
        until = end if end > start else until
    return max(until - start, 0.0) if start else 0.0


def _taken_back(leases: Leases, at: int, row: int, snapshot: Snapshot) -> Event:
    reason = snapshot.reasons[row] if leases.opened[at] else _why_in_vain(leases, at, snapshot)
    opened = bool(leases.opened[at])
    nodes = [leases.node_names[node] for node in leases.places.nodes_of(at).tolist()]
    detail = {
        "why": f"Slurm did not start it: {reason}" if opened else reason,
        "opened": opened,
        "nodes": nodes,
    }
    return Event(
        snapshot.time, "takenback", int(leases.key[at]), _tenant(row, snapshot), int(leases.gpus[at]), detail
    )


def _why_in_vain(leases: Leases, at: int, snapshot: Snapshot) -> str:
    stuck = _out_of_service(leases, snapshot)[at]
    return "its node takes no new work any more" if stuck else "its GPUs did not come free"


def _adoption(row: int, until: float | None, snapshot: Snapshot) -> Event:
    jobs = snapshot.jobs
    detail = {"until": until, "start": float(jobs.start[row])}
    return Event(
        snapshot.time, "adopted", int(jobs.key[row]), _tenant(row, snapshot), int(jobs.gpus[row]), detail
    )
