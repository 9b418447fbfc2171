"""One tick: observe -> advance -> plan -> reconcile -> guard -> actuate -> record.

Two effects, one at each end, both behind the Cluster port; everything between them is a fold over values, so that
a tick can be computed again from what the journal keeps.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.model import (
    Action,
    Blind,
    Blocked,
    Event,
    Events,
    JobState,
    LeasePhase,
    Leases,
    LeaseTerms,
    Outcome,
    Placement,
    Plan,
    Result,
    Snapshot,
    Standing,
    TickRecord,
    Verb,
)
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import objections, postponed, standstill
from slurm_fair.ports import Clock, Cluster, Journal
from slurm_fair.reconcile import Limits, actions_for, follow, hold_back, promise, settle
from slurm_fair.reconcile.guard import living, oddity

_UNSETTLED_SECONDS = 25.0  # a command that timed out may still be carried out for about this long
_BACKOFF_SECONDS, _BACKOFF_MOST = 30.0, 3600.0
_DONE, _REVOKING = int(JobState.DONE), int(LeasePhase.REVOKING)
# Looked up at every look: a name of an enum costs as much as the comparison that it is for.
_OPEN, _ASK, _CLOSE, _REQUEUE = Verb.OPEN, Verb.ASK, Verb.CLOSE, Verb.REQUEUE
_TOLD = (_OPEN, _ASK, _REQUEUE)
_WAS_DONE, _REFUSED, _UNKNOWN = Result.DONE, Result.REFUSED, Result.UNKNOWN
_WITH_USER = ("submitted", "finished")  # events that name the user


@dataclass(frozen=True, slots=True)
class Rules:
    """What a tick goes by."""

    policy_name: str
    policy: Policy
    settings: Mapping[str, Any]
    terms: LeaseTerms
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    plan_limit_seconds: float = 30.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A standing brought up to a snapshot: what the policy then sees."""

    standing: Standing
    snapshot: Snapshot
    view: View
    events: Events


