"""One tick: observe -> advance -> plan -> reconcile -> guard -> actuate -> record.

Two effects, one at each end, both behind the Cluster port; everything between them is a fold over values, so that
a tick can be computed again from what the journal keeps.
"""

from __future__ import annotations

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
from slurm_fair.model.columns import Ints, any_of, find
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import objections, postponed, standstill
from slurm_fair.ports import Clock, Cluster, Journal
from slurm_fair.reconcile import Limits, actions_for, follow, hold_back, promise, settle
from slurm_fair.reconcile.guard import living, oddity

_UNSETTLED_SECONDS = 25.0  # a command that timed out may still be carried out for about this long
_BACKOFF_SECONDS, _BACKOFF_MOST = 30.0, 3600.0
_DONE, _REVOKING = int(JobState.DONE), int(LeasePhase.REVOKING)
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
    after, actions, granted = reconcile(ready, plan, rules)
    allowed, held_back = hold_back(actions, rules.limits)
    outcomes = cluster.actuate(allowed)
    watch.lap("act")
    after = conclude(after, ready, outcomes, plan, rules)
    record = _record(after, ready, plan, outcomes, granted, rules, watch, held_back)
    record = replace(record, amended=standing.ledger) if standing.amended else record
    journal.append(record, after)
    return Done(after, record)


def owed_answers(standing: Standing) -> dict[int, float]:
    """Jobs asked to checkpoint that have not answered, and when they were asked."""
    leases = standing.leases
    asked = (leases.phase == _REVOKING) & (leases.asked > 0)
    if not any_of(asked):
        return {}
    return dict(zip(leases.key[asked].tolist(), leases.asked[asked].tolist(), strict=True))


def prepare(standing: Standing, snapshot: Snapshot, rules: Rules) -> Prepared:
    """Ledger and leases brought up to the snapshot, and what of it the policy may plan."""
    now = snapshot.time
    seen, standing = snapshot, _still_resting(standing, now)
    snapshot = _overlaid(seen, standing)
    ledger, happened = advance(standing.ledger, snapshot, rules.ledger)
    leases, followed, _ = follow(standing.leases, snapshot, rules.terms)
    failed = [event for event in followed if event.kind == "takenback" and event.detail["opened"]]
    standing = replace(
        standing,
        ledger=ledger,
        leases=leases,
        backoff=_backoff(standing.backoff, failed, now),
        shunned=_shunned(standing.shunned, failed, snapshot),
        tick=standing.tick + 1,
        last_jobs=living(snapshot),
        amended=False,
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
    """Beginnings and ends with the user's name and Slurm's final state: reports want what the ledger does not."""
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
        detail = {**event.detail, "user": snapshot.users[jobs.user[row]], **more}
        named[number] = Event(event.time, event.kind, event.key, event.tenant, event.gpus, detail)
    return named


def _overlaid(snapshot: Snapshot, standing: Standing) -> Snapshot:
    """Jobs with an unknown outcome or a recent failed start are not planned for now."""
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


def reconcile(ready: Prepared, plan: Plan, rules: Rules) -> tuple[Standing, tuple[Action, ...], Events]:
    """The standing with the plan's promises in it, and the acts that would make them true."""
    standing, snapshot = ready.standing, ready.snapshot
    leases, events = promise(standing.leases, plan, snapshot, rules.terms, snapshot.time)
    actions = actions_for(leases, snapshot, rules.terms, standing.unsettled, snapshot.time)
    memory = standing.memory if plan.note else plan.memory
    return replace(standing, leases=leases, memory=memory), actions, events


def conclude(
    standing: Standing, ready: Prepared, outcomes: tuple[Outcome, ...], plan: Plan, rules: Rules
) -> Standing:
    """The standing after the acts."""
    now = ready.snapshot.time
    if not outcomes and not rules.dry_run:
        return standing
    leases = standing.leases if not rules.dry_run else _without_promises(standing)
    leases = settle(leases, outcomes, rules.terms, now)
    unknown = {o.action.key: now for o in outcomes if o.result is Result.UNKNOWN}
    backoff = dict(standing.backoff)
    for outcome in outcomes:
        backoff |= _rest_after(outcome, ready, backoff, now)
    return replace(standing, leases=leases, unsettled={**standing.unsettled, **unknown}, backoff=backoff)


def _rest_after(
    outcome: Outcome, ready: Prepared, backoff: Mapping[int, tuple[float, int]], now: float
) -> dict[int, tuple[float, int]]:
    """A refused start is not tried again in this interval; a begin time of a user's own is still kept."""
    action = outcome.action
    if action.verb is Verb.OPEN and outcome.result is Result.REFUSED and not outcome.later:
        return {action.key: (now + ready.view.terms.interval, backoff.get(action.key, (0.0, 0))[1])}
    if action.verb is Verb.CLOSE and outcome.result is Result.DONE:
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


def _without_promises(standing: Standing) -> Any:
    """A shadow run promises nothing, since nothing will start."""
    leases = standing.leases
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
        events=ready.events + granted + _asked(outcomes, ready),
        seconds=dict(watch.seconds),
        dry_run=rules.dry_run,
        guard=guard,
    )


def _asked(outcomes: Iterable[Outcome], ready: Prepared) -> Events:
    """An event for each job asked to checkpoint and each requeued one."""
    kinds = {Verb.ASK: "asked", Verb.REQUEUE: "requeued", Verb.OPEN: "opened"}
    jobs, events = ready.snapshot.jobs, []
    for outcome in outcomes:
        kind = kinds.get(outcome.action.verb)
        if kind is None or outcome.result is not Result.DONE:
            continue
        row = int(find(jobs.key, np.array([outcome.action.key]))[0])
        tenant = ready.snapshot.tenants.names[jobs.tenant[row]]
        detail = {"why": outcome.action.why, "nodes": list(outcome.action.nodes)}
        events.append(
            Event(ready.snapshot.time, kind, outcome.action.key, tenant, int(jobs.gpus[row]), detail)
        )
    return Events(events)
