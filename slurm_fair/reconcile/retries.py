"""Jobs that rest for a while, because their start failed or the outcome of an act on them is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slurm_fair.model import (
    Action,
    Blocked,
    Event,
    LeaseTerms,
    Outcome,
    Placement,
    Result,
    Snapshot,
    Standing,
    Verb,
)
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.ids import TASK_BITS

_UNSETTLED_SECONDS = 25.0  # a command that timed out may still be carried out for about this long
_BACKOFF_SECONDS, _BACKOFF_MOST = 30.0, 3600.0
_DOUBLINGS = 20  # a number that goes on doubling has an end
_OPEN, _CLOSE = Verb.OPEN, Verb.CLOSE
_STOPS = (Verb.ASK, Verb.REQUEUE)
_WAS_DONE, _UNKNOWN = Result.DONE, Result.UNKNOWN


def still_resting(standing: Standing, now: float) -> Standing:
    """Without what has been waited for long enough."""
    if not (standing.unsettled or standing.backoff or standing.unmoved or standing.unshut):
        return standing
    return standing._replace(
        unsettled={k: at for k, at in standing.unsettled.items() if now - at < _UNSETTLED_SECONDS},
        backoff={k: back for k, back in standing.backoff.items() if now < back[0] + _BACKOFF_MOST},
        unmoved={k: rest for k, rest in standing.unmoved.items() if now < rest[0] + _BACKOFF_MOST},
        unshut={k: rest for k, rest in standing.unshut.items() if now < rest[0] + _BACKOFF_MOST},
    )


def overlaid(snapshot: Snapshot, standing: Standing) -> Snapshot:
    """Jobs with an unknown outcome or a failed start are not planned yet; a refused stop is not repeated."""
    if standing.unmoved:
        snapshot = _with_unmoved(snapshot, standing.unmoved)
    if not standing.backoff and not standing.unsettled and not standing.shunned:
        return snapshot
    jobs, now = snapshot.jobs, snapshot.time
    resting = [key for key, (until, _) in standing.backoff.items() if now < until]
    marks = ((Blocked.BACKOFF, resting), (Blocked.UNSETTLED, list(standing.unsettled)))
    blocked = jobs.blocked.copy()
    for code, keys in marks:
        rows = find(jobs.key, np.array(keys, dtype=np.int64))
        rows = rows[rows >= 0]
        rows = rows[find(standing.leases.key, jobs.key[rows]) < 0]  # what is promised is followed, not rested
        free = rows[(blocked[rows] == Blocked.NOT_BLOCKED) & jobs.waiting[rows]]
        blocked[free] = code
    return replace(
        snapshot, jobs=jobs.with_columns(blocked=blocked), barred=_barred(snapshot, standing.shunned)
    )


def _with_unmoved(snapshot: Snapshot, unmoved: Mapping[int, tuple[float, int]]) -> Snapshot:
    """The snapshot in which jobs whose stop Slurm refused are not requeueable until their backoff ends.

    Other jobs are evicted instead.
    """
    resting = [key for key, (until, _) in unmoved.items() if snapshot.time < until]
    rows = find(snapshot.jobs.key, np.array(resting, dtype=np.int64))
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
        if row >= 0 and _has_room_beside(out, row, snapshot, free):
            more.extend((row, node, 0) for node in out)
    return snapshot.barred.plus(Placement.of(more)) if more else snapshot.barred


def _has_room_beside(out: list[int], row: int, snapshot: Snapshot, free: Ints) -> bool:
    """Whether enough other nodes of its partition that it takes could take the gang now."""
    jobs, nodes, told = snapshot.jobs, snapshot.nodes, snapshot.told
    if set(out) & set(snapshot.wanted.nodes_of(row).tolist()):
        return False
    per_node = -(-int(jobs.gpus[row]) // max(int(jobs.nodes[row]), 1))
    fits = snapshot.partitions.members[jobs.partition[row]] & (free >= per_node)
    if jobs.gpu_type[row] >= 0:
        fits &= nodes.gpu_type == jobs.gpu_type[row]
    if told is not None and len(snapshot.gpu_types) > 1:
        fits &= told.rate[row, nodes.gpu_type] > 0
    fits[out] = fits[snapshot.barred.nodes_of(row)] = False
    return int(fits.sum()) >= max(int(jobs.nodes[row]), 1)


def shunned_after(
    shunned: Mapping[int, tuple[str, ...]], events: Sequence[Event], snapshot: Snapshot
) -> dict[int, tuple[str, ...]]:
    """What keeps a job from its nodes may be something that we do not see: other nodes are tried before these.

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


