"""One tick: observe -> advance -> plan -> reconcile -> guard -> actuate -> record.

Two effects, one at each end, both behind the Cluster port; everything between them is a fold over values, so that
a tick can be computed again from what the journal keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from slurm_fair.dry_run import without_effect
from slurm_fair.ledger import Gap
from slurm_fair.model import (
    Action,
    Blind,
    Event,
    EventKind,
    Leases,
    Outcome,
    Plan,
    Result,
    Standing,
    TickRecord,
    Unfilled,
    Verb,
)
from slurm_fair.model.action import STOPS
from slurm_fair.model.columns import find
from slurm_fair.model.ids import label
from slurm_fair.ports import EVERYTHING, Clock, Cluster, Journal, Want
from slurm_fair.reconcile import (
    actions_for,
    apply_outcomes,
    apply_plan,
    hold_back,
)
from slurm_fair.reconcile.events import job_event, lease_event
from slurm_fair.reconcile.for_whom import for_whom
from slurm_fair.reconcile.guard import living, oddity
from slurm_fair.reconcile.left_over import left_over
from slurm_fair.reconcile.retries import (
    resting_after,
    without_refused,
)
from slurm_fair.tick.decision import decide
from slurm_fair.tick.prepared import Prepared, open_requests, prepare, with_gap_filled
from slurm_fair.tick.rules import Rules

_EVENT_OF = {Verb.OPEN: EventKind.OPENED, Verb.ASK: EventKind.ASKED, Verb.REQUEUE: EventKind.REQUEUED}


class TickDone(NamedTuple):
    """The outcome of a tick: its record, or the reason why there is none."""

    standing: Standing
    record: TickRecord | None = None
    blind: str = ""
    odd: bool = False  # only because the look must be confirmed by another, which is taken soon


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each part of a tick."""

    now: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = 0.0

    def start(self) -> None:
        self._last = self.now()

    def lap(self, part: str) -> None:
        """The part that just ended."""
        now = self.now()
        self.seconds[part] = now - self._last
        self._last = now


def tick(
    cluster: Cluster,
    clock: Clock,
    journal: Journal,
    rules: Rules,
    standing: Standing,
    stopwatch: Stopwatch,
    missed: tuple[Event, ...] = (),
    gap: Gap | None = None,
    untold: bool = False,
) -> TickDone:
    """One tick of the controller; no look has shown what is `missed`, nor the `gap` since the last one.

    Where the gap is `untold` by accounting, the standing keeps what fills it later.
    """
    stopwatch.start()
    before = standing.ledger
    snapshot = cluster.observe(open_requests(standing))
    stopwatch.lap("observe")
    if isinstance(snapshot, Blind):
        return TickDone(standing, blind=snapshot.reason)
    alive = living(snapshot)
    odd = oddity(snapshot, alive, standing.last_jobs, rules.limits)
    if odd:  # the next look confirms it, or shows that this one was wrong
        return TickDone(standing._replace(last_jobs=alive), blind=odd, odd=True)
    if gap is not None:
        standing, happened = with_gap_filled(standing, snapshot, rules, gap)
        missed += happened
    wants = journal.wants
    ready = prepare(standing, snapshot, rules, wants)
    ready = _with_missed(ready, missed) if missed else ready
    stopwatch.lap("advance")
    plan = decide(ready.view, rules, clock, in_full=Want.EXPLANATION in wants, fault=ready.fault)
    stopwatch.lap("plan")
    leases, actions, granted = reconcile(ready, plan, rules, wants)
    allowed, held_back = hold_back(actions, rules.limits)
    outcomes = cluster.actuate(allowed)
    stopwatch.lap("act")
    dry_run = not cluster.acts
    if dry_run:
        leases, plan = without_effect(leases, plan, ready.view)
    after = conclude(ready, leases, outcomes, plan, rules, acted=not dry_run)
    if untold:
        after = after._replace(unfilled=(*after.unfilled, Unfilled(before, ready.snapshot)))
    events = ready.events + granted + _of_acts(outcomes, ready, after, wants)
    record = _record(after, ready, plan, outcomes, events, rules, stopwatch, held_back)
    amended = standing.ledger if standing.amended else None
    record = record._replace(dry_run=dry_run, amended=amended, left_over=standing.left_over)
    journal.append(record, after)
    return TickDone(after, record)


