"""Acts of users and admins on a virtual cluster, at any time and without asking the controller."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slurm_fair.errors import InputError
from slurm_fair.model import Blocked, JobState
from slurm_fair.model.end_words import CANCELLED, COMPLETED
from slurm_fair.sim.scenario import NodeEvent
from slurm_fair.sim.world.agenda import Due
from slurm_fair.sim.world.job_ids import Roster
from slurm_fair.sim.world.life import Life


@dataclass(frozen=True, slots=True)
class Submission:
    """A job as its user submits it; instants are those of the cluster's clock."""

    gpus: int = 1
    seconds: float = 600.0  # of work, with its gang well placed on the reference type
    tenant: str = "default"
    user: str = ""  # empty = called as its tenant
    nodes: int = 1
    most_nodes: int = 0  # 0 = as many as it takes
    gpus_per_node: int = 0  # 0 = any split
    gpu_type: str = ""  # empty = any
    tasks: tuple[int, ...] = ()  # of an array
    gated: bool = True
    gate_seconds: float = math.inf  # until a begin gate opens by itself
    begin: float = 0.0  # its user's own begin time
    checkpoints: bool = True
    requeueable: bool = True
    restartable: bool = False  # the site requeues it though it saves nothing
    reports: bool = True  # tells of its progress
    leaves_in: float = 0.0  # seconds from the end of a run until its GPUs are free
    deadline: float = math.inf
    time_limit: float = math.inf
    declared: float = math.nan  # run time that its user declares
    weight: float = 1.0  # of the job
    gpus_choices: tuple[int, ...] = ()  # further numbers of GPUs with which it can run