@dataclass(frozen=True, slots=True)
class Done:
    """What a tick came to."""

    standing: Standing
    record: TickRecord | None = None
    blind: str = ""


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each part of a tick."""

    now: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = 0.0

    def start(self) -> None:
        """Begin."""
        self._last = self.now()

    def lap(self, part: str) -> None:
        """The part that just ended."""
        now = self.now()
        self.seconds[part] = now - self._last
        self._last = now


def tick(
    cluster: Cluster, clock: Clock, journal: Journal, rules: Rules, standing: Standing, watch: Stopwatch
) -> Done:
    """One turn of the controller."""
    watch.start()
    snapshot = cluster.observe(owed_answers(standing))
    watch.lap("observe")
    if isinstance(snapshot, Blind):
        return Done(standing, blind=snapshot.reason)
    alive = living(snapshot)
    odd = oddity(snapshot, alive, standing.last_jobs, rules.limits)
    if odd:  # the next look confirms it, or shows that this one was wrong
        return Done(replace(standing, last_jobs=alive), blind=odd)
    ready = prepare(standing, snapshot, rules)
    watch.lap("advance")
    plan = decide(ready.view, rules, clock)
    watch.lap("plan")
    leases, actions, granted = reconcile(ready, plan, rules)
    allowed, held_back = hold_back(actions, rules.limits)
    outcomes = cluster.actuate(allowed)
    watch.lap("act")
    after = conclude(ready, leases, outcomes, plan, rules)
    record = _record(after, ready, plan, outcomes, granted, rules, watch, held_back)
    record = replace(record, amended=standing.ledger) if standing.amended else record
    journal.append(record, after)
    return Done(after, record)


def owed_answers(standing: Standing) -> dict[int, float]:
    """Jobs asked to checkpoint that have not answered, and when they were asked."""
    leases = standing.leases
    asked = (leases.phase == _REVOKING).nonzero()[0]
    if not asked.size:
        return {}
    asked = asked[leases.asked[asked] > 0]
    return dict(zip(leases.key[asked].tolist(), leases.asked[asked].tolist(), strict=True))


def prepare(standing: Standing, snapshot: Snapshot, rules: Rules) -> Prepared:
    """Ledger and leases brought up to the snapshot, and what of it the policy may plan."""
    now = snapshot.time
    seen, standing = snapshot, _still_resting(standing, now)
    snapshot = _overlaid(seen, standing)
    ledger, happened = advance(standing.ledger, snapshot, rules.ledger)
    leases, followed, job_of_lease = follow(standing.leases, snapshot, rules.terms)
    failed = [event for event in followed if event.kind == "takenback" and event.detail["opened"]]
    standing = Standing(
        ledger=ledger,
        leases=leases,
        tick=standing.tick + 1,
        memory=standing.memory,
        unsettled=standing.unsettled,
        backoff=_backoff(standing.backoff, failed, now) if failed else standing.backoff,
        shunned=_shunned(standing.shunned, failed, snapshot),
        last_jobs=living(snapshot),
    )
    view = View(
        _overlaid(seen, standing),  # anew: a start that failed just now rests from now on
        ledger,
        leases,
        rules.terms,
        now,
        rules.seed,
        now + rules.plan_limit_seconds,
        standing.memory,
        job_of_lease,
    )
    return Prepared(standing, snapshot, view, Events(_with_users(happened, snapshot), followed))


def _still_resting(standing: Standing, now: float) -> Standing:
    """Without what has been waited for long enough."""
    if not standing.unsettled and not standing.backoff:
        return standing
    return replace(
        standing,
        unsettled={k: at for k, at in standing.unsettled.items() if now - at < _UNSETTLED_SECONDS},
        backoff={k: back for k, back in standing.backoff.items() if now < back[0] + _BACKOFF_MOST},
    )


def _with_users(events: Sequence[Event], snapshot: Snapshot) -> list[Event]:
    """Beginnings and ends with user, expected run time and final state: reports want what the ledger does not."""
    named, jobs = list(events), snapshot.jobs
    edges = [number for number, event in enumerate(named) if event.kind in _WITH_USER]
    if not edges:
        return named
    rows = find(jobs.key, np.array([named[number].key for number in edges], dtype=np.int64))
    for number, row in zip(edges, rows.tolist(), strict=True):
        if row < 0:
            continue
        event = named[number]
        more = {"state": snapshot.reasons[row]} if jobs.state[row] == _DONE else {}
        detail = {**event.detail, "user": snapshot.users[jobs.user[row]], **_expected(snapshot, row), **more}
        named[number] = Event(event.time, event.kind, event.key, event.tenant, event.gpus, detail)
    return named


def _expected(snapshot: Snapshot, row: int) -> dict[str, float]:
    """How long a job was expected to run, as far as anybody says."""
    limit = float(snapshot.jobs.time_limit_seconds[row])
    declared = math.nan if snapshot.told is None else float(snapshot.told.declared_seconds[row])
    said = {"declared_seconds": declared, "limit_seconds": limit}
    return {name: seconds for name, seconds in said.items() if math.isfinite(seconds)}


def _overlaid(snapshot: Snapshot, standing: Standing) -> Snapshot:
    """Jobs with an unknown outcome or a recent failed start are not planned yet."""
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
        free = rows[(blocked[rows] == Blocked.NOT_BLOCKED) & (jobs.state[rows] == JobState.WAITING)]
        blocked[free] = code
    return replace(
        snapshot, jobs=jobs.with_columns(blocked=blocked), barred=_barred(snapshot, standing.shunned)
    )


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
    """Whether enough other nodes of its partition could take the gang now."""
    jobs = snapshot.jobs
    per_node = -(-int(jobs.gpus[row]) // max(int(jobs.nodes[row]), 1))
    fits = snapshot.partitions.members[jobs.partition[row]] & (free >= per_node)
    fits[out] = False
    return int(fits.sum()) >= max(int(jobs.nodes[row]), 1)


def _shunned(
    shunned: Mapping[int, tuple[str, ...]], events: Sequence[Event], snapshot: Snapshot
) -> dict[int, tuple[str, ...]]:
    """What keeps a job from its nodes may be something that we do not see: other nodes are tried before these.

    `events` are the starts that failed.
    """
    if not shunned and not events:
        return {}
    waiting = set(snapshot.jobs.key[snapshot.jobs.state == JobState.WAITING].tolist())
    after = {key: nodes for key, nodes in shunned.items() if key in waiting}
    for event in events:
        nodes = {*after.get(event.key, ()), *event.detail["nodes"]}
        after[event.key] = () if len(nodes) >= len(snapshot.nodes) else tuple(sorted(nodes))
    return after


def _backoff(
    backoff: Mapping[int, tuple[float, int]], events: Sequence[Event], now: float
) -> dict[int, tuple[float, int]]:
    """A job that Slurm did not start is tried again later, and later still."""
    after = dict(backoff)
    for event in events:
        times = after.get(event.key, (0.0, 0))[1] + 1
        after[event.key] = (now + min(_BACKOFF_SECONDS * 2 ** (times - 1), _BACKOFF_MOST), times)
    return after


def decide(view: View, rules: Rules, clock: Clock) -> Plan:
    """The policy's plan; one that raises, is late or cannot be means that the current leases stay."""
    began = clock.now()
    try:
        plan = rules.policy.plan(view)
        wrong = objections(plan, view)
    except Exception:
        return standstill(view, f"the policy raised: {traceback.format_exc(limit=-3)}")
    late = clock.now() - began
    if late > rules.plan_limit_seconds:
        return standstill(view, f"the policy took {late:.1f} s (limit {rules.plan_limit_seconds:g} s)")
    if wrong:
        return standstill(view, f"the plan cannot be: {wrong}")
    return plan if view.terms.grants_at(view.now) else postponed(plan)


