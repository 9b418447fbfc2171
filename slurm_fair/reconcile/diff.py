"""Plan against fact: what must be done so that the second becomes the first. Level-triggered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from slurm_fair.model import (
    Action,
    Blocked,
    JobState,
    JobTable,
    LeasePhase,
    Leases,
    LeaseTerms,
    Outcome,
    Snapshot,
    Verb,
)
from slurm_fair.model.columns import Bools, Ints, among, any_of, code, find
from slurm_fair.model.ids import TASK_BITS, pack

_NO_ANSWER = 0
_NOBODY = np.zeros(0, dtype=np.int64)
_GRANTED, _REVOKING = code(LeasePhase.GRANTED), code(LeasePhase.REVOKING)
_WAITING, _NOT_BLOCKED = code(JobState.WAITING), code(Blocked.NOT_BLOCKED)
_RUNNING = int(JobState.RUNNING)
_OPEN = Verb.OPEN
# A gate is not ours to set on a job that somebody holds under the hold gate; its begin time may be moved.
_NEVER_GATED = (Blocked.SHAPE, Blocked.UNSETTLED)


def actions_for(
    leases: Leases, snapshot: Snapshot, terms: LeaseTerms, unsettled: Mapping[int, float], now: float
) -> tuple[Action, ...]:
    """Everything that is to be done now, most urgent first; one act per job at a time.

    An unsplit array whose gate is due is closed whole, and those of its tasks that were promised GPUs are opened
    at the next look: an array that has a task to open in every tick would else never have its gate renewed.
    """
    revoking = _revocations(leases, snapshot, terms, now)
    closing = _closings(leases, snapshot, terms, now)
    if not closing:
        actions = revoking + _openings(leases, snapshot, set())
        return _settled(actions, unsettled)
    closing = [a for a in closing if a.key not in unsettled]
    arrays = [a for a in closing if a.whole_record]
    opening = _openings(leases, snapshot, {a.record for a in arrays})
    opened = {action.key for action in opening}
    single = [a for a in closing if not a.whole_record and a.key not in opened]
    return _settled([*revoking, *arrays, *opening, *single], unsettled)


def requeues_for(outcomes: Iterable[Outcome]) -> list[Action]:
    """Those that answered as soon as they were asked are requeued at once: no look need show it first."""
    asked = [outcome.action for outcome in outcomes if outcome.answered]
    return [Action(Verb.REQUEUE, a.key, a.record, a.submit, a.restarts, why="it answered") for a in asked]


def _settled(actions: list[Action], unsettled: Mapping[int, float]) -> tuple[Action, ...]:
    """Those on jobs whose last act has a known outcome."""
    return tuple([a for a in actions if a.key not in unsettled] if unsettled else actions)


def _action(verb: Verb, row: int, snapshot: Snapshot, **more: object) -> Action:
    jobs = snapshot.jobs
    return Action(
        verb,
        int(jobs.key[row]),
        int(jobs.record[row]),
        float(jobs.submit[row]),
        int(jobs.restarts[row]),
        **more,  # type: ignore[arg-type]
    )


def _revocations(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> list[Action]:
    """Ask; requeue on the answer or when the grace is over; ask again when we were away for longer."""
    revoking = (leases.phase == _REVOKING).nonzero()[0]
    if not revoking.size:
        return []
    row = find(snapshot.jobs.key, leases.key)
    actions = []
    for at in revoking.tolist():
        job = int(row[at])
        if job < 0 or snapshot.jobs.state[job] != _RUNNING:
            continue
        answered = snapshot.jobs.acknowledged[job] != _NO_ANSWER
        grace = terms.grace_of(snapshot.graces.get(int(leases.key[at]), 0.0))
        # A job that nobody fetched within the grace has gone on: what it saved then is old by now.
        outdated = now > leases.asked[at] + grace + terms.interval
        if not leases.asked[at]:
            actions.append(_action(Verb.ASK, job, snapshot, why="its lease is over"))
        elif answered and outdated:
            actions.append(_action(Verb.ASK, job, snapshot, why="its answer is too old"))
        elif answered:
            actions.append(_action(Verb.REQUEUE, job, snapshot, why="it answered"))
        elif now >= leases.asked[at] + grace:
            actions.append(_action(Verb.REQUEUE, job, snapshot, why="no answer within the grace"))
    return actions


def _openings(leases: Leases, snapshot: Snapshot, closing: set[int]) -> list[Action]:
    """Open the gates of promised jobs whose GPUs are free in fact, oldest promise first.

    `closing` = records of arrays that are closed whole in this tick.
    """
    granted = (leases.phase == _GRANTED).nonzero()[0]
    if not granted.size:
        return []
    is_open = leases.opened[granted] > 0
    waits = granted[~is_open]
    if not waits.size:
        return []
    jobs, nodes, places = snapshot.jobs, snapshot.nodes, leases.places
    free = nodes.capacity - snapshot.held.per_node(len(nodes.names))
    if len(waits) < len(granted):
        free -= places.only(granted[is_open]).per_node(len(nodes.names))
    if len(waits) > 1:
        waits = waits[leases.granted[waits].argsort(kind="stable")]
    rows = find(jobs.key, leases.key[waits]).tolist()
    first, last = places.row.searchsorted(waits), places.row.searchsorted(waits, side="right")
    actions = []
    for row, begin, end in zip(rows, first.tolist(), last.tolist(), strict=True):
        where, count = places.node[begin:end], places.gpus[begin:end]
        if row < 0 or begin == end or any_of(free[where] < count):
            continue
        if closing and int(jobs.record[row]) in closing:
            continue
        if end - begin > 1 and _would_take_what_others_were_promised(
            leases, snapshot, granted, row, begin, end
        ):
            continue
        free[where] -= count
        names = tuple([nodes.names[node] for node in where.tolist()])
        until = float(jobs.gate_until[row])
        actions.append(_action(_OPEN, row, snapshot, nodes=names, until=until, why="granted"))
    return actions


def _would_take_what_others_were_promised(
    leases: Leases, snapshot: Snapshot, granted: Ints, row: int, begin: int, end: int
) -> bool:
    """Whether a gang that Slurm splits in its own way shares a node with somebody who has yet to start there.

    It starts when they have. Of two such gangs neither would ever start, so of those the earlier one does.
    """
    places, since = leases.places, leases.granted
    where, mine = places.node[begin:end], int(places.row[begin])
    if not _splits_freely(snapshot, row):
        return False
    apart = _on_parts_of_nodes(snapshot, row, where, places.gpus[begin:end])
    here = np.isin(places.node, where) & np.isin(places.row, granted)
    for other in sorted(set(places.row[here].tolist()) - {mine}):
        # What was promised after a gang of whole nodes is what these leave: it may wait for its turn.
        if not apart and since[other] > since[mine]:
            continue
        job = int(find(snapshot.jobs.key, leases.key[[other]])[0])
        alike = job >= 0 and _splits_freely(snapshot, job) and len(places.nodes_of(other)) > 1
        if not alike or (since[other], other) < (since[mine], mine):
            return True
    return False


def _splits_freely(snapshot: Snapshot, row: int) -> bool:
    """Whether its user left the split over nodes to Slurm."""
    return not snapshot.jobs.gpus_per_node[row] and bool(snapshot.jobs.nodes[row] <= 1)


def _on_parts_of_nodes(snapshot: Snapshot, row: int, where: Ints, count: Ints) -> bool:
    """Unlike a gang of whole nodes, which leaves a part of one of them at most."""
    sizes, gpus = snapshot.nodes.gpus[where], int(snapshot.jobs.gpus[row])
    partly = int(np.count_nonzero(count < sizes))
    return partly > 1 or int(count.sum()) > gpus or gpus <= int(sizes.max())


def _closings(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> list[Action]:
    """Set, renew and tidy gates of waiting jobs; one act for a whole unsplit array."""
    jobs = snapshot.jobs
    rows = _due(leases, snapshot, terms, now)
    if not rows.size:
        return []
    opened = leases.key[(leases.phase == _GRANTED) & (leases.opened > 0)]
    starting = set((opened >> TASK_BITS).tolist())
    shared = _shared_records(jobs.record, jobs.state == _WAITING)
    patient = jobs.gated & (jobs.gate_until - now >= terms.term / 2)
    until = float(math.ceil(now + 2 * terms.term))
    actions, done = [], set()
    for row in rows[np.argsort(jobs.gate_until[rows], kind="stable")].tolist():
        mine = max(until, float(jobs.gate_until[row]) if np.isfinite(jobs.gate_until[row]) else until)
        if not shared[row]:
            actions.append(_action(Verb.CLOSE, row, snapshot, until=mine, why="waits for its lease"))
        elif int(jobs.record[row]) not in done and not (patient[row] and _base(jobs.key, row) in starting):
            done.add(int(jobs.record[row]))
            whole = _action(
                Verb.CLOSE, row, snapshot, until=mine, whole_record=True, why="waits for its lease"
            )
            actions.append(_with_key(whole, pack(_base(jobs.key, row))))
    return actions


def _base(keys: Ints, row: int) -> int:
    """Id of the array that a job belongs to."""
    return int(keys[row]) >> TASK_BITS


def _with_key(action: Action, key: int) -> Action:
    return Action(
        action.verb, key, action.record, action.submit, action.restarts, action.nodes, action.until,
        action.whole_record, action.why,
    )  # fmt: skip


def _due(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> Ints:
    """Waiting jobs whose gate is missing, runs out within a term, or that carry an old node list of ours."""
    jobs = snapshot.jobs
    waiting = jobs.state == _WAITING
    if not any_of(waiting):
        return _NOBODY
    well_gated = jobs.gate_until - now >= terms.term
    well_gated &= jobs.gated
    well_gated &= jobs.blocked == _NOT_BLOCKED
    well_gated &= ~jobs.pinned
    rows: Ints = (waiting & ~well_gated).nonzero()[0]
    if not rows.size:
        return rows
    due: Ints = rows[_gate_due(jobs.take(rows), jobs, terms, now)]
    opened = leases.key[(leases.phase == _GRANTED) & (leases.opened > 0)]
    return due[~among(jobs.key[due], opened)] if opened.size else due


def _gate_due(jobs: JobTable, everyone: JobTable, terms: LeaseTerms, now: float) -> Bools:
    """Of jobs that all wait, some of `everyone`."""
    own_begin = jobs.blocked == Blocked.OWN_BEGIN
    left = jobs.gate_until - now
    # A user who moves our gate away has that wish until the lease that was running then is over.
    moved_by_user = (jobs.gate_set > 0) & (now - jobs.gate_set < terms.term) & ~own_begin
    missing = ~jobs.gated & ~own_begin & ~moved_by_user
    running_out = jobs.gated & (left < terms.term)
    begins_soon = own_begin & (left <= 2 * terms.interval)
    due: Bools = missing | running_out | begins_soon
    if jobs.pinned.any():
        # Pinning splits a task off its array, so a record that several share carries no list of ours.
        shared = everyone.record[_shared_records(everyone.record, everyone.state == JobState.WAITING)]
        due |= jobs.pinned & ~np.isin(jobs.record, shared)
    if jobs.blocked.any():
        # Slurm does not look at what a held job waits for: the hold must give way to a begin time.
        due |= (jobs.blocked == Blocked.DEPENDENCY) & np.isinf(jobs.gate_until)
        due &= ~np.isin(jobs.blocked, np.array(_NEVER_GATED, dtype=np.int8))
    return due


def _shared_records(record: Ints, waiting: Bools) -> Bools:
    """Rows whose Slurm record stands for several waiting tasks."""
    values, inverse, counts = np.unique(record, return_inverse=True, return_counts=True)
    del values
    shared: Bools = (counts[inverse] > 1) & waiting
    return shared