class UserActions:
    """Acts by hand on jobs, named by their keys. An act that a job's state does not allow does nothing."""

    def __init__(self, life: Life, roster: Roster, now: Callable[[], float]) -> None:
        self._life, self._roster, self._jobs, self._now = life, roster, life.jobs, now

    # -- users ------------------------------------------------------------------------------------------------

    def submit(self, job: Submission) -> int:
        """The number of the new job or array."""
        now, population = self._now(), self._life.population
        floor = self._life.floor
        if job.gpu_type and job.gpu_type not in population.gpu_types:
            raise InputError(f"no GPUs of type '{job.gpu_type}': there are {', '.join(population.gpu_types)}")
        if job.gpus > sum(floor.size):
            raise InputError(f"a job wants {job.gpus} GPUs and the cluster has {sum(floor.size)}")
        tenant, user = population.tenant(job.tenant), population.user(job.user or job.tenant)
        rows = population.add(max(len(job.tasks), 1), job.seconds)
        number = self._roster.name(rows, job.tasks)
        self._fill(rows, job, now)
        self._jobs.tenant[rows], self._jobs.user[rows] = tenant, user
        for row in range(rows.start, rows.stop):
            self._begin(row, job, now)
        return number

    def _fill(self, rows: slice, job: Submission, now: float) -> None:
        jobs, types = self._jobs, self._life.population.gpu_types
        jobs.gpus[rows], jobs.usual_gpus[rows] = job.gpus, job.gpus
        jobs.nodes[rows], jobs.gpus_per_node[rows] = job.nodes, job.gpus_per_node
        jobs.most_nodes[rows], jobs.at_home[rows] = job.most_nodes, job.nodes
        jobs.gpu_type[rows] = types.index(job.gpu_type) if job.gpu_type else -1
        jobs.gpu_weight[rows] = self._life.population.asked_weights[jobs.gpu_type[rows]]
        jobs.submit[rows], jobs.weight[rows] = now, job.weight
        jobs.scaling[rows] = math.nan
        jobs.time_limit_seconds[rows], jobs.deadline[rows] = job.time_limit, job.deadline
        jobs.checkpoints[rows], jobs.requeueable[rows] = job.checkpoints, job.requeueable
        jobs.restartable[rows], jobs.work[rows] = job.restartable, job.seconds
        jobs.declared[rows] = job.seconds if np.isnan(job.declared) else job.declared
        jobs.stopped_at[rows], jobs.model[rows] = -math.inf, -1
        if job.gpus_choices:
            sizes = tuple(sorted({job.gpus, *job.gpus_choices}))
            named = dict.fromkeys(range(rows.start, rows.stop), sizes)
            self._life.population.elastic.add(named, jobs.usual_gpus[: rows.stop])

    def _begin(self, row: int, job: Submission, now: float) -> None:
        """Behind our gate, or at once into the queue."""
        odd = self._life.odd
        odd.dated |= job.deadline < math.inf
        if job.leaves_in > 0:
            odd.leaves_in[row] = job.leaves_in
        if not job.reports:
            odd.silent.add(row)
        if job.begin > now:
            odd.begins[row] = job.begin
            self._life.agenda.expect(job.begin, Due.BEGINS, row)
        if job.gated:
            self._life.close(row, now + job.gate_seconds, now)
        self._life.reconsider(row, now)

    def cancel(self, key: int) -> None:
        now, row = self._now(), self._row(key)
        state = self._jobs.state[row]
        self._roster.split(row)
        if state == JobState.WAITING:
            self._life.drop(row, now, CANCELLED)
        elif state == JobState.RUNNING:
            self._life.leave(row, now, CANCELLED)
        elif state == JobState.ENDING:
            self._life.redirect(row, CANCELLED)
        self._life.start_waiting(now)

    def finish(self, key: int) -> None:
        """The running job ends by itself, earlier than it was to."""
        now, row = self._now(), self._row(key)
        if self._jobs.state[row] == JobState.RUNNING:
            self._life.leave(row, now, COMPLETED)

    def move_begin(self, key: int, instant: float) -> None:
        """A begin time of its user's own in place of whatever kept the waiting job."""
        now, row = self._now(), self._row(key)
        if self._jobs.state[row] == JobState.WAITING:
            self._jobs.cells.gated[row] = False
            self._life.odd.begins[row] = instant
            self._life.agenda.expect(instant, Due.BEGINS, row)
            self._life.reconsider(row, now)

    # -- users and admins -------------------------------------------------------------------------------------

    def hold(self, key: int, by_admin: bool = False) -> None:
        """Keep a job from being started until it is released."""
        now, row = self._now(), self._row(key)
        if self._jobs.state[row] != JobState.DONE:
            self._roster.split(row)
            self._life.odd.held[row] = Blocked.ADMIN_HOLD if by_admin else Blocked.USER_HOLD
            self._life.reconsider(row, now)

    def release(self, key: int) -> None:
        """An admin or user takes the hold away."""
        now, row = self._now(), self._row(key)
        self._life.odd.held.pop(row, None)
        self._life.reconsider(row, now)

    # -- admins and machines ----------------------------------------------------------------------------------

    def drain(self, node: str) -> None:
        """Drain a node: it takes no new work."""
        self._befall(node, NodeEvent.DRAIN)

    def fail(self, node: str) -> None:
        """Let a node fail: it is gone with everything on it."""
        self._befall(node, NodeEvent.DOWN)

    def resume(self, node: str) -> None:
        self._befall(node, NodeEvent.UP)

    def lend(self, node: str, gpus: int) -> None:
        """Jobs that are nobody's here take free GPUs of a node; negative = give some back."""
        now = self._now()
        self._life.floor.lend(self._node(node), gpus)
        self._life.note_size(now)
        self._life.start_waiting(now)

    def _befall(self, node: str, event: NodeEvent) -> None:
        self._node(node)
        self._life.befall(self._now(), node, event)

    def _node(self, name: str) -> int:
        try:
            return self._life.floor.names[name]
        except KeyError:
            raise InputError(f"no node '{name}' in the virtual cluster") from None

    def _row(self, key: int) -> int:
        row = self._roster.row(key)
        if row < 0:
            raise InputError(f"no job with key {key} in the virtual cluster")
        return row
