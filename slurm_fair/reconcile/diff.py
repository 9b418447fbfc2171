"""Plan against cluster: the acts that make the cluster follow the plan. Level-triggered."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from slurm_fair.model import (
    Action,
    Answer,
    Blocked,
    JobTable,
    Leases,
    LeaseTerms,
    Placement,
    Snapshot,
    Verb,
)
from slurm_fair.model.action import ANSWERED, NO_ANSWER
from slurm_fair.model.columns import NO_ROWS, Bools, Floats, Ints, among, any_of, find
from slurm_fair.model.ids import TASK_BITS, pack
from slurm_fair.model.placement import slurm_fill
from slurm_fair.reconcile.for_whom import LEASE_OVER
from slurm_fair.reconcile.free import Free, needs
from slurm_fair.reconcile.gate_lengths import gate_lengths, renewed_with
from slurm_fair.reconcile.moved_gates import stays_open

_AWAY_SECONDS = 30.0  # an act of unknown outcome is tried again before this
_FEW_RENEWALS = 400  # one scontrol's worth
_SLACK_SECONDS = 2.0  # gates end at whole seconds
_NEVER_GATED = (Blocked.SHAPE, Blocked.UNSETTLED)
_HELD = (Blocked.USER_HOLD, Blocked.ADMIN_HOLD, Blocked.SLURM_HOLD)


def actions_for(
    leases: Leases, snapshot: Snapshot, terms: LeaseTerms, unsettled: Mapping[int, float], now: float
) -> tuple[Action, ...]:
    """Everything that is to be done now, most urgent first; one act per job at a time.

    An unsplit array has one gate. If that is due, it is renewed first, and tasks that were promised GPUs are
    opened at the next look. Else an array with a task to open in every tick would never have its gate renewed.
    """
    revoking = _revocations(leases, snapshot, terms, now)
    closing = _closings(leases, snapshot, terms, now)
    if not closing:
        actions = revoking + _openings(leases, snapshot, set())
        return _of_known_outcome(actions, unsettled) + snapshot.to_free
    closing = [a for a in closing if a.key not in unsettled]
    arrays = [a for a in closing if a.whole_record]
    opening = _openings(leases, snapshot, {a.record for a in arrays})
    opened = {action.key for action in opening}
    has_time = _has_time(snapshot.jobs, terms, now) if revoking or opening else set()
    single = [a for a in closing if not a.whole_record and a.key not in opened and a.key not in has_time]
    return _of_known_outcome([*revoking, *arrays, *opening, *single], unsettled) + snapshot.to_free


def _of_known_outcome(actions: list[Action], unsettled: Mapping[int, float]) -> tuple[Action, ...]:
    """The actions on jobs whose last act has a known outcome.

    An act on a whole array may still come to each task that waits, and shut the gate that was just opened.
    """
    if not unsettled:
        return tuple(actions)
    known = [a for a in actions if a.key not in unsettled]
    return tuple([a for a in known if a.verb is not Verb.OPEN or pack(a.key >> TASK_BITS) not in unsettled])


def _action(
    verb: Verb, row: int, snapshot: Snapshot, why: str, until: float = 0.0, nodes: tuple[str, ...] = ()
) -> Action:
    jobs = snapshot.jobs
    key, record, restarts = jobs.key.item(row), jobs.record.item(row), jobs.restarts.item(row)
    return Action(verb, key, record, jobs.submit.item(row), restarts, nodes, until, False, why)


def _revocations(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> list[Action]:
    """Ask who was not asked, and requeue on any answer, saved or not.

    An answer that is too old is asked for again. Without an answer the job is requeued when its grace is over, and
    asked again where nobody looked for long after that.
    """
    revoking = leases.revoking.nonzero()[0]
    if not revoking.size:
        return []
    jobs = snapshot.jobs
    row = find(jobs.key, leases.key[revoking])
    at, row = revoking[row >= 0], row[row >= 0]
    runs = jobs.running[row]
    at, row = at[runs], row[runs]
    columns = (row, leases.key[at], leases.asked[at], jobs.acknowledged[row])
    actions = []
    for job, key, asked, answer in zip(*(column.tolist() for column in columns), strict=True):
        if not asked and not jobs.checkpoints.item(job):
            actions.append(_action(Verb.REQUEUE, job, snapshot, "its lease is over, and it cannot save"))
            continue
        if not asked:
            actions.append(_action(Verb.ASK, job, snapshot, LEASE_OVER))
            continue
        grace = terms.grace_of(snapshot.graces.get(key, 0.0))
        if answer == Answer.NONE:
            if now >= asked + 2 * grace + 2 * terms.interval + _AWAY_SECONDS:
                # Nobody looked when its grace was over, or the clock was set: it may not have had any.
                actions.append(_action(Verb.ASK, job, snapshot, "its grace cannot be told"))
            elif now >= asked + grace:
                actions.append(_action(Verb.REQUEUE, job, snapshot, NO_ANSWER))
        elif now > asked + grace + terms.interval:
            # It was not requeued in time and has gone on: what it saved then is old by now.
            actions.append(_action(Verb.ASK, job, snapshot, "its answer is too old"))
        else:
            actions.append(_action(Verb.REQUEUE, job, snapshot, ANSWERED))
    return actions


def _openings(leases: Leases, snapshot: Snapshot, closed_records: set[int]) -> list[Action]:
    """Open the gates of promised jobs whose GPUs, CPUs and memory are free in fact, oldest promise first.

    `closed_records` = those of arrays that are closed whole in this tick.
    """
    granted = leases.promised.nonzero()[0]
    if not granted.size:
        return []
    jobs, nodes = snapshot.jobs, snapshot.nodes
    promised, rows = leases.promises_by(jobs.key, nodes.names), find(jobs.key, leases.key[granted]).tolist()
    opened, since = (
        leases.opened[granted].tolist(),
        dict(zip(rows, leases.granted[granted].tolist(), strict=True)),
    )
    waits = [row for row, at in zip(rows, opened, strict=True) if row >= 0 and at <= 0]
    if not waits:
        return []
    sites, free = promised.sites, Free.of(snapshot)
    if len(waits) < len(rows):
        for row in since.keys() - waits:
            free.take(needs(snapshot, row, sites.get(row, ())))
    actions = []
    for row in sorted(waits, key=since.__getitem__):
        where = sites.get(row, ())
        mine = needs(snapshot, row, where)
        if not where or free.lacks(mine):
            continue
        if jobs.record.item(row) in closed_records:
            continue
        if len(where) > 1 and _would_take_what_others_were_promised(promised, snapshot, since, row):
            continue
        free.take(mine)
        names = tuple([nodes.names[node] for node, _ in where])
        opening = _action(Verb.OPEN, row, snapshot, "granted", jobs.gate_until.item(row), names)
        actions.append(opening._replace(gpus=_granted_size(promised, snapshot, row)))
    return actions


def _granted_size(promised: Placement, snapshot: Snapshot, row: int) -> int:
    """GPUs that an elastic job was granted; 0 for one that is not elastic."""
    if snapshot.sizes is None or row not in snapshot.sizes.row:
        return 0
    return int(promised.gpus[promised.row == row].sum())


def _would_take_what_others_were_promised(
    promised: Placement, snapshot: Snapshot, since: Mapping[int, float], row: int
) -> bool:
    """True if a gang that Slurm splits in its own way may come to lie on GPUs of somebody who has yet to start.

    It starts when they have. What was promised later is what it leaves, and may wait: else it would
    wait for ever newer ones. Of two such gangs neither would ever start, so of those the earlier one does; and
    while that may lie otherwise than was promised, nobody knows what it leaves to the later one.
    `since` = when jobs were promised GPUs that have not been seen running.
    """
    if not _splits_freely(snapshot, row):
        return False
    harmless = _leaves_them_theirs(promised, snapshot, row)
    here = np.isin(promised.node, promised.nodes_of(row)) & (promised.row != row)
    for other in since.keys() & set(promised.row[here].tolist()):
        if since[other] > since[row]:
            continue
        alike = _splits_freely(snapshot, other) and len(promised.nodes_of(other)) > 1
        earlier, known = since[other] < since[row], alike and _leaves_them_theirs(promised, snapshot, other)
        if alike and earlier and not known:
            return True
        if not harmless and (known or not alike or other < row):
            return True
    return False


def _splits_freely(snapshot: Snapshot, row: int) -> bool:
    """True if its user left the split over nodes to Slurm."""
    return not snapshot.jobs.gpus_per_node[row]


def _leaves_them_theirs(promised: Placement, snapshot: Snapshot, row: int) -> bool:
    """True if it gets no GPU of theirs even if it starts before all of them, and so whoever starts first."""
    count, nodes = len(snapshot.nodes.names), promised.nodes_of(row).tolist()
    free = snapshot.nodes.capacity - snapshot.held.per_node(count)
    left = free - promised.take(promised.row != row).per_node(count)
    gang = _granted_size(promised, snapshot, row) or snapshot.jobs.gpus.item(row)
    sites = slurm_fill(nodes, map(free.item, nodes), gang)
    return all(here <= left.item(node) for node, here in sites)


def _closings(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> list[Action]:
    """Set, renew and tidy gates of waiting jobs; one act for a whole unsplit array."""
    jobs = snapshot.jobs
    rows = _due(leases, snapshot, terms, now)
    if not rows.size:
        return []
    opened = leases.key[leases.promised & (leases.opened > 0)]
    starting = set((opened >> TASK_BITS).tolist())
    shared = _shared_records(jobs.record, jobs.waiting)
    seconds = gate_lengths(snapshot, terms, now)
    patient = jobs.gated & (jobs.gate_until - now >= seconds / 4)
    until = _gates_until(jobs, seconds, terms, now)
    actions, done = [], set()
    for row in _soonest_first(rows, leases, jobs, terms, now).tolist():
        close = _action(Verb.CLOSE, row, snapshot, "waits for its lease", until.item(row))
        if not shared[row]:
            actions.append(close)
        elif close.record not in done and not (patient[row] and _base(jobs.key, row) in starting):
            done.add(close.record)
            actions.append(close._replace(key=pack(_base(jobs.key, row)), whole_record=True))
    return actions


def _gates_until(jobs: JobTable, seconds: Floats, terms: LeaseTerms, now: float) -> Floats:
    """The end of each gate that is set now, in whole seconds. One that stands longer stays, without a deadline."""
    until = np.ceil(now + seconds)
    shortened = jobs.gated & (seconds < 2 * terms.term)
    longer: Floats = np.where(np.isfinite(jobs.gate_until) & ~shortened, jobs.gate_until, until)
    return np.maximum(until, longer)


def _soonest_first(rows: Ints, leases: Leases, jobs: JobTable, terms: LeaseTerms, now: float) -> Ints:
    """The next to run out first. While jobs change places, renewals that have time wait."""
    rows = rows[np.argsort(jobs.gate_until[rows], kind="stable")]
    if not any_of(leases.revoking | leases.promised):
        return rows
    renews = jobs.gated[rows] & ~jobs.pinned[rows] & (jobs.gate_until[rows] > now + 2 * terms.interval)
    renews &= ~_as_submitted(jobs)[rows]
    late = renews & (jobs.gate_until[rows] < now + terms.term / 2)
    return rows[~renews | (late & (np.cumsum(late) <= _FEW_RENEWALS))]


def _has_time(jobs: JobTable, terms: LeaseTerms, now: float) -> set[int]:
    """Jobs behind a good gate that only carry a node list of ours still: no start or stop waits for its end."""
    rows = jobs.gated & jobs.pinned & (jobs.gate_until >= now + terms.term / 2) & np.isfinite(jobs.gate_until)
    keys: list[int] = jobs.key[rows].tolist()
    return set(keys)


def _base(keys: Ints, row: int) -> int:
    """Id of the array that a job belongs to."""
    return int(keys[row]) >> TASK_BITS


def _due(leases: Leases, snapshot: Snapshot, terms: LeaseTerms, now: float) -> Ints:
    """Waiting jobs whose gate is missing, runs out or ends too late, or that carry an old node list of ours."""
    jobs = snapshot.jobs
    waiting = jobs.waiting
    if not any_of(waiting):
        return NO_ROWS
    seconds = gate_lengths(snapshot, terms, now)
    well_gated = (jobs.gate_until >= now + terms.term) & (seconds >= 2 * terms.term)
    well_gated &= jobs.gated & ~jobs.pinned
    # An array's own limit changes nothing about the gates of its tasks, and may keep many thousands back.
    well_gated &= jobs.unblocked | (jobs.blocked == Blocked.ARRAY_LIMIT)
    well_gated &= ~_as_submitted(jobs)
    rows: Ints = (waiting & ~well_gated).nonzero()[0]
    if not rows.size:
        return rows
    stays = stays_open(jobs, leases, terms, now)[rows]
    due: Ints = rows[_gate_due(jobs.take(rows), jobs, stays, seconds[rows], terms, now)]
    opened = leases.key[leases.promised & (leases.opened > 0)]
    return due[~among(jobs.key[due], opened)] if opened.size else due


def _gate_due(
    jobs: JobTable, everyone: JobTable, stays: Bools, seconds: Floats, terms: LeaseTerms, now: float
) -> Bools:
    """True where a gate is due; the jobs all wait, and are some of `everyone`.

    `stays` are those whose gate a user moved away, and who have that wish for a lease. A gate is renewed when half
    of the `seconds` of a new one are left, and shortened where it holds longer than a deadline lets it.
    """
    own_begin = jobs.blocked == Blocked.OWN_BEGIN
    left = jobs.gate_until - now
    missing = ~jobs.gated & ~own_begin & ~stays
    running_out = jobs.gated & (left < renewed_with(seconds, terms))
    too_long = jobs.gated & (seconds < 2 * terms.term) & np.isfinite(left) & (left > seconds + _SLACK_SECONDS)
    begins_soon = own_begin & (left <= 2 * terms.interval)
    due: Bools = missing | running_out | too_long | begins_soon | _as_submitted(jobs)
    due &= ~np.isin(jobs.blocked, np.array(_HELD, dtype=np.int8))
    if jobs.pinned.any():
        # Pinning splits a task off its array, so a record that several share carries no list of ours.
        shared = everyone.record[_shared_records(everyone.record, everyone.waiting)]
        due |= jobs.pinned & ~np.isin(jobs.record, shared)
    if jobs.blocked.any():
        # Slurm does not look at what a held job waits for: the hold must give way to a begin time.
        due |= (jobs.blocked == Blocked.DEPENDENCY) & np.isinf(jobs.gate_until)
        due &= ~np.isin(jobs.blocked, np.array(_NEVER_GATED, dtype=np.int8))
    return due


def _as_submitted(jobs: JobTable) -> Bools:
    """Behind the hold of their submission: a begin time takes its place at once, so that later holds are seen."""
    return np.isinf(jobs.gate_until) & (jobs.gate_set <= 0)


def _shared_records(record: Ints, waiting: Bools) -> Bools:
    """Rows whose Slurm record stands for several waiting tasks."""
    values, inverse, counts = np.unique(record, return_inverse=True, return_counts=True)
    del values
    return (counts[inverse] > 1) & waiting
