"""The life of jobs on a virtual cluster: they start, make progress, save, end, are lost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from slurm_fair.errors import SlurmFairError
from slurm_fair.model import Answer, Blocked, Gate, JobState, label
from slurm_fair.model.end_words import COMPLETED, NODE_FAIL, TIMEOUT
from slurm_fair.sim.scenario import Manners, NodeEvent, Scenario, Step
from slurm_fair.sim.world.agenda import Agenda, Due
from slurm_fair.sim.world.books import Books
from slurm_fair.sim.world.gpu_map import Floor, Sites
from slurm_fair.sim.world.load import Population
from slurm_fair.sim.world.work import spread_factor

REQUEUED = "REQUEUED"  # after such a run, and after one whose node failed, a job may live on
REQUEUE_GATE_SECONDS = 121.0  # after now (slurm-facts: requeue-delay)
_CRAWL = 1e-9  # a placement on which a job makes no progress


@dataclass(slots=True)
class Tally:
    """Counts of the cluster itself: facts that no look shows."""

    lost_gpu_seconds: float = 0.0  # held without progress: checkpoints, restarts, work done again
    held_gpu_seconds: float = 0.0
    preemptions: int = 0
    restarts: int = 0
    # Starts, by the slowdown that placement causes.
    placements: Counter[float] = field(default_factory=Counter)


@dataclass(slots=True)
class Oddities:
    """Properties that only jobs have that were submitted by hand; empty in a simulation of a trace."""

    held: dict[int, Blocked] = field(default_factory=dict)  # by their users or an admin
    begins: dict[int, float] = field(default_factory=dict)  # begin times of users' own
    leaves_in: dict[int, float] = field(default_factory=dict)  # seconds from a job's end to free GPUs
    silent: set[int] = field(default_factory=set)  # jobs that report nothing of themselves
    dated: bool = False  # some job has a deadline


class Life:
    """The jobs and the machines; everything that changes a job's state does it here."""

    def __init__(
        self, scenario: Scenario, population: Population, manners: Manners, began: float, round_seconds: float
    ) -> None:
        self.population, self.jobs, self.manners, self.costs = (
            population,
            population.jobs,
            manners,
            scenario.costs,
        )
        self.cells = self.jobs.cells
        self.floor = Floor(scenario.machines, population.gpu_types)
        self.agenda, self.tally, self.odd = Agenda(self.jobs), Tally(), Oddities()
        self.books: Books | None = None
        self.over: dict[int, str] = {}  # jobs that ended since the last look, and how
        self.answered: dict[int, float] = {}  # when jobs said that they have saved
        self.pinned: dict[int, tuple[int, ...]] = {}  # opened and waiting for their nodes
        self.granted: dict[int, int] = {}  # GPUs of those that are to start with another size than the usual
        self.plain: set[int] = set()  # waiting without any gate: first come, first served
        self.resized = [(began, self.floor.total_gpus)]  # M from each instant on
        self.resized_by_weight = [(began, self.floor.weighed(population.gpu_weights))]  # the same by weight
        self._began, self._round = began, round_seconds
        self._takes, self._cut = scenario.takes, scenario.whole_seconds
        self._not_before: dict[int, float] = {}  # when Slurm starts jobs whose gates were opened
        self._stalled: dict[int, float] = {}  # jobs that were asked, and make no progress since
        self._then: dict[int, str] = {}  # what a job on its way out is to be: REQUEUED, or its final state

    # -- what happens by itself -------------------------------------------------------------------------------

    def happen(self, what: Due, job: int, now: float) -> None:
        """One entry of the agenda."""
        match what:
            case Due.END:
                self.end(job, now)
            case Due.LEAVES:
                self._gone(job, now)
            case Due.HEARS:
                self._save(job, now)
            case Due.SAVED:
                self._saved(job, now)
            case Due.RESUMES:
                self._resume(job, now)
            case Due.STARTS:
                if job in self.pinned:
                    self.start_on(job, self.pinned[job], now)
            case Due.LIMIT:
                self.leave(job, now, TIMEOUT)
            case Due.ELIGIBLE | Due.BEGINS | Due.OPENS:
                self._open_by_itself(job, now)
                self.reconsider(job, now)

    def _open_by_itself(self, job: int, now: float) -> None:
        jobs = self.cells
        if jobs.state[job] == JobState.WAITING and jobs.gated[job] and jobs.gate_until[job] <= now:
            jobs.gated[job], jobs.gate_until[job], jobs.gate_set[job] = False, 0.0, 0.0

    def befall(self, instant: float, node_name: str, event: NodeEvent) -> None:
        """Something happens to a node, and to what runs there."""
        node = self.floor.names[node_name]
        self.floor.set_state(node, event is NodeEvent.UP, "" if event is NodeEvent.UP else event.name)
        self.note_size(instant)
        if event is NodeEvent.DOWN:
            for job in self.floor.on(node):
                self._lose(job, instant)
        self.start_waiting(instant)

    def note_size(self, now: float) -> None:
        """Note the size of the cluster, which may have changed."""
        since, before = self.resized[-1]
        total, by_weight = self.floor.total_gpus, self.floor.weighed(self.population.gpu_weights)
        if since == now:
            self.resized.pop()
            self.resized_by_weight.pop()
        if since == now or (total, by_weight) != (before, self.resized_by_weight[-1][1]):
            self.resized.append((now, total))
            self.resized_by_weight.append((now, by_weight))

    def _lose(self, job: int, now: float) -> None:
        """Take a job off its failed node: it begins again from its checkpoint, if it may and had not ended."""
        if self.cells.state[job] == JobState.ENDING:
            self._gone(job, now)
            return
        self.stop(job, now, NODE_FAIL, at_once=True)

    # -- starting ---------------------------------------------------------------------------------------------

    def reconsider(self, job: int, now: float) -> None:
        """The obstacle of a waiting job has changed: find out anew whether it may be planned and starts."""
        jobs = self.cells
        if jobs.state[job] != JobState.WAITING:
            return
        own_begin = self.odd.begins.get(job, 0.0)
        code = self.odd.held.get(job, Blocked.NOT_BLOCKED)
        if not code and own_begin > now:
            code = Blocked.OWN_BEGIN
        elif not code and jobs.eligible_at[job] > now:
            code = Blocked.REQUEUED
        jobs.blocked[job] = code
        if not jobs.gated[job] and job not in self.pinned:
            jobs.gate_until[job] = own_begin if own_begin > now else 0.0
            self.plain.add(job)
        else:
            self.plain.discard(job)
        self.start_waiting(now)

    def start_waiting(self, now: float) -> None:
        """Something came free: promised nodes first, then whoever waits without a gate, strictly in order."""
        if self.pinned:
            for job, nodes in list(self.pinned.items()):
                self.start_on(job, nodes, now)
        if self.plain:
            self._start_plain(now)

    def _start_plain(self, now: float) -> None:
        jobs = self.cells
        for job in sorted(self.plain, key=lambda job: (jobs.submit[job], job)):
            if jobs.blocked[job] != Blocked.NOT_BLOCKED or self._too_late(job, now):
                continue
            sites = self.floor.anywhere(
                jobs.gpus[job],
                jobs.gpus_per_node[job],
                jobs.nodes[job],
                jobs.gpu_type[job],
            )
            if sites is None:
                return
            self._start(job, sites, now)

    def let_in(self, job: int, nodes: tuple[int, ...], now: float) -> None:
        """Its gate is open: Slurm starts it as soon as it gets to it."""
        seconds = self._seconds(Step.OPENING, job, now, self.costs.opening)
        if seconds > 0:
            self.pinned[job], self._not_before[job] = nodes, now + seconds
            self.agenda.expect(now + seconds, Due.STARTS, job)
        else:
            self.start_on(job, nodes, now)

    def start_on(self, job: int, nodes: tuple[int, ...], now: float) -> None:
        """Start an opened job if its nodes have room, else let it wait for them."""
        if self._not_before and self._not_before.get(job, now) > now:
            return
        jobs = self.cells
        sites = None
        if jobs.blocked[job] == Blocked.NOT_BLOCKED:
            if self.odd.dated and self._too_late(job, now):
                return
            gpus, per_node = jobs.gpus[job], jobs.gpus_per_node[job]
            if job in self.granted:
                gpus = self.granted[job]
                per_node = gpus // len(nodes) if per_node and not gpus % len(nodes) else 0
            sites = self.floor.sites(nodes, gpus, per_node)
        if sites is None:
            self.pinned[job] = nodes
        else:
            self._start(job, sites, now)

    def _too_late(self, job: int, now: float) -> bool:
        """A job that can no longer end before its deadline is over for good, as Slurm has it."""
        if not self.odd.dated:
            return False
        limit = self.cells.time_limit_seconds[job]
        late = self.cells.deadline[job] < now + (limit if limit < math.inf else 0.0)
        if late:
            self.drop(job, now, "DEADLINE")
        return late

    def _start(self, job: int, sites: Sites, now: float) -> None:
        jobs = self.cells
        self.pinned.pop(job, None)
        self.plain.discard(job)
        self.floor.take(job, sites)
        if job in self.granted:
            jobs.gpus[job] = self.granted.pop(job)
        lost = self._start_cost(job, now)
        jobs.state[job], jobs.start[job] = JobState.RUNNING, self._as_shown(now)
        jobs.runs[job] += 1
        jobs.rate[job], jobs.progress_from[job] = self._rate(job, sites), now + lost
        self.tally.lost_gpu_seconds += lost * jobs.gpus[job]
        if self.population.gpu_weights is not None:
            jobs.gpu_weight[job] = self.floor.weight_of(sites, self.population.gpu_weights)
        self._expect_end(job)
        limit = jobs.time_limit_seconds[job]
        if limit < math.inf:
            self.agenda.expect(now + limit, Due.LIMIT, job)
        if self.books is not None:
            self.books.begins(job, sites)

    def _as_shown(self, now: float) -> float:
        """An instant as Slurm shows it."""
        return math.floor(now) if self._cut else now

    def _seconds(self, step: Step, job: int, now: float, usual: float) -> float:
        return self._takes(step, job, self.cells.restarts[job], now) if self._takes else usual

    def _expect_end(self, job: int) -> None:
        jobs = self.cells
        left = (jobs.work[job] - jobs.done[job]) / jobs.rate[job]
        self.agenda.expect(jobs.progress_from[job] + left, Due.END, job)

    def _start_cost(self, job: int, now: float) -> float:
        """Seconds without progress. In Gavel's rounds a job that goes on into the next one starts for nothing."""
        first, again, stopped = self.costs.start, self.costs.restart, self.cells.stopped_at[job]
        first = self._seconds(Step.START, job, now, first)
        if self._round:
            return first + again if stopped != now else 0.0
        if stopped > -math.inf:
            self.tally.restarts += 1
            return first + again
        return first

    def _rate(self, job: int, sites: Sites) -> float:
        """The slowest of its GPUs, and what lying apart costs on their type."""
        floor, rates, apart = self.floor, self.population.rates, 1.0
        if len(sites) == 1:
            kind = floor.type_of[sites[0][0]]
            speed = rates.item(job, kind)
        else:
            kind = min([floor.type_of[node] for node, _ in sites], key=rates[job].item)
            speed = rates.item(job, kind)
            racks = len({floor.racks.item(node) for node, _ in sites})
            fewest = floor.fewest_nodes(floor.type_of[sites[0][0]], self.cells.gpus[job])
            at_home, spread_rate = self._apart(job, kind, fewest)
            apart = spread_factor(len(sites), at_home, racks, spread_rate)
        if self.cells.gpus[job] != self.cells.usual_gpus[job]:
            speed *= self.population.elastic.speed(job, self.cells.gpus[job], kind)
        self.tally.placements[1.0 / max(apart, _CRAWL)] += 1
        if speed <= 0:
            raise SlurmFairError(f"job {label(self.cells.key[job])} was started where it does not run")
        return speed * apart

    def _apart(self, job: int, kind: int, fewest: int) -> tuple[int, float]:
        """On how many nodes it is not slowed by lying apart, and what it is slowed to on more."""
        cells, usual = self.cells, self.population.spread_rates.item(job, kind)
        gpus = cells.gpus[job]
        if gpus == cells.usual_gpus[job]:
            return max(fewest, cells.at_home[job]), usual
        return fewest, self.population.elastic.spread_rate(job, gpus, kind, usual)

    # -- saving -----------------------------------------------------------------------------------------------

    def ask(self, job: int, now: float) -> None:
        """Ask a job: as soon as it hears of it, it saves."""
        if not self.cells.checkpoints[job]:
            return
        seconds = self._seconds(Step.HEARING, job, now, self.costs.hearing)
        if seconds > 0:
            self.agenda.expect(now + seconds, Due.HEARS, job)
        else:
            self._save(job, now)

    def _save(self, job: int, now: float) -> None:
        """Let it save, then wait for its GPUs to be taken: it makes no progress meanwhile."""
        jobs = self.cells
        cost = self._seconds(Step.SAVING, job, now, self.costs.checkpoint)
        if job not in self._stalled:
            self._halt(job, now)
            jobs.progress_from[job], self._stalled[job] = math.inf, now
        jobs.runs[job] += 1
        limit = jobs.time_limit_seconds[job]
        if limit < math.inf:
            self.agenda.expect(jobs.start[job] + limit, Due.LIMIT, job)
        if cost > 0:
            self.agenda.expect(now + cost, Due.SAVED, job)
        else:
            self._saved(job, now)

    def _saved(self, job: int, now: float) -> None:
        jobs = self.cells
        jobs.saved[job], jobs.acknowledged[job], self.answered[job] = jobs.done[job], Answer.SAVED, now
        if self.manners.patience_seconds < math.inf:
            self.agenda.expect(now + self.manners.patience_seconds, Due.RESUMES, job)

    def _resume(self, job: int, now: float) -> None:
        """Let a job go on whose GPUs nobody took."""
        self._halt(job, now)
        self.cells.progress_from[job] = now
        self._expect_end(job)

    def _halt(self, job: int, now: float) -> None:
        """Halt a job: its progress up to now is done, and the time without any is counted as lost."""
        jobs = self.cells
        since, gpus = self._stalled.pop(job, None), jobs.gpus[job]
        if since is not None:
            self.tally.lost_gpu_seconds += (now - since) * gpus
            return
        more = now - jobs.progress_from[job]
        if more < 0:  # it did not live to see the end of its restart, all of which was counted
            self.tally.lost_gpu_seconds += more * gpus
        else:
            jobs.done[job] = min(jobs.done[job] + more * jobs.rate[job], jobs.work[job])

    # -- ending -----------------------------------------------------------------------------------------------

    def end(self, job: int, now: float) -> None:
        """End a job that has done its work. In Gavel's rounds its GPUs stay with it until the round is over."""
        self.cells.done[job] = self.cells.saved[job] = self.cells.work[job]
        over = now
        if self._round:
            over = math.ceil((now - self._began) / self._round) * self._round + self._began
        self._then[job] = COMPLETED
        self._vacate(job, now, over)

    def leave(self, job: int, now: float, word: str) -> None:
        """End a job before its work is done: cancelled, or out of time."""
        self._halt(job, now)
        self._then[job] = word
        self._vacate(job, now, now)

    def stop(self, job: int, now: float, word: str = REQUEUED, at_once: bool = False) -> None:
        """Off its GPUs; if it lives on, back into the queue with what it saved."""
        jobs = self.cells
        self._halt(job, now)
        undone = (jobs.done[job] - jobs.saved[job]) / jobs.rate[job]
        self.tally.lost_gpu_seconds += undone * jobs.gpus[job]
        self._then[job] = word
        jobs.restarts[job] += self._lives_on(job)
        self._vacate(job, now, now, at_once)

    def _lives_on(self, job: int) -> bool:
        word = self._then[job]
        return word == REQUEUED or (word == NODE_FAIL and self.cells.requeueable[job])

    def _vacate(self, job: int, now: float, over: float, at_once: bool = False) -> None:
        """Free a job's GPUs at `over`, later if it is slow to leave."""
        jobs, costs, after = self.cells, self.costs, 0.0
        if self._then[job] == REQUEUED:
            step, usual = Step.RETURNING, costs.returning
            after = self._seconds(Step.STOPPING, job, now, costs.stopping)
        else:
            step, usual = Step.LEAVING, costs.leaving
        slow = self._seconds(step, job, now, self.odd.leaves_in.get(job, usual))
        jobs.runs[job] += 1
        jobs.end[job] = self._as_shown(now + after)
        leaves = max(over, now if at_once else now + slow)
        if leaves > now:
            jobs.state[job] = JobState.ENDING
            self.agenda.expect(leaves, Due.LEAVES, job)
        else:
            self._gone(job, now)

    def _gone(self, job: int, now: float) -> None:
        jobs, lives_on = self.cells, self._lives_on(job)
        word = self._then.pop(job)
        jobs.runs[job] += 1
        # As in Slurm's accounting a run is over when its job begins to leave, not when it has left.
        self.tally.held_gpu_seconds += jobs.gpus[job] * (jobs.end[job] - jobs.start[job])
        if self.books is not None:
            self.books.ends(job, word, lives_on)
        self.floor.leave(job)
        jobs.stopped_at[job] = now
        if lives_on:
            self._back_into_the_queue(job, now, ours=word == REQUEUED or jobs.pinned[job])
        else:
            jobs.state[job], self.over[job] = JobState.DONE, word
        self.start_waiting(now)

    def _back_into_the_queue(self, job: int, now: float, ours: bool) -> None:
        """Behind our gate if it was ours, else as plain as it was."""
        jobs, delay = self.cells, self.costs.requeue_delay
        jobs.done[job] = jobs.saved[job]
        jobs.state[job], jobs.acknowledged[job] = JobState.WAITING, Answer.NONE
        jobs.start[job], jobs.end[job], jobs.submit[job] = 0.0, 0.0, self._as_shown(now)
        jobs.gpus[job] = jobs.usual_gpus[job]
        jobs.pinned[job] = False
        if self.population.gpu_weights is not None:
            jobs.gpu_weight[job] = self.population.asked_weights.item(jobs.gpu_type[job])
        self.answered.pop(job, None)
        jobs.eligible_at[job] = now + delay
        if ours:
            begin = self.manners.gate == Gate.BEGIN
            self.close(job, now + REQUEUE_GATE_SECONDS if begin else math.inf, now)
        if delay > 0:
            jobs.blocked[job] = Blocked.REQUEUED
            self.agenda.expect(now + delay, Due.ELIGIBLE, job)
        if not ours:
            self.reconsider(job, now)

    # -- gates ------------------------------------------------------------------------------------------------

    def close(self, job: int, until: float, now: float) -> None:
        """Behind our gate; one that is no hold opens by itself."""
        jobs = self.cells
        self.forget(job)
        self.plain.discard(job)
        jobs.gated[job], jobs.pinned[job] = True, False
        jobs.gate_until[job], jobs.gate_set[job] = until, now
        if until < math.inf:
            self.agenda.expect(until, Due.OPENS, job)

    def forget(self, job: int) -> None:
        """It waits for no nodes any more, and has its usual size again."""
        self.pinned.pop(job, None)
        self.granted.pop(job, None)

    def drop(self, job: int, now: float, word: str) -> None:
        """A waiting job is over."""
        self.forget(job)
        self.plain.discard(job)
        self.cells.state[job], self.cells.end[job] = JobState.DONE, self._as_shown(now)
        self.cells.runs[job] += 1
        self.over[job] = word

    def redirect(self, job: int, word: str) -> None:
        """A job on its way out becomes something else than it was to be."""
        if job in self._then and self._lives_on(job):
            self._then[job] = word
