"""One tick: observe -> advance -> plan -> reconcile -> guard -> actuate -> record.

Two effects, one at each end, both behind the Cluster port; everything between them is a fold over values, so that
a tick can be computed again from what the journal keeps.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slurm_fair.dry_run import without_effect
from slurm_fair.errors import NoPlan
from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.model import (
    Action,
    Blind,
    Event,
    EventKind,
    Leases,
    LeaseTerms,
    Ledger,
    Outcome,
    Plan,
    Result,
    Snapshot,
    Standing,
    TickRecord,
    Verb,
)
from slurm_fair.model.action import STOPS
from slurm_fair.model.columns import Ints, any_of, find
from slurm_fair.model.ids import label
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import objections, planned, postponed, standstill
from slurm_fair.policy.error_place import beginning, where
from slurm_fair.policy.fading import with_faded, with_fading
from slurm_fair.policy.own_share import BEYOND, promised_beyond, within_own_share
from slurm_fair.policy.profiling import Profiling, ended_with_turns, with_their_turns, with_turns
from slurm_fair.policy.reach import without_the_impossible, without_the_kept_out
from slurm_fair.policy.reserve import set_aside, with_new
from slurm_fair.policy.turns import with_turns_of
from slurm_fair.ports import EVERYTHING, Clock, Cluster, Journal, Planner, Want
from slurm_fair.reconcile import (
    Limits,
    actions_for,
    apply_outcomes,
    apply_plan,
    follow,
    hold_back,
    taken_back,
)
from slurm_fair.reconcile.clock import without_the_future
from slurm_fair.reconcile.events import GATE_WAS_OPENED, job_event, lease_event
from slurm_fair.reconcile.for_whom import Spare, for_whom, withdrawn
from slurm_fair.reconcile.guard import living, oddity
from slurm_fair.reconcile.retries import (
    backoff_after,
    overlaid,
    resting_after,
    shunned_after,
    still_resting,
    without_refused,
)

_EVENT_OF = {Verb.OPEN: EventKind.OPENED, Verb.ASK: EventKind.ASKED, Verb.REQUEUE: EventKind.REQUEUED}
_NO_TURNS = ": this look goes without its turns"


# How a ledger takes in a look; events of jobs that the journal does not want may be left out.
Advance = Callable[[Ledger, Snapshot, LedgerSettings], tuple[Ledger, tuple[Event, ...]]]
# What a policy is shown of a look that a ledger took in: all events, whatever the journal wants.
Show = Callable[[tuple[Event, ...]], Sequence[Event]]


def _all_events(events: tuple[Event, ...]) -> Sequence[Event]:
    return events


@dataclass(frozen=True, slots=True)
class InThisProcess:
    """The planner that calls a method of the policy and waits for it, however long it takes."""

    make: Callable[[View], object]
    keeps_time: ClassVar[bool] = False

    def plan(self, view: View, limit_seconds: float) -> Plan:
        """The policy's own; the limit is in the view, as its deadline."""
        return planned(self.make, view)


@dataclass(frozen=True, slots=True)
class Rules:
    """The policy and settings of a tick."""

    policy_name: str
    policy: Policy
    settings: Mapping[str, Any]
    terms: LeaseTerms
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    plan_limit_seconds: float = 30.0
    advance: Advance = advance
    show: Show = _all_events
    planner: Planner[View] | None = None  # None: the policy is called in this process
    profiling: Profiling | None = None  # None: nobody's speed is measured in turns of its own


class Prepared(NamedTuple):
    """A standing brought up to a snapshot: what the policy then sees."""

    standing: Standing
    snapshot: Snapshot
    view: View
    events: tuple[Event, ...]
    fault: str = ""  # of the profiler


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
    watch: Stopwatch,
    missed: tuple[Event, ...] = (),
) -> TickDone:
    """One tick of the controller; `missed` happened since the last one, and no look has shown it."""
    watch.start()
    snapshot = cluster.observe(owed_answers(standing))
    watch.lap("observe")
    if isinstance(snapshot, Blind):
        return TickDone(standing, blind=snapshot.reason)
    alive = living(snapshot)
    odd = oddity(snapshot, alive, standing.last_jobs, rules.limits)
    if odd:  # the next look confirms it, or shows that this one was wrong
        return TickDone(standing._replace(last_jobs=alive), blind=odd, odd=True)
    wants = journal.wants
    ready = prepare(standing, snapshot, rules, wants)
    ready = _with_missed(ready, missed) if missed else ready
    watch.lap("advance")
    plan = decide(ready.view, rules, clock, in_full=Want.EXPLANATION in wants, fault=ready.fault)
    watch.lap("plan")
    leases, actions, granted = reconcile(ready, plan, rules, wants)
    allowed, held_back = hold_back(actions, rules.limits)
    outcomes = cluster.actuate(allowed)
    watch.lap("act")
    dry_run = not cluster.acts
    if dry_run:
        leases, plan = without_effect(leases, plan, ready.view)
    after = conclude(ready, leases, outcomes, plan, rules)
    events = ready.events + granted + _of_acts(outcomes, ready, after, wants)
    record = _record(after, ready, plan, outcomes, events, rules, watch, held_back)
    record = record._replace(dry_run=dry_run, amended=standing.ledger if standing.amended else None)
    journal.append(record, after)
    return TickDone(after, record)


