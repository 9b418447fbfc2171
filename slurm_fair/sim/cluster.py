"""The virtual cluster: the Cluster port on virtual time. Things happen to jobs here; who decides is elsewhere."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model import (
    Action,
    Blocked,
    JobState,
    JobTable,
    Outcome,
    Placement,
    Result,
    Snapshot,
    TenantTable,
    Told,
    Verb,
)
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.sim.clock import VirtualClock
from slurm_fair.sim.floor import Floor
from slurm_fair.sim.load import Population
from slurm_fair.sim.scenario import NodeEvent, Scenario
from slurm_fair.sim.work import progress, spread_factor

CLUSTER = "virtual"
SAVED, NO_ANSWER = 1, 0
_NOTHING = Placement.none()
_WAITING, _RUNNING, _ENDING, _DONE = (
    int(s) for s in (JobState.WAITING, JobState.RUNNING, JobState.ENDING, JobState.DONE)
)


@dataclass(frozen=True, slots=True)
class Happens:
    """Something that will happen to a job unless its run is another one by then."""

    what: str  # end, saved, leaves, eligible
    job: int
    run: int


@dataclass(slots=True)
class Tally:
    """What the cluster itself counts: facts that no look shows."""

    lost_gpu_seconds: float = 0.0  # held without progress: checkpoints, restarts, work done again
    held_gpu_seconds: float = 0.0
    preemptions: int = 0
    restarts: int = 0
    placements: int = 0
    placement_score: float = 0.0  # sum over runs of the speed that placement left
    first_start: dict[int, float] = field(default_factory=dict)


class VirtualCluster:
    """Jobs of a scenario on its machines; a job that is submitted waits behind our gate."""

    def __init__(
        self, scenario: Scenario, people: Population, clock: VirtualClock, round_seconds: float
    ) -> None:
        self.scenario, self.people, self.clock = scenario, people, clock
        self.jobs, self.floor = people.jobs, Floor(scenario.machines, people.gpu_types)
        self.tally = Tally()
        self._began = clock.now()
        self._round = round_seconds if scenario.rounds == "gavel" else 0.0
        self._row = dict(zip(self.jobs.key.tolist(), range(self.jobs.count), strict=True))
        self._arrivals: list[float] = self.jobs.submit.tolist()
        self._next = 0  # first job not submitted yet
        self._live = np.zeros(0, dtype=np.int64)  # jobs that a look shows, ascending
        self._over: dict[int, str] = {}  # jobs that ended since the last look, and how
        self._pending: dict[int, tuple[int, ...]] = {}  # opened and waiting for their nodes
        self._ahead: list[tuple[float, int, Happens]] = []
        self._count = 0
        self._fewest: dict[int, int] = {}
        self._outages = sorted(
            (self._began + outage.time_s, outage.node, outage.event) for outage in scenario.outages
        )
        self._tenants = TenantTable(people.tenants, people.weights)

    # -- what a controller sees -------------------------------------------------------------------------------

    def observe(self, asked: Mapping[int, float]) -> Snapshot:
        """The cluster now; jobs that ended are shown once."""
        now = self.clock.now()
        self.catch_up(now)
        shown, jobs = self._live, self.jobs
        states = JobTable(**jobs.seen(shown))
        over = self._over
        if over:
            reasons = tuple(over.get(job, "") for job in shown.tolist())
            self._live = shown[states.state != _DONE]
            self._over = {}
        else:
            reasons = ("",) * len(shown)
        job, node, gpus = self.floor.holders()
        return Snapshot(
            time=now,
            cluster=CLUSTER,
            nodes=self.floor.nodes,
            partitions=self.floor.partitions,
            tenants=self._tenants,
            users=self.people.users,
            gpu_types=self.people.gpu_types,
            jobs=states,
            held=Placement(np.searchsorted(shown, job), node, gpus),
            wanted=_NOTHING,
            barred=_NOTHING,
            reasons=reasons,
            told=self._told(shown, now),
            racks=self.floor.racks,
        )

    def _told(self, rows: Ints, now: float) -> Told:
        """What users declared and the jobs' own reports say."""
        hidden, ints = self.jobs.hidden.of(rows), self.jobs.hidden_ints.of(rows)
        done = self._done(hidden, self.jobs.state[rows] == _RUNNING, now)
        said = progress(
            self.people.regimes,
            ints["first_regime"],
            ints["last_regime"],
            done,
            hidden["work"],
            hidden["declared"],
        )
        return Told(
            declared_seconds=hidden["declared"],
            left_seconds=said.left_seconds,
            done_seconds=done,
            epoch=said.epoch,
            epochs=said.epochs,
            deadline=hidden["deadline"],
            steps_per_second=said.steps_per_second,
            rate=self.people.rates[rows],
            spread_rate=hidden["spread_rate"],
            model=ints["model"],
            batch_size=said.batch_size,
            models=self.people.models,
        )

    @staticmethod
    def _done(hidden: Mapping[str, Floats], runs: Bools, now: float) -> Floats:
        more = np.maximum(now - hidden["progress_from"], 0.0) * hidden["rate"]
        done: Floats = np.minimum(hidden["done"] + np.where(runs, more, 0.0), hidden["work"])
        return done

    # -- what happens by itself -------------------------------------------------------------------------------

    def catch_up(self, now: float) -> None:
        """Everything that happens up to an instant, in order."""
        while True:
            arrival = self._arrivals[self._next] if self._next < len(self._arrivals) else math.inf
            ahead = self._ahead[0][0] if self._ahead else math.inf
            outage = self._outages[0][0] if self._outages else math.inf
            first = min(arrival, ahead, outage)
            if first > now:
                return
            if ahead == first:
                when, _, event = heapq.heappop(self._ahead)
                if self.jobs.runs[event.job] == event.run:
                    self._happen(event, when)
            elif outage == first:
                self._befall(*self._outages.pop(0))
            else:
                self._arrive(first)

    def _arrive(self, instant: float) -> None:
        first = self._next
        while self._next < len(self._arrivals) and self._arrivals[self._next] <= instant:
            self._next += 1
        self._live = np.concatenate([self._live, np.arange(first, self._next)])

    def _expect(self, instant: float, what: str, job: int) -> None:
        self._count += 1
        event = Happens(what, job, int(self.jobs.runs[job]))
        heapq.heappush(self._ahead, (instant, self._count, event))

    def _happen(self, event: Happens, now: float) -> None:
        job = event.job
        if event.what == "end":
            self._end(job, now)
        elif event.what == "leaves":
            self._leave(job, now)
        elif event.what == "saved":
            self.jobs.saved[job] = self.jobs.done[job]
            self.jobs.acknowledged[job] = SAVED
        elif event.what == "eligible" and self.jobs.blocked[job] == Blocked.REQUEUED:
            self.jobs.blocked[job] = Blocked.NOT_BLOCKED
            self._start_pending(now)

    def _end(self, job: int, now: float) -> None:
        """It has done its work. In Gavel's rounds its GPUs stay with it until the round is over."""
        jobs = self.jobs
        jobs.done[job] = jobs.saved[job] = jobs.work[job]
        jobs.end[job] = now
        over = (
            math.ceil((now - self._began) / self._round) * self._round + self._began if self._round else now
        )
        if over > now:
            jobs.state[job] = _ENDING
            self._expect(over, "leaves", job)
        else:
            self._leave(job, now)

    def _leave(self, job: int, now: float) -> None:
        jobs = self.jobs
        jobs.state[job], jobs.stopped_at[job] = _DONE, now
        self._free(job, now)
        self._over[job] = "COMPLETED"
        self._start_pending(now)

    def _free(self, job: int, now: float) -> None:
        jobs = self.jobs
        self.tally.held_gpu_seconds += float(jobs.gpus[job]) * (now - float(jobs.start[job]))
        self.floor.leave(job)

    def _befall(self, instant: float, node_name: str, event: NodeEvent) -> None:
        node = self.floor.names[node_name]
        self.floor.set_state(node, event is NodeEvent.UP, "" if event is NodeEvent.UP else event.name)
        if event is NodeEvent.DOWN:
            for job in self.floor.on(node):
                self._lose(job, instant)
        self._start_pending(instant)

    def _lose(self, job: int, now: float) -> None:
        """Its node failed: it begins again from its last checkpoint, unless it had ended."""
        jobs = self.jobs
        if jobs.state[job] == _ENDING:
            self._leave(job, now)
            return
        self._stop(job, now)

    def _stop(self, job: int, now: float) -> None:
        """Off its GPUs, back into the queue behind our gate, with what it saved."""
        jobs, delay = self.jobs, self.scenario.costs.requeue_delay
        more = max(now - float(jobs.progress_from[job]), 0.0)
        undone = more + float(jobs.done[job] - jobs.saved[job]) / float(jobs.rate[job])
        self.tally.lost_gpu_seconds += undone * float(jobs.gpus[job])
        self._free(job, now)
        jobs.done[job] = jobs.saved[job]
        jobs.state[job], jobs.acknowledged[job] = _WAITING, NO_ANSWER
        jobs.start[job], jobs.submit[job], jobs.stopped_at[job] = 0.0, now, now
        jobs.restarts[job] += 1
        jobs.runs[job] += 1
        jobs.gated[job], jobs.gate_until[job], jobs.gate_set[job], jobs.pinned[job] = (
            True,
            math.inf,
            now,
            False,
        )
        if delay > 0:
            jobs.blocked[job] = Blocked.REQUEUED
            self._expect(now + delay, "eligible", job)
        self._start_pending(now)

    # -- starting ---------------------------------------------------------------------------------------------

    def _start_pending(self, now: float) -> None:
        for job, nodes in list(self._pending.items()):
            self._try_start(job, nodes, now)

    def _try_start(self, job: int, nodes: tuple[int, ...], now: float) -> None:
        """Start an opened job if its nodes have room, else let it wait for them."""
        jobs = self.jobs
        sites = None
        if jobs.blocked[job] == Blocked.NOT_BLOCKED:
            sites = self.floor.sites(
                nodes, int(jobs.gpus[job]), int(jobs.gpus_per_node[job]), int(jobs.nodes[job])
            )
        if sites is None:
            self._pending[job] = nodes
            return
        self._pending.pop(job, None)
        self.floor.take(job, sites)
        lost = self._restart_cost(job, now)
        jobs.state[job], jobs.start[job] = _RUNNING, now
        jobs.runs[job] += 1
        rate = self._rate(job, sites)
        jobs.rate[job], jobs.progress_from[job] = rate, now + lost
        self.tally.lost_gpu_seconds += lost * float(jobs.gpus[job])
        self._expect(now + lost + float(jobs.work[job] - jobs.done[job]) / rate, "end", job)

    def _restart_cost(self, job: int, now: float) -> float:
        cost, stopped = self.scenario.costs.restart, float(self.jobs.stopped_at[job])
        if self._round:
            return cost if stopped != now else 0.0
        if stopped > -math.inf:
            self.tally.restarts += 1
            return cost
        return 0.0

    def _rate(self, job: int, sites: list[tuple[int, int]]) -> float:
        """The slowest of its GPUs, and what lying apart costs."""
        floor, rates = self.floor, self.people.rates
        speed = min(float(rates[job, floor.type_of[node]]) for node, _ in sites)
        apart = 1.0
        if len(sites) > 1:
            racks = len({int(floor.racks[node]) for node, _ in sites})
            gpus = int(self.jobs.gpus[job])
            fewest = max(self._fewest_nodes(gpus), int(self.jobs.nodes[job]))
            apart = spread_factor(len(sites), fewest, racks, 1, float(self.jobs.spread_rate[job]))
        self.tally.placements += 1
        self.tally.placement_score += apart
        return max(speed * apart, 1e-9)

    def _fewest_nodes(self, gpus: int) -> int:
        if gpus not in self._fewest:
            sizes = np.cumsum(np.sort(self.scenario.machines.gpus)[::-1])
            self._fewest[gpus] = int(np.searchsorted(sizes, gpus)) + 1
        return self._fewest[gpus]

    # -- what a controller does -------------------------------------------------------------------------------

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Do what still applies."""
        now = self.clock.now()
        self.catch_up(now)
        return tuple(self._act(action, now) for action in actions)

    def _act(self, action: Action, now: float) -> Outcome:
        job = self._row.get(action.key, -1)
        if job < 0 or job >= self._next:
            return Outcome(action, Result.REFUSED, "no such job")
        jobs = self.jobs
        if jobs.submit[job] != action.submit or jobs.restarts[job] != action.restarts:
            return Outcome(action, Result.REFUSED, "it is not the run that this was decided for")
        wanted = _RUNNING if action.verb in (Verb.ASK, Verb.REQUEUE) else _WAITING
        if jobs.state[job] != wanted:
            return Outcome(action, Result.REFUSED, f"it is {JobState(int(jobs.state[job])).name.lower()}")
        return Outcome(action, *self._done_to(action, job, now))

    def _done_to(self, action: Action, job: int, now: float) -> tuple[Result, str]:
        if action.verb is Verb.OPEN:
            return self._open(job, action.nodes, now)
        if action.verb is Verb.ASK:
            return self._ask(job, now)
        if action.verb is Verb.REQUEUE:
            return self._requeue(job, now)
        jobs = self.jobs
        self._pending.pop(job, None)
        jobs.gated[job], jobs.pinned[job] = action.verb is Verb.CLOSE, False
        jobs.gate_until[job], jobs.gate_set[job] = (math.inf, now) if jobs.gated[job] else (0.0, 0.0)
        return Result.DONE, ""

    def _open(self, job: int, names: Sequence[str], now: float) -> tuple[Result, str]:
        jobs = self.jobs
        if jobs.blocked[job] not in (Blocked.NOT_BLOCKED, Blocked.REQUEUED):
            return Result.REFUSED, "somebody holds it"
        jobs.gated[job], jobs.gate_until[job], jobs.pinned[job] = False, 0.0, True
        self._try_start(job, tuple(self.floor.names[name] for name in names), now)
        return Result.DONE, ""

    def _ask(self, job: int, now: float) -> tuple[Result, str]:
        """From now on it saves, and then it waits: no progress any more in this run."""
        jobs, cost = self.jobs, self.scenario.costs.checkpoint
        more = max(now - float(jobs.progress_from[job]), 0.0) * float(jobs.rate[job])
        self.tally.lost_gpu_seconds += cost * float(jobs.gpus[job])
        # Asked while it was still restarting: what was counted as lost to that comes to an end now.
        jobs.done[job] = min(float(jobs.done[job]) + more, float(jobs.work[job]))
        jobs.progress_from[job], jobs.runs[job] = math.inf, jobs.runs[job] + 1
        if cost > 0:
            self._expect(now + cost, "saved", job)
        else:
            jobs.saved[job], jobs.acknowledged[job] = jobs.done[job], SAVED
        return Result.DONE, ""

    def _requeue(self, job: int, now: float) -> tuple[Result, str]:
        if not self.jobs.requeueable[job]:
            return Result.REFUSED, "it may not be requeued"
        self.jobs.preemptions[job] += 1
        self.tally.preemptions += 1
        self._stop(job, now)
        return Result.DONE, ""

    # -- when to look again -----------------------------------------------------------------------------------

    def next_arrival(self) -> float:
        """When the next job is submitted."""
        return self._arrivals[self._next] if self._next < len(self._arrivals) else math.inf

    def next_change(self) -> float:
        """When something next happens to a job that is there, or to a node."""
        while self._ahead and self.jobs.runs[self._ahead[0][2].job] != self._ahead[0][2].run:
            heapq.heappop(self._ahead)
        ahead = self._ahead[0][0] if self._ahead else math.inf
        return min(ahead, self._outages[0][0] if self._outages else math.inf)

    @property
    def empty(self) -> bool:
        """Every job has come and gone."""
        return self._next == len(self._arrivals) and not len(self._live)
