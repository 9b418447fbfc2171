"""Leases follow the facts: what was promised starts, what runs ends, what runs unasked is adopted."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Blocked, Event, JobState, LeasePhase, Leases, LeaseTerms, Placement, Snapshot
from slurm_fair.model.columns import Bools, Ints, find

_WAITING, _RUNNING, _ENDING, _SUSPENDED, _DONE = map(int, JobState)
_GRANTED, _REVOKING = int(LeasePhase.GRANTED), int(LeasePhase.REVOKING)
_FREE_TO_START = int(Blocked.NOT_BLOCKED)


def follow(leases: Leases, snapshot: Snapshot, terms: LeaseTerms) -> tuple[Leases, tuple[Event, ...]]:
    """The leases after what was seen, and what happened to them."""
    row = find(snapshot.jobs.key, leases.key)
    alive = _alive(leases, row, snapshot)
    late = _late(leases, row, snapshot, terms) & alive
    stays = alive & ~late
    events: list[Event] = []
    if not stays.all():
        events += [_ended(leases, at, int(row[at]), snapshot) for at in (~alive).nonzero()[0].tolist()]
        events += [_taken_back(leases, at, int(row[at]), snapshot) for at in late.nonzero()[0].tolist()]
        leases, row = leases.take(stays), row[stays]
    kept = _placed(_started(leases, row, snapshot, terms), row, snapshot)
    adopted = _adopt(kept, row, snapshot, terms)
    if adopted is None:
        return kept, tuple(events)
    events += [_adoption(adopted, at, snapshot) for at in range(len(adopted))]
    return merge(kept, adopted), tuple(events)


def _alive(leases: Leases, row: Ints, snapshot: Snapshot) -> Bools:
    """A lease lives while its own run holds GPUs, or waits to start with them promised."""
    jobs = snapshot.jobs
    if not len(jobs):
        return np.zeros(len(leases), dtype=bool)
    restarts, state = jobs.restarts.take(row), jobs.state.take(row)
    holding = (state >= _RUNNING) & (state <= _SUSPENDED)
    same_run = restarts == leases.restarts
    if not same_run.all():
        # Slurm counts the restart while the old run is still completing.
        same_run |= (state == _ENDING) & (restarts == leases.restarts + 1)
    if not holding.all():
        waiting = (leases.phase == _GRANTED) & (state == _WAITING)
        holding |= waiting & (jobs.blocked.take(row) == _FREE_TO_START)
    alive: Bools = (row >= 0) & same_run & holding
    return alive


def _late(leases: Leases, row: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Bools:
    """Promised, the gate open, and yet not started in time; or promised in vain, for a whole term or on nodes
    that take no work any more."""
    granted = leases.phase == _GRANTED
    if not len(snapshot.jobs) or not granted.any():
        return np.zeros(len(leases), dtype=bool)
    waits = granted & (snapshot.jobs.state[row] == _WAITING)
    opened = leases.opened > 0
    in_vain = np.where(
        opened,
        snapshot.time - leases.opened > terms.start_timeout,
        snapshot.time - leases.granted > max(terms.term, terms.grace + terms.start_timeout),
    )
    late: Bools = waits & (in_vain | (~opened & _out_of_service(leases, snapshot)))
    return late


def _out_of_service(leases: Leases, snapshot: Snapshot) -> Bools:
    """Leases on a node that takes no new work any more, or is gone."""
    usable = {
        name for name, ok in zip(snapshot.nodes.names, snapshot.nodes.usable.tolist(), strict=True) if ok
    }
    out = np.array([name not in usable for name in leases.node_names], dtype=bool)
    stuck = np.zeros(len(leases), dtype=bool)
    if len(leases.places):
        stuck[leases.places.row[out[leases.places.node]]] = True
    return stuck


def _started(leases: Leases, row: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Leases:
    """What was promised and runs now."""
    jobs = snapshot.jobs
    promised = (leases.phase == _GRANTED).nonzero()[0]
    seen = promised[jobs.state[row[promised]] != _WAITING]
    if not len(seen):
        return leases
    phase, start, end = leases.phase.copy(), leases.start.copy(), leases.end.copy()
    phase[seen], start[seen] = LeasePhase.RUNNING, jobs.start[row[seen]]
    # An aligned lease keeps the common end that it was granted for, however long its GPUs took to come free.
    late = seen[(end[seen] <= snapshot.time) | (not terms.aligned)]
    end[late] = [terms.end_for(begin) for begin in np.maximum(start[late], leases.granted[late]).tolist()]
    return leases.with_columns(phase=phase, start=start, end=end)


def _placed(leases: Leases, row: Ints, snapshot: Snapshot) -> Leases:
    """Places in this snapshot's node numbers: Slurm's own for what runs, the promise for what waits."""
    granted = leases.phase == _GRANTED
    lease_of_job = np.full(len(snapshot.jobs), -1, dtype=np.int64)
    lease_of_job[row] = np.where(granted, -1, np.arange(len(leases)))
    places = snapshot.held.renumber(lease_of_job)
    if granted.any():
        promised = leases.places.only(granted.nonzero()[0])
        if leases.node_names != snapshot.nodes.names:
            promised = _renamed(promised, leases.node_names, snapshot.nodes.names)
        places = places.plus(promised)
    return leases.with_columns(places=places, node_names=snapshot.nodes.names)


def _renamed(places: Placement, old: tuple[str, ...], new: tuple[str, ...]) -> Placement:
    """The same nodes under the numbers of another snapshot; a node that is gone is dropped."""
    at = {name: row for row, name in enumerate(new)}
    number = np.array([at.get(name, -1) for name in old] or [-1], dtype=np.int64)
    kept = places.take(number[places.node] >= 0)
    return kept.with_columns(node=number[kept.node])


def _adopt(leases: Leases, row: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Leases | None:
    """A lease for each job that runs without one: started before us, or by somebody else's hand."""
    jobs = snapshot.jobs
    without = (jobs.state == _RUNNING) | (jobs.state == _SUSPENDED)
    without[row] = False
    new = without.nonzero()[0]
    if not len(new):
        return None
    fresh = snapshot.time - jobs.start[new] < max(3 * terms.interval, 5.0)
    since = np.where(fresh, jobs.start[new], snapshot.time)
    number = np.full(len(jobs), -1, dtype=np.int64)
    number[new] = np.arange(len(new))
    zeros = np.zeros(len(new))
    return Leases(
        key=jobs.key[new],
        phase=np.full(len(new), LeasePhase.RUNNING, dtype=np.int8),
        restarts=jobs.restarts[new],
        gpus=jobs.gpus[new],
        granted=since,
        start=jobs.start[new],
        end=np.array([terms.end_for(start) for start in since.tolist()]),
        renewals=np.zeros(len(new), dtype=np.int64),
        asked=zeros,
        opened=since,
        adopted=np.ones(len(new), dtype=bool),
        places=snapshot.held.renumber(number),
        node_names=snapshot.nodes.names,
    )


