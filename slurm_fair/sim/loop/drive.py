"""The loop of a simulation: the daemon's looks at the cluster, less those that could not change anything.

A simulation knows when jobs arrive, end and answer, and looks at regular instants after these. The daemon knows
none of them and looks at intervals (`looks/pace.py`). Both look at ends of leases. A simulation always looks at
the policy's instants, the daemon where its looks follow changes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_fair.errors import SlurmFairError
from slurm_fair.ledger.metrics.windows import WINDOW_SECONDS
from slurm_fair.looks.ends import next_decision_on_leases
from slurm_fair.model import Result, Snapshot, Standing, TickRecord, Verb
from slurm_fair.model.columns import all_of, any_of
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.rests import again, rests
from slurm_fair.ports import Journal, Want
from slurm_fair.sim.loop.ledger_batches import LedgerBatches
from slurm_fair.sim.loop.renewals import renewals_until, renewed_until
from slurm_fair.sim.loop.settling_journal import SettlingJournal
from slurm_fair.sim.loop.weighed import PlansWeighed
from slurm_fair.sim.port.at_once import RequeuesAtOnce
from slurm_fair.sim.port.clock import VirtualClock, epoch_for
from slurm_fair.sim.port.cluster import VirtualCluster
from slurm_fair.sim.scenario import Manners, Scenario
from slurm_fair.sim.world.load import population
from slurm_fair.tick import Rules, Stopwatch, tick

# (standing, number of acts, now, next change in the cluster) -> instant of the next look
LookAfter = Callable[[Standing, int, float, float], float]
_MOMENT = 1e-6
_STUCK_LOOKS = 1000  # looks at one instant that lead nowhere: a policy that never comes to rest


@dataclass(slots=True)
class Simulation:
    """One scenario under one policy."""

    scenario: Scenario
    rules: Rules
    journal: Journal
    after_look: Callable[[Simulation], None] = lambda simulation: None
    manners: Manners | None = None
    batches: LedgerBatches | None = None  # that fold the ledger; without them it is folded at every look
    looks: LookAfter | None = None  # in the place of looks when something could change, at the next interval
    epoch: float = field(init=False)
    clock: VirtualClock = field(init=False)
    cluster: VirtualCluster = field(init=False)
    standing: Standing = field(init=False)
    decisions: list[float] = field(default_factory=list)  # CPU seconds that the policy took, by look
    weighed: PlansWeighed = field(default_factory=PlansWeighed)
    _looks_at_one_instant: int = 0
    _looked: float = -math.inf  # the instant of the last look
    _renewing: Snapshot | None = None  # the last look, if from there to the next one leases are only renewed
    _settled: SettlingJournal = field(init=False)
    _port: RequeuesAtOnce = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = epoch_for(self.rules.terms.term)
        self.clock = VirtualClock(self.epoch)
        terms = self.rules.terms
        # As a real job does that has saved: it goes on when the grace is over and nobody took its GPUs.
        manners = self.manners or Manners(patience_seconds=terms.grace)
        jobs = population(self.scenario, self.epoch)
        self.cluster = VirtualCluster(self.scenario, jobs, self.clock, terms.term, manners)
        self._port = RequeuesAtOnce(self.cluster)
        self.standing = Standing.new(self.epoch)
        self._settled = SettlingJournal(self.cluster.keep_books(), self.journal, self.batches)
        if self.scenario.speeds == "profiled" and self.rules.profiling is None:
            self.rules = replace(self.rules, profiling=Profiling())
        if self.batches is not None:
            self.rules = replace(self.rules, advance=self.batches.advance, show=self.batches.show)

    def run(self) -> None:
        """Tick until every job is over, or the time is up."""
        self._run()
        if self.batches is not None:
            self.batches.tell_all()

    def _run(self) -> None:
        last = self.epoch + self.scenario.until_s
        arrival = self.cluster.next_arrival()
        looks, grid = self.looks, self._first_look_from
        first = grid(arrival) if looks is None else looks(self.standing, 0, arrival, arrival)
        self.clock.sleep_until(min(first, last))
        while True:
            record = self.look()
            self.after_look(self)
            due = math.inf if self.cluster.empty else self._next_look(record)
            if due > last and self.clock.now() < last and not self.cluster.empty:
                due = last  # what is running then is measured then
            if due > last or math.isinf(due):
                return
            self.clock.sleep_until(due)

    def look(self) -> TickRecord:
        """One tick of the controller."""
        if self._renewing is not None:
            self._renew(self._renewing)
        stopwatch, self._looked = Stopwatch(time.thread_time), self.clock.now()
        done = tick(self._port, self.clock, self._settled, self.rules, self.standing, stopwatch)
        self.decisions.append(stopwatch.seconds["plan"])
        assert done.record is not None
        self.weighed.add(done.record.plan.memory, self._looked, stopwatch.seconds["plan"])
        self.standing = self._settled.standing or done.standing
        return done.record

    def _renew(self, seen: Snapshot) -> None:
        """Renew the leases that ended since the last look; one that ends now has this look."""
        self._renewing = None
        before, terms, now = self.standing.leases, self.rules.terms, self.clock.now()
        self.standing = self.standing._replace(leases=renewed_until(before, terms, now))
        if Want.LEASE_EVENTS in self.journal.wants:
            self._settled.meanwhile = renewals_until(before, seen, terms, now)

    # -- when something could change --------------------------------------------------------------------------

    def _first_look_from(self, instant: float) -> float:
        """The first regular look at or after an instant: at the next interval.

        Where looks follow changes: then, or `interval_min` after the last look.
        """
        if instant == math.inf:
            return instant
        terms = self.rules.terms
        if terms.follows_changes:
            return max(instant, self._looked + terms.interval_min)
        interval = terms.interval
        return self.epoch + math.ceil((instant - self.epoch) / interval - 1e-9) * interval

    def _next_look(self, record: TickRecord) -> float:
        """The instant of the next look.

        1. Where a pace is given (`--pace daemon`, recorded looks) it alone decides.
        2. The same instant once more, where GPUs just came free or others could start now (`_may_grant_more`).
        3. Where leases would only be renewed until the next event: that event, or the first end of a lease at
           which more may happen (`_first_other_end`).
        4. Else the first of the next arrival, outage or end of a job (`_next_event`), of an end of leases, an
           answer to a request, and the instant that the plan asked for (`_next_decision`).
        5. The next regular look, if it comes sooner and an act failed, or what an act led to was not
           seen yet (`_must_be_followed`).
        """
        now = self.clock.now()
        if self.looks is not None:
            change = min(self.cluster.next_arrival(), self.cluster.next_change())
            return self.looks(self.standing, len(record.outcomes), now, change)
        done = [o.action.verb for o in record.outcomes if o.result is Result.DONE] if record.outcomes else []
        if self._may_grant_more(record, done):
            return self._at_once(now)
        self._looks_at_one_instant = 0
        waits = _somebody_waits(record, done)
        # A job that was just opened runs already, though it was not seen yet.
        end = next_decision_on_leases(self.standing, self.rules.terms, ~self.standing.leases.revoking)
        event = self._next_event(waits)
        if end < event and self._only_renews(record, end):
            self._renewing = record.snapshot
            return min(event, self._first_other_end())
        due = min(event, self._next_decision(record, end))
        following = self._first_look_from(now + _MOMENT)
        if due > following and self._must_be_followed(record, done, waits, end):
            return following
        return due

    def _may_grant_more(self, record: TickRecord, done: list[Verb]) -> bool:
        """True if the same instant has another plan: GPUs came free, or others start only after these have."""
        if Verb.REQUEUE in done:
            return True
        # In rounds the others would wait for a whole one.
        return Verb.OPEN in done and self.scenario.in_gavel_rounds and self._others_follow(record, done)

    def _next_event(self, waits: bool) -> float:
        """The look at the next arrival or outage; and at the next end of a job, where that may help somebody."""
        arrival = self.cluster.next_arrival()
        # An outage may put jobs back into the queue while nobody waits.
        due = self._first_look_from(min(arrival, self.cluster.next_outage()))
        if waits or arrival == math.inf:  # after the last arrival the simulation ends with the last job
            due = min(due, self._first_look_from(self.cluster.next_change()))
        return due

    def _next_decision(self, record: TickRecord, end: float) -> float:
        """The look at the end of a lease, at an answer to a request, or at the instant that the plan asked for."""
        now, terms, due = self.clock.now(), self.rules.terms, math.inf
        if end > now:
            due = self._first_look_from(end) if terms.follows_changes else end
        if any_of(self.standing.leases.revoking):
            due = min(due, max(self.cluster.next_change(), now))
        if not terms.grants_at(now):
            due = min(due, terms.next_common_end(now))
        instant = again(record.plan.memory)
        if instant < math.inf:
            due = min(due, self._first_look_from(max(instant, now + _MOMENT)))
        return due

    def _must_be_followed(self, record: TickRecord, done: list[Verb], waits: bool, end: float) -> bool:
        """True if an act failed, or what one led to was not seen yet: the next look follows as soon as it can."""
        now, standing = self.clock.now(), self.standing
        if end <= now or len(done) < len(record.outcomes) or standing.backoff or standing.unsettled:
            return True
        # What a gang took of its nodes, and that it runs at all, is known only when it is seen there.
        if Verb.OPEN in done and (waits or self.cluster.next_outage() < math.inf):
            return True
        return any_of(standing.leases.revoking) or self._someone_should_have_started(now)

    def _only_renews(self, record: TickRecord, end: float) -> bool:
        """True if leases, the first at `end`, would only be renewed as long as nothing happens to a job."""
        now, standing = self.clock.now(), self.standing
        plan = record.plan
        if record.outcomes or again(plan.memory) < math.inf or self.rules.profiling is not None:
            return False
        if standing.backoff or standing.unsettled:
            return False
        if end <= now or not self.rules.terms.grants_at(now):
            return False
        jobs = record.snapshot.jobs
        everybody = jobs.running | jobs.done
        if not (all_of(standing.leases.running) and all_of(everybody)):
            return False
        return rests(self.rules.policy, record.snapshot, plan.memory)

    def _first_other_end(self) -> float:
        """The first end of a lease from which on more might happen than that it is renewed.

        From the first arrival, end or outage on; and one look an hour, at which accounts are written down.
        """
        hour = (math.floor(self.clock.now() / WINDOW_SECONDS) + 1) * WINDOW_SECONDS
        ahead = min(self.cluster.next_arrival(), self.cluster.next_change(), hour)
        terms = self.rules.terms
        return float(terms.renewed_at(renewed_until(self.standing.leases, terms, ahead).end).min())

    def _someone_should_have_started(self, now: float) -> bool:
        """True if a job promised at an earlier look has not begun: it is not waited for without end."""
        leases = self.standing.leases
        granted = leases.promised
        return any_of(granted) and any_of(granted & (leases.opened < now))

    def _others_follow(self, record: TickRecord, done: list[Verb]) -> bool:
        """True if a job starts only after these have, or could on the rest of a gang's nodes."""
        leases, machines = self.standing.leases, record.snapshot.nodes
        granted, places = leases.promised, leases.promises_by(leases.key, machines.names)
        if any_of(granted & (leases.opened == 0)):
            return True
        nodes = np.bincount(places.row, minlength=len(granted))
        sizes = np.bincount(places.row, machines.gpus[places.node], len(granted))
        return any_of(granted & (nodes > 1) & (sizes > leases.gpus)) and _somebody_waits(record, done)

    def _at_once(self, now: float) -> float:
        self._looks_at_one_instant += 1
        if self._looks_at_one_instant > _STUCK_LOOKS:
            raise SlurmFairError(
                f"policy {self.rules.policy_name} does not come to rest: {_STUCK_LOOKS} looks at second "
                f"{now - self.epoch:g} and jobs still change hands"
            )
        return now


def _somebody_waits(record: TickRecord, done: list[Verb]) -> bool:
    """True if a job waits that was not opened just now."""
    return int(np.count_nonzero(record.snapshot.jobs.waiting)) > done.count(Verb.OPEN)