def owed_answers(standing: Standing) -> dict[int, float]:
    """Jobs asked to checkpoint that have not answered, and when they were asked."""
    leases = standing.leases
    asked = leases.revoking.nonzero()[0]
    if not asked.size:
        return {}
    asked = asked[leases.asked[asked] > 0]
    return dict(zip(leases.key[asked].tolist(), leases.asked[asked].tolist(), strict=True))


def prepare(
    standing: Standing, snapshot: Snapshot, rules: Rules, wants: Collection[Want] = EVERYTHING
) -> Prepared:
    """Ledger and leases brought up to the snapshot, and what of it the policy may plan."""
    now = snapshot.time
    standing = still_resting(without_the_future(standing, rules.terms, now), now)
    seen = without_the_impossible(snapshot, standing.leases, rules.policy)
    snapshot = overlaid(seen, standing)
    ledger, happened = rules.advance(standing.ledger, snapshot, rules.ledger)
    leases, followed, job_of_lease = follow(
        standing.leases, snapshot, rules.terms, tell_ends=Want.LEASE_EVENTS in wants
    )
    failed = [e for e in followed if e.kind == EventKind.TAKEN_BACK and e.detail[GATE_WAS_OPENED]]
    standing = standing._replace(
        ledger=ledger,
        leases=leases,
        tick=standing.tick + 1,
        backoff=backoff_after(standing.backoff, failed, now) if failed else standing.backoff,
        shunned=shunned_after(standing.shunned, failed, snapshot),
        last_jobs=living(snapshot),
        amended=False,
    )
    view = View(
        overlaid(seen, standing),  # anew: a start that failed just now rests from now on
        ledger,
        leases,
        rules.terms,
        now,
        rules.seed,
        now + rules.plan_limit_seconds,
        standing.memory,
        job_of_lease,
        counts_seconds=rules.ledger.counts_seconds,
        happened=rules.show(happened),
    )
    fault = ""
    if rules.profiling is not None:
        try:
            leases = ended_with_turns(view, rules.profiling)
        except Exception as error:
            fault = _of_profiler(error)
        standing, view = standing._replace(leases=leases), replace(view, leases=leases)
    if standing.asked_for and any_of(standing.leases.revoking):
        standing, view, stays = _without_needless_requests(standing, view)
        followed += stays
    beyond = promised_beyond(view)
    if beyond.size:
        standing, view, back = _without_promises(standing, view, beyond)
        followed += back
    view = within_own_share(without_the_kept_out(view, rules.policy))
    view = with_fading(set_aside(view, rules.policy), rules.ledger.half_life_seconds)
    return Prepared(standing, snapshot, view, happened + followed, fault)


def _with_missed(ready: Prepared, missed: tuple[Event, ...]) -> Prepared:
    view = replace(ready.view, happened=(*missed, *ready.view.happened))
    return ready._replace(view=view, events=missed + ready.events)


def _without_promises(standing: Standing, view: View, at: Ints) -> tuple[Standing, View, tuple[Event, ...]]:
    """Take promises back of work that cannot be taken back, beyond its tenant's own share."""
    leases, events = taken_back(view.leases, at, BEYOND, view.snapshot)
    return standing._replace(leases=leases), replace(view, leases=leases, joined=None), events


def _without_needless_requests(standing: Standing, view: View) -> tuple[Standing, View, tuple[Event, ...]]:
    """Nobody is stopped for a job that has gone, or that has found its GPUs elsewhere."""
    spare = Spare(view.spare_gpus, view.spare_cpus, view.spare_memory_mb)
    leases, stays = withdrawn(
        standing.leases, view.snapshot, view.terms, standing.asked_for, standing.unsettled, spare
    )
    if not stays:
        return standing, view, ()
    return standing._replace(leases=leases), replace(view, leases=leases), tuple(stays)