def reconcile(ready: Prepared, plan: Plan, rules: Rules) -> tuple[Leases, tuple[Action, ...], Events]:
    """The leases with the plan's promises in them, and the acts that would make them true."""
    standing, snapshot = ready.standing, ready.snapshot
    leases, events = promise(standing.leases, plan, snapshot, rules.terms, snapshot.time)
    return leases, actions_for(leases, snapshot, rules.terms, standing.unsettled, snapshot.time), events


def conclude(
    ready: Prepared, leases: Leases, outcomes: tuple[Outcome, ...], plan: Plan, rules: Rules
) -> Standing:
    """The standing after the acts on these leases; a plan that is not the policy's own leaves it its memory."""
    now, before = ready.snapshot.time, ready.standing
    unsettled, backoff = before.unsettled, before.backoff
    if rules.dry_run:
        leases = _without_promises(leases)
    if outcomes:
        leases = settle(leases, outcomes, rules.terms, now)
        unknown = {o.action.key: now for o in outcomes if o.result is _UNKNOWN}
        unsettled = {**unsettled, **unknown} if unknown else unsettled
        for outcome in outcomes:
            rest = _rest_after(outcome, ready, backoff, now)
            backoff = {**backoff, **rest} if rest else backoff
    return Standing(
        ledger=before.ledger,
        leases=leases,
        tick=before.tick,
        memory=before.memory if plan.note else plan.memory,
        unsettled=unsettled,
        backoff=backoff,
        shunned=before.shunned,
        last_jobs=before.last_jobs,
    )


def _rest_after(
    outcome: Outcome, ready: Prepared, backoff: Mapping[int, tuple[float, int]], now: float
) -> dict[int, tuple[float, int]]:
    """A refused start is not tried again in this interval; a begin time of a user's own is still kept."""
    action = outcome.action
    if action.verb is _OPEN and outcome.result is _REFUSED and not outcome.later:
        return {action.key: (now + ready.view.terms.interval, backoff.get(action.key, (0.0, 0))[1])}
    if action.verb is _CLOSE and outcome.result is _WAS_DONE:
        jobs = ready.snapshot.jobs
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


def _without_promises(leases: Leases) -> Leases:
    """A shadow run promises nothing, since nothing will start."""
    revoking = leases.phase == LeasePhase.REVOKING
    phase = np.where(revoking, np.int8(LeasePhase.RUNNING), leases.phase).astype(np.int8)
    return leases.with_columns(phase=phase).take(leases.phase != LeasePhase.GRANTED)


def _record(
    after: Standing,
    ready: Prepared,
    plan: Plan,
    outcomes: tuple[Outcome, ...],
    granted: Events,
    rules: Rules,
    watch: Stopwatch,
    guard: str,
) -> TickRecord:
    return TickRecord(
        number=after.tick,
        time=ready.snapshot.time,
        policy=rules.policy_name,
        settings=dict(rules.settings),
        terms=rules.terms,
        seed=rules.seed,
        snapshot=ready.snapshot,
        plan=plan,
        outcomes=outcomes,
        events=ready.events + granted + Events(_asked(outcomes, ready))
        if outcomes
        else ready.events + granted,
        seconds=dict(watch.seconds),
        dry_run=rules.dry_run,
        guard=guard,
    )


def _asked(outcomes: Iterable[Outcome], ready: Prepared) -> list[Event]:
    """An event for each gate that was opened, each job asked to checkpoint and each requeued one."""
    done = [o.action for o in outcomes if o.result is _WAS_DONE and o.action.verb in _TOLD]
    if not done:
        return []
    snapshot, jobs, events = ready.snapshot, ready.snapshot.jobs, []
    rows = find(jobs.key, np.array([action.key for action in done], dtype=np.int64))
    for action, row in zip(done, rows.tolist(), strict=True):
        kind = "opened" if action.verb is _OPEN else "asked" if action.verb is _ASK else "requeued"
        tenant = snapshot.tenants.names[jobs.tenant[row]]
        detail = {"why": action.why, "nodes": list(action.nodes)}
        events.append(Event(snapshot.time, kind, action.key, tenant, int(jobs.gpus[row]), detail))
    return events