def merge(first: Leases, second: Leases) -> Leases:
    """Two sets of leases of different jobs as one, sorted by key."""
    if len(first) and len(second) and first.key[-1] < second.key[0]:  # new jobs have the greater ids
        behind = second.places.with_columns(row=second.places.row + len(first))
        both = first.joined(second)
        return both.with_columns(places=first.places.joined(behind), node_names=second.node_names)
    columns = {
        name: np.concatenate([column, getattr(second, name)]) for name, column in first._arrays().items()
    }
    order = np.argsort(columns["key"], kind="stable")
    at = np.empty(len(order), dtype=np.int64)
    at[order] = np.arange(len(order))
    places = first.places.renumber(at[: len(first)]).plus(second.places.renumber(at[len(first) :]))
    sorted_columns = {name: column[order] for name, column in columns.items()}
    return first.with_columns(**sorted_columns, places=places, node_names=second.node_names)


# -- events ---------------------------------------------------------------------------------------------------


def _tenant(row: int, snapshot: Snapshot) -> str:
    return snapshot.tenants.names[snapshot.jobs.tenant[row]] if row >= 0 else ""


def _ended(leases: Leases, at: int, row: int, snapshot: Snapshot) -> Event:
    revoked = leases.phase[at] == _REVOKING
    why = "its job ended"
    if row >= 0 and snapshot.jobs.state[row] == _WAITING:
        why = "revoked" if revoked else "requeued by somebody else, or its node failed"
        if leases.phase[at] == _GRANTED:
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


def _adoption(leases: Leases, at: int, snapshot: Snapshot) -> Event:
    row = int(find(snapshot.jobs.key, leases.key[at : at + 1])[0])
    detail = {"until": float(leases.end[at]), "start": float(leases.start[at])}
    return Event(
        snapshot.time, "adopted", int(leases.key[at]), _tenant(row, snapshot), int(leases.gpus[at]), detail
    )