def decide(view: View, rules: Rules, clock: Clock, *, in_full: bool = True, fault: str = "") -> Plan:
    """The planner's plan; one that raises, is late or cannot be means that the current leases stay.

    `in_full` works out its reasons and ranks too: what raises there raises now, and not after the acts.
    `fault` is one of the profiler before: this look goes without its turns.
    """
    began, planner = clock.now(), rules.planner or InThisProcess(rules.policy.plan)
    try:
        plan, wrong = _planned(view, rules, planner, in_full, fault)
    except NoPlan as why:
        return standstill(view, str(why))
    except Exception as error:
        place = where(type(rules.policy), error)
        return standstill(view, f"{place}: the policy raised: {traceback.format_exc(limit=-3)}")
    late = clock.now() - began
    if late > rules.plan_limit_seconds and not planner.keeps_time:
        return standstill(view, f"the policy took {late:.1f} s (limit {rules.plan_limit_seconds:g} s)")
    if wrong:
        return standstill(view, f"{beginning(type(rules.policy))}: the plan cannot be: {wrong}")
    if view.terms.grants_at(view.now):
        return plan
    return postponed(plan).explained() if in_full else postponed(plan)


def _planned(view: View, rules: Rules, planner: Planner[View], in_full: bool, fault: str) -> tuple[Plan, str]:
    """The plan of this look, and what is wrong with it; a fault of the profiler costs the turns, and no plan."""
    found = fault or _with_turns(view, rules, planner, in_full)
    if not isinstance(found, str):
        return found
    plan = _of_policy(view, rules, planner, in_full)  # the GPUs of the turns are everybody's
    memory = with_turns_of(plan.memory, view.memory)
    return replace(plan, memory=memory, fault=found), objections(plan, view)


def _with_turns(view: View, rules: Rules, planner: Planner[View], in_full: bool) -> tuple[Plan, str] | str:
    """The policy's plan with the turns of the profiler, and what is wrong with it; or the profiler's fault."""
    try:
        shown, turns = with_turns(view, rules.policy, rules.profiling)
    except Exception as error:
        return _of_profiler(error)
    plan = _of_policy(shown, rules, planner, in_full)
    try:
        whole = with_their_turns(plan, view, rules.policy, rules.profiling, turns)
        whole = whole.explained() if in_full else whole
        wrong = objections(whole, view)
    except Exception as error:
        return _of_profiler(error)
    if wrong and not objections(plan, shown):
        return f"the profiler's turns cannot be: {wrong}{_NO_TURNS}"
    return whole, wrong


def _of_policy(view: View, rules: Rules, planner: Planner[View], in_full: bool) -> Plan:
    """The plan that the policy makes of what it is shown, with what the controller keeps in its memory."""
    plan = with_new(planner.plan(view, rules.plan_limit_seconds), view, rules.policy)
    memory = with_faded(plan.memory, view)
    if memory is not plan.memory or plan.reserve_after is not None:
        plan = replace(plan, memory=memory, reserve_after=None)
    return plan.explained() if in_full else plan


def _of_profiler(error: Exception) -> str:
    return f"{where(Profiling, error)}: the profiler raised {error!r}{_NO_TURNS}"


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
    ready: Prepared, leases: Leases, outcomes: tuple[Outcome, ...], plan: Plan, rules: Rules
) -> Standing:
    """The standing after the acts on these leases; a plan that stands in for another has the memory of before."""
    before, snapshot, terms = ready.standing, ready.snapshot, rules.terms
    asked_for = for_whom(leases, snapshot, before.asked_for)
    if outcomes:
        leases = apply_outcomes(leases, outcomes, terms, snapshot.time)
    after = before._replace(leases=leases, memory=plan.memory, asked_for=asked_for)
    return resting_after(after, outcomes, snapshot, terms)


def _record(
    after: Standing,
    ready: Prepared,
    plan: Plan,
    outcomes: tuple[Outcome, ...],
    events: tuple[Event, ...],
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
        events=events,
        seconds=dict(watch.seconds),
        guard=guard,
    )


def _of_acts(
    outcomes: tuple[Outcome, ...], ready: Prepared, after: Standing, wants: Collection[Want]
) -> tuple[Event, ...]:
    if not outcomes:
        return ()
    asked = _asked(outcomes, ready, after.asked_for) if Want.LEASE_EVENTS in wants else ()
    return (*asked, *_stays(outcomes, ready, after.leases))


def _asked(
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
