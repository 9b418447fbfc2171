"""Jobs that rest for a while, because their start failed or the outcome of an act on them is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slurm_fair.model import (
    Action,
    Blocked,
    Event,
    JobTable,
    LeaseTerms,
    Outcome,
    Placement,
    Result,
    Snapshot,
    Standing,
    Verb,
)
from slurm_fair.model.action import STOPS
from slurm_fair.model.columns import NO_ROWS, Ints, among, find, take_or
from slurm_fair.model.ids import TASK_BITS, is_same_job
from slurm_fair.model.retries import Growth, Retries

_UNSETTLED_SECONDS = 25.0  # a command that timed out may still be carried out for about this long
_MOST_SECONDS = 3600.0  # of a rest; after as long without a failure the earlier ones are forgotten
_OF_STARTS = Growth(30.0, _MOST_SECONDS)
# A first refusal may come of a job that changed between the look and the act; the next look shows it.
_OF_GATES = Growth(30.0, _MOST_SECONDS, spared=1)


def without_rests_of_others(standing: Standing, jobs: JobTable) -> Standing:
    """The standing without what former bearers of these ids left behind (slurm-facts: ids-come-again).

    Its ledger is that of the last look. An act of unknown outcome may still be carried out: it stays.
    """
    rests = (standing.backoff.due, standing.unmoved.due, standing.unshut.due, standing.shunned)
    if not any(rests) or not len(jobs.key):
        return standing
    keys = np.array(sorted(set().union(*rests)), dtype=np.int64)
    # Of an array whose own key is not listed its next task: all were submitted together.
    row = np.minimum(jobs.key.searchsorted(keys), len(jobs.key) - 1)
    known, ledger = standing.ledger.jobs, standing.ledger
    submit = take_or(known.incarnation, find(known.key, keys), ledger.time)
    other = ~is_same_job(submit, jobs.submit[row], jobs.restarts[row])
    gone = set(keys[other & (jobs.key[row] >> TASK_BITS == keys >> TASK_BITS)].tolist())
    if not gone:
        return standing
    return standing._replace(
        backoff=standing.backoff.without(gone),
        unmoved=standing.unmoved.without(gone),
        unshut=standing.unshut.without(gone),
        shunned={key: nodes for key, nodes in standing.shunned.items() if key not in gone},
    )


def still_resting(standing: Standing, now: float) -> Standing:
    """The standing without rests that are over."""
    if not (standing.unsettled or standing.backoff or standing.unmoved or standing.unshut):
        return standing
    return standing._replace(
        unsettled={k: at for k, at in standing.unsettled.items() if now - at < _UNSETTLED_SECONDS},
        backoff=standing.backoff.remembered(now, _MOST_SECONDS),
        unmoved=standing.unmoved.remembered(now, _MOST_SECONDS),
        unshut=standing.unshut.remembered(now, _MOST_SECONDS),
    )


def overlaid(snapshot: Snapshot, standing: Standing) -> Snapshot:
    """Jobs with an unknown outcome or a failed start are not planned yet; a refused stop is not repeated."""
    if standing.unmoved:
        snapshot = _with_unmoved(snapshot, standing.unmoved.resting(snapshot.time))
    if not standing.backoff and not standing.unsettled and not standing.shunned:
        return snapshot
    jobs, now = snapshot.jobs, snapshot.time
    later = find(jobs.key, np.array(standing.backoff.resting(now), dtype=np.int64))
    marks = ((Blocked.BACKOFF, later[later >= 0]), (Blocked.UNSETTLED, _unsettled(jobs, standing.unsettled)))
    blocked = jobs.blocked.copy()
    for code, rows in marks:
        rows = rows[find(standing.leases.key, jobs.key[rows]) < 0]  # what is promised is followed, not rested
        free = rows[(blocked[rows] == Blocked.NOT_BLOCKED) & jobs.waiting[rows]]
        blocked[free] = code
    return replace(
        snapshot, jobs=jobs.with_columns(blocked=blocked), barred=_barred(snapshot, standing.shunned)
    )


def _unsettled(jobs: JobTable, unsettled: Mapping[int, float]) -> Ints:
    """Rows whose last act has an unknown outcome; an act on an array was on all of its tasks that wait in it.

    A task with a record of its own and no gate gets its gate meanwhile.
    """
    if not unsettled:
        return NO_ROWS
    keys, base = np.array(list(unsettled), dtype=np.int64), jobs.key >> TASK_BITS
    of_array = among(base << TASK_BITS, keys) & (jobs.gated | (jobs.record == base))
    found: Ints = np.flatnonzero(among(jobs.key, keys) | of_array)
    return found


def _with_unmoved(snapshot: Snapshot, later: list[int]) -> Snapshot:
    """The snapshot in which jobs whose stop Slurm refused are not requeueable until their backoff ends.

    So other jobs are asked in their place.
    """
    rows = find(snapshot.jobs.key, np.array(later, dtype=np.int64))
    requeueable = snapshot.jobs.requeueable.copy()
    requeueable[rows[rows >= 0]] = False
    return replace(snapshot, jobs=snapshot.jobs.with_columns(requeueable=requeueable))


def _barred(snapshot: Snapshot, shunned: Mapping[int, tuple[str, ...]]) -> Placement:
    """The nodes that users excluded, and those on which Slurm did not start a job when others have room for it."""
    nodes = snapshot.nodes
    at = {name: node for node, name in enumerate(nodes.names)} if shunned else {}
    free = nodes.capacity - snapshot.held.per_node(len(nodes)) if shunned else nodes.capacity
    rows = find(snapshot.jobs.key, np.array(list(shunned), dtype=np.int64))
    more: list[tuple[int, int, int]] = []
    for row, names in zip(rows.tolist(), shunned.values(), strict=True):
        out = [at[name] for name in names if name in at]
        if row >= 0:
            more.extend((row, node, 0) for node in out if _has_room_beside(node, out, row, snapshot, free))
    return snapshot.barred.plus(Placement.of(more)) if more else snapshot.barred


def _has_room_beside(node: int, out: list[int], row: int, snapshot: Snapshot, free: Ints) -> bool:
    """True if enough nodes like this one, and none of those left out, could take the gang now.

    They are of its GPU type: a policy may have chosen that type for the job, and would wait for it for ever.
    """
    jobs, nodes, told = snapshot.jobs, snapshot.nodes, snapshot.told
    if set(out) & set(snapshot.wanted.nodes_of(row).tolist()):
        return False
    per_node = -(-int(jobs.gpus[row]) // max(int(jobs.nodes[row]), 1))
    fits = snapshot.partitions.members[jobs.partition[row]] & (free >= per_node)
    fits &= nodes.gpu_type == nodes.gpu_type[node]
    if jobs.gpu_type[row] >= 0:
        fits &= nodes.gpu_type == jobs.gpu_type[row]
    if told is not None and len(snapshot.gpu_types) > 1:
        fits &= told.rate[row, nodes.gpu_type] > 0
    fits[out] = fits[snapshot.barred.nodes_of(row)] = False
    return int(fits.sum()) >= max(int(jobs.nodes[row]), 1)


def shunned_after(
    shunned: Mapping[int, tuple[str, ...]], events: Sequence[Event], snapshot: Snapshot
) -> dict[int, tuple[str, ...]]:
    """Nodes on which jobs failed to start, for a reason that we may not see: others are tried before these.

    `events` are the starts that failed.
    """
    if not shunned and not events:
        return {}
    waiting = set(snapshot.jobs.key[snapshot.jobs.waiting].tolist())
    after = {key: nodes for key, nodes in shunned.items() if key in waiting}
    for event in events:
        nodes = {*after.get(event.key, ()), *event.detail["nodes"]}
        after[event.key] = () if len(nodes) >= len(snapshot.nodes) else tuple(sorted(nodes))
    return after


def backoff_after(backoff: Retries[int], events: Sequence[Event], now: float) -> Retries[int]:
    """A job that Slurm did not start is tried again later, and later still."""
    return backoff.failed([event.key for event in events], now, _OF_STARTS)


def resting_after(
    standing: Standing, outcomes: Sequence[Outcome], snapshot: Snapshot, terms: LeaseTerms
) -> Standing:
    """The standing with the rests after these acts. Of acts done, only a closed gate leaves a job resting.

    A job that is freed is not managed, and the cluster knows when to try it again.
    """
    outcomes = [
        o
        for o in outcomes
        if (o.result is not Result.DONE or o.action.verb is Verb.CLOSE) and o.action.verb is not Verb.FREE
    ]
    if not outcomes:
        return standing
    now, backoff = snapshot.time, standing.backoff
    for outcome in outcomes:
        backoff = _rest_after(outcome, snapshot, terms.interval, backoff)
    refused = [o.action for o in outcomes if o.refused_for_good]
    stops, gates = ([a.key for a in refused if a.verb in verbs] for verbs in (STOPS, (Verb.CLOSE,)))
    shut = [o.action.key for o in outcomes if o.action.verb is Verb.CLOSE and o.result is Result.DONE]
    return standing._replace(
        unsettled={
            **standing.unsettled,
            **{o.action.key: now for o in outcomes if o.result is Result.UNKNOWN},
        },
        backoff=backoff,
        unmoved=standing.unmoved.failed(stops, now, _of_stops(terms.term)),
        unshut=standing.unshut.failed(gates, now, _OF_GATES).without(shut),
    )


def _of_stops(term_seconds: float) -> Growth:
    """A job whose stop was refused keeps its GPUs beyond the next end of its lease too, and longer each time."""
    return Growth(2 * term_seconds, max(_MOST_SECONDS, 2 * term_seconds))


def without_refused(actions: tuple[Action, ...], standing: Standing, now: float) -> tuple[Action, ...]:
    """Gates that were refused more than once are tried again later, and later still."""
    if not standing.unshut:
        return actions
    later = set(standing.unshut.resting(now))
    return tuple([a for a in actions if a.verb is not Verb.CLOSE or a.key not in later])


def _rest_after(outcome: Outcome, snapshot: Snapshot, interval: float, backoff: Retries[int]) -> Retries[int]:
    """A refused start is not tried again in this interval; a begin time of a user's own is still kept."""
    action = outcome.action
    if action.verb is Verb.OPEN and outcome.refused_for_good:
        return backoff.until({action.key: snapshot.time + interval})
    if action.verb is Verb.CLOSE and outcome.result is Result.DONE:
        jobs = snapshot.jobs
        same = (
            jobs.key >> TASK_BITS == action.key >> TASK_BITS
            if action.whole_record
            else jobs.key == action.key
        )
        # A hold leaves the begin time as it is; only a begin gate has just taken its place.
        moved = (jobs.blocked == Blocked.OWN_BEGIN) & ~jobs.gated & np.isfinite(jobs.gate_until)
        rows = np.flatnonzero(same & moved)
        return backoff.until(
            dict(zip(jobs.key[rows].tolist(), jobs.gate_until[rows].tolist(), strict=True)), anew=True
        )
    return backoff
