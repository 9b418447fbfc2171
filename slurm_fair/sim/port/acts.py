"""A controller's acts on a virtual cluster: each is carried out as far as it still applies."""

from __future__ import annotations

import math
from collections.abc import Iterable

from slurm_fair.model import Action, Blocked, Gate, JobState, Outcome, Result, Verb
from slurm_fair.model.action import ANSWERED, STOPS
from slurm_fair.sim.scenario import Hitch
from slurm_fair.sim.world.job_ids import Roster
from slurm_fair.sim.world.life import Life

_MAY_OPEN = (Blocked.NOT_BLOCKED, Blocked.REQUEUED)


class Acts:
    """The verbs of the Cluster port."""

    def __init__(self, life: Life, roster: Roster) -> None:
        self._life, self._roster, self._cells = life, roster, life.cells

    def do(self, action: Action, now: float) -> Outcome:
        if action.whole_record:
            return self._to_all(action, now)
        job = self._roster.row(action.key)
        if job < 0:
            return Outcome(action, Result.REFUSED, "no such job")
        wrong = self._objection(action, job)
        if wrong:
            return Outcome(action, Result.REFUSED, wrong)
        hitches = self._life.manners.hitches
        hitch = hitches(action) if hitches else None
        if hitch:
            return self._hampered(action, job, now, hitch)
        result, detail = self._done_to(action, job, now)
        return Outcome(action, result, detail)

    def requeues_of_answered(self, outcomes: Iterable[Outcome], now: float) -> list[Action]:
        """Requeues of jobs that were asked now and have answered."""
        answered = self._life.answered
        if not answered:
            return []
        asked = [o.action for o in outcomes if o.action.verb is Verb.ASK and o.result is Result.DONE]
        at_once = [a for a in asked if answered.get(self._roster.row(a.key), -math.inf) == now]
        return [action._replace(verb=Verb.REQUEUE, why=ANSWERED) for action in at_once]

    def _hampered(self, action: Action, job: int, now: float, hitch: Hitch) -> Outcome:
        """Refused though nothing speaks against it, or done or not without an answer."""
        if hitch in (Hitch.NEVER, Hitch.LATER):
            return Outcome(action, Result.REFUSED, "refused", later=hitch is Hitch.LATER)
        if hitch is Hitch.UNHEARD:
            self._done_to(action, job, now)
        return Outcome(action, Result.UNKNOWN, "no answer")

    def _to_all(self, action: Action, now: float) -> Outcome:
        """Act on the waiting tasks of an array that share one record."""
        tasks = [
            job for job in self._roster.tasks_of(action.record) if self._cells.state[job] == JobState.WAITING
        ]
        if not tasks:
            return Outcome(action, Result.REFUSED, "no task of it waits")
        wrong = self._objection(action, tasks[0])
        if wrong or action.verb not in (Verb.CLOSE, Verb.FREE):
            return Outcome(action, Result.REFUSED, wrong or "no nodes are named for it")
        for job in tasks:
            self._done_to(action, job, now)
        return Outcome(action, Result.DONE)

    def _objection(self, action: Action, job: int) -> str:
        jobs = self._cells
        if jobs.submit[job] != action.submit or jobs.restarts[job] != action.restarts:
            return "it is not the run that this was decided for"
        wanted = JobState.RUNNING if action.verb in STOPS else JobState.WAITING
        return "" if jobs.state[job] == wanted else f"it is {JobState(jobs.state[job]).name.lower()}"

    def _done_to(self, action: Action, job: int, now: float) -> tuple[Result, str]:
        verb = action.verb
        if verb is Verb.OPEN:
            return self._open(job, action, now)
        if verb is Verb.REQUEUE:
            return self._requeue(job, now)
        if verb is Verb.ASK:
            self._life.ask(job, now)
        elif verb is Verb.CLOSE:
            self._close(job, action.until, now)
        else:
            self._free(job, now)
        return Result.DONE, ""

    def _open(self, job: int, action: Action, now: float) -> tuple[Result, str]:
        life, jobs, names, gpus = self._life, self._cells, action.nodes, action.gpus
        if jobs.blocked[job] not in _MAY_OPEN:
            return Result.REFUSED, "somebody keeps it back"
        nodes = tuple([life.floor.names.get(name, -1) for name in names])
        if not nodes or -1 in nodes:
            return Result.REFUSED, "no node of that name" if nodes else "no nodes are named for it"
        if gpus and gpus != jobs.usual_gpus[job] and not life.population.elastic.allows(job, gpus):
            return Result.REFUSED, f"it cannot run with {gpus} GPUs"
        self._roster.split(job)
        life.plain.discard(job)
        life.granted.pop(job, None)
        if gpus and gpus != jobs.usual_gpus[job]:
            life.granted[job] = gpus
        jobs.gated[job], jobs.gate_until[job], jobs.pinned[job] = False, 0.0, True
        life.let_in(job, nodes, now)
        return Result.DONE, ""

    def _requeue(self, job: int, now: float) -> tuple[Result, str]:
        if not self._cells.requeueable[job]:
            return Result.REFUSED, "it may not be requeued"
        self._cells.preemptions[job] += 1
        self._life.tally.preemptions += 1
        self._life.stop(job, now)
        return Result.DONE, ""

    def _close(self, job: int, until: float, now: float) -> None:
        """A begin gate takes the place of its user's begin time, a hold leaves it as it is."""
        life = self._life
        begin = life.manners.gate == Gate.BEGIN
        if begin:
            life.odd.begins.pop(job, None)
        life.close(job, until if begin else math.inf, now)
        if self._cells.blocked[job] == Blocked.OWN_BEGIN:
            life.reconsider(job, now)

    def _free(self, job: int, now: float) -> None:
        life, jobs = self._life, self._cells
        life.forget(job)
        jobs.gated[job], jobs.pinned[job], jobs.gate_set[job] = False, False, 0.0
        life.reconsider(job, now)