def backoff_after(
    backoff: Mapping[int, tuple[float, int]], events: Sequence[Event], now: float
) -> dict[int, tuple[float, int]]:
    """A job that Slurm did not start is tried again later, and later still."""
    after = dict(backoff)
    for event in events:
        times = after.get(event.key, (0.0, 0))[1] + 1
        after[event.key] = (
            now + min(_BACKOFF_SECONDS * 2 ** min(times - 1, _DOUBLINGS), _BACKOFF_MOST),
            times,
        )
    return after


def resting_after(
    standing: Standing, outcomes: Sequence[Outcome], snapshot: Snapshot, terms: LeaseTerms
) -> Standing:
    """With those who rest after these acts: of what was done, only a closed gate may leave somebody resting."""
    outcomes = [o for o in outcomes if o.result is not _WAS_DONE or o.action.verb is _CLOSE]
    if not outcomes:
        return standing
    now, backoff, unmoved = snapshot.time, standing.backoff, standing.unmoved
    unshut = _unshut_after(standing.unshut, outcomes, now)
    unknown = {o.action.key: now for o in outcomes if o.result is _UNKNOWN}
    for outcome in outcomes:
        backoff = {**backoff, **_rest_after(outcome, snapshot, terms.interval, backoff)}
        unmoved = {**unmoved, **_unmoved_after(outcome, now, terms.term, unmoved)}
    unsettled = {**standing.unsettled, **unknown}
    return standing._replace(unsettled=unsettled, backoff=backoff, unmoved=unmoved, unshut=unshut)


def without_refused(actions: tuple[Action, ...], standing: Standing, now: float) -> tuple[Action, ...]:
    """Gates that were refused more than once are tried again later, and later still."""
    if not standing.unshut:
        return actions
    resting = {key for key, (until, _) in standing.unshut.items() if now < until}
    return tuple([a for a in actions if a.verb is not _CLOSE or a.key not in resting])


def _unshut_after(
    unshut: Mapping[int, tuple[float, int]], outcomes: Sequence[Outcome], now: float
) -> dict[int, tuple[float, int]]:
    """A first refusal may come of a job that changed between the look and the act; the next look shows it."""
    after = dict(unshut)
    for outcome in outcomes:
        key = outcome.action.key
        if outcome.action.verb is _CLOSE and outcome.refused_for_good:
            times = after.get(key, (0.0, 0))[1] + 1
            rest = (
                min(_BACKOFF_SECONDS * 2 ** min(times - 2, _DOUBLINGS), _BACKOFF_MOST) if times > 1 else 0.0
            )
            after[key] = (now + rest, times)
        elif outcome.action.verb is _CLOSE and outcome.result is _WAS_DONE:
            after.pop(key, None)
    return after


def _rest_after(
    outcome: Outcome, snapshot: Snapshot, interval: float, backoff: Mapping[int, tuple[float, int]]
) -> dict[int, tuple[float, int]]:
    """A refused start is not tried again in this interval; a begin time of a user's own is still kept."""
    action = outcome.action
    if action.verb is _OPEN and outcome.refused_for_good:
        return {action.key: (snapshot.time + interval, backoff.get(action.key, (0.0, 0))[1])}
    if action.verb is _CLOSE and outcome.result is _WAS_DONE:
        jobs = snapshot.jobs
        same = (
            jobs.key >> TASK_BITS == action.key >> TASK_BITS
            if action.whole_record
            else jobs.key == action.key
        )
        # A hold leaves the begin time as it is; only a begin gate has just taken its place.
        moved = (jobs.blocked == Blocked.OWN_BEGIN) & np.isfinite(jobs.gate_until)
        rows = np.flatnonzero(same & moved)
        return {int(jobs.key[row]): (float(jobs.gate_until[row]), 0) for row in rows.tolist()}
    return {}


def _unmoved_after(
    outcome: Outcome, now: float, term_seconds: float, unmoved: Mapping[int, tuple[float, int]]
) -> dict[int, tuple[float, int]]:
    """A job whose stop was refused keeps its GPUs beyond the next end of its lease too, and longer each time."""
    action = outcome.action
    if action.verb not in _STOPS or not outcome.refused_for_good:
        return {}
    times = unmoved.get(action.key, (0.0, 0))[1] + 1
    rest = min(term_seconds * 2 ** min(times, _DOUBLINGS), max(_BACKOFF_MOST, 2 * term_seconds))
    return {action.key: (now + rest, times)}