def _with_missed(ready: Prepared, missed: tuple[Event, ...]) -> Prepared:
    view = replace(ready.view, happened=(*missed, *ready.view.happened))
    return ready._replace(view=view, events=missed + ready.events)


def reconcile(
    ready: Prepared, plan: Plan, rules: Rules, wants: Collection[Want] = EVERYTHING
) -> tuple[Leases, tuple[Action, ...], tuple[Event, ...]]:
    """The leases with the plan's promises in them, and the acts that would make them true."""
    standing, snapshot = ready.standing, ready.snapshot
    leases, events = apply_plan(
        standing.leases,
        plan,
        snapshot,
        rules.terms,
        snapshot.time,
        tell_all=Want.LEASE_EVENTS in wants,
        tell_why=Want.EXPLANATION in wants,
    )
    actions = actions_for(leases, snapshot, rules.terms, standing.unsettled, snapshot.time)
    return leases, without_refused(actions, standing, snapshot.time), events


def conclude(
    ready: Prepared,
    leases: Leases,
    outcomes: tuple[Outcome, ...],
    plan: Plan,
    rules: Rules,
    *,
    acted: bool = True,
) -> Standing:
    """The standing after the acts on these leases; a plan that stands in for another has the memory of before."""
    before, snapshot, terms = ready.standing, ready.snapshot, rules.terms
    asked_for = for_whom(leases, snapshot, before.asked_for)
    if outcomes:
        leases = apply_outcomes(leases, outcomes, terms, snapshot.time)
    # After a plan that stands in for another, or that nobody carries out, the next look plans anew.
    known = terms.beat > 0 and plan.is_own and acted
    rest = left_over(snapshot, leases, find(snapshot.jobs.key, leases.key)) if known else 0
    after = before._replace(leases=leases, memory=plan.memory, asked_for=asked_for, left_over=rest)
    return resting_after(after, outcomes, snapshot, terms)


def _record(
    after: Standing,
    ready: Prepared,
    plan: Plan,
    outcomes: tuple[Outcome, ...],
    events: tuple[Event, ...],
    rules: Rules,
    stopwatch: Stopwatch,
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
        events=events,
        seconds=dict(stopwatch.seconds),
        guard=guard,
    )


def _of_acts(
    outcomes: tuple[Outcome, ...], ready: Prepared, after: Standing, wants: Collection[Want]
) -> tuple[Event, ...]:
    if not outcomes:
        return ()
    asked = _events_of_done(outcomes, ready, after.asked_for) if Want.LEASE_EVENTS in wants else ()
    return (*asked, *_stays(outcomes, ready, after.leases))


def _events_of_done(
    outcomes: Iterable[Outcome], ready: Prepared, asked_for: Mapping[int, tuple[int, ...]]
) -> list[Event]:
    """An event for each gate that was opened, each job asked to checkpoint and each requeued one."""
    done = [o.action for o in outcomes if o.result is Result.DONE and o.action.verb in _EVENT_OF]
    if not done:
        return []
    snapshot, events = ready.snapshot, []
    rows = find(snapshot.jobs.key, np.array([action.key for action in done], dtype=np.int64))
    for action, row in zip(done, rows.tolist(), strict=True):
        kind = _EVENT_OF[action.verb]
        detail: dict[str, object] = {"why": action.why, "nodes": list(action.nodes)}
        if kind is EventKind.ASKED:
            detail["for"] = [label(key) for key in asked_for.get(action.key, ())]
        events.append(job_event(snapshot.time, kind, snapshot, row, **detail))
    return events


def _stays(outcomes: Iterable[Outcome], ready: Prepared, leases: Leases) -> list[Event]:
    """An event for each job that Slurm would not take off its GPUs, and that therefore has another lease."""
    kept = {o.action.key: o.detail for o in outcomes if o.refused_for_good and o.action.verb in STOPS}
    if not kept:
        return []
    snapshot, events = ready.snapshot, []
    keys = np.array(list(kept), dtype=np.int64)
    rows, at = find(snapshot.jobs.key, keys).tolist(), find(leases.key, keys).tolist()
    for key, row, lease in zip(kept, rows, at, strict=True):
        if row < 0 or lease < 0:
            continue
        until = ready.view.terms.said_end(float(leases.end[lease]))
        detail = {"why": kept[key], "until": until, "number": int(leases.renewals[lease]) + 1}
        events.append(lease_event(EventKind.STAYS, leases, lease, snapshot, row, **detail))
    return events
