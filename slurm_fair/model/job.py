"""The managed jobs as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Code, Codes, Columns, Floats, Ints


class JobState(Code):
    """The state of a job; Slurm's many words come down to these."""

    WAITING = 0
    RUNNING = 1
    ENDING = 2  # COMPLETING: its processes are gone or going, its GPUs are not free yet
    SUSPENDED = 3  # holds its GPUs (slurm-facts: suspend-keeps-gpus)
    DONE = 4  # completed, failed, cancelled: still listed, with its end time


class Blocked(Code):
    """The reason why a waiting job may not be planned; NOT_BLOCKED jobs may."""

    NOT_BLOCKED = 0
    USER_HOLD = 1
    ADMIN_HOLD = 2
    DEPENDENCY = 3
    OWN_BEGIN = 4  # the user's own --begin lies ahead
    ARRAY_LIMIT = 5  # the array's own %limit
    LIMIT = 6  # an association or QOS limit of Slurm
    PARTITION = 7  # partition down or closed
    SLURM_HOLD = 8  # held by Slurm itself after a failed launch, or too many requeues
    UNSETTLED = 9  # an act of ours has an unknown outcome: look again first
    IMPOSSIBLE = 10  # asks for more than the managed nodes can ever give
    SHAPE = 11  # its row cannot be read, so nothing can be planned (see LeftAlone)
    BACKOFF = 12  # Slurm did not start it when its gate was open; tried again later
    REQUEUED = 13  # requeued a moment ago: Slurm does not start it again yet
    NODES = 14  # the nodes that it may use could not take it now even if they were empty
    KEPT = 15  # it would need GPUs of jobs that cannot be asked to give way
    OWN_SHARE = 16  # it cannot be taken back, and its tenant's own share is used up by such work


# A job that its owner or an admin keeps back, or that asks for nothing yet, does not wait for GPUs.
KEPT_BACK = (
    Blocked.USER_HOLD,
    Blocked.ADMIN_HOLD,
    Blocked.DEPENDENCY,
    Blocked.OWN_BEGIN,
    Blocked.ARRAY_LIMIT,
    Blocked.SLURM_HOLD,
    Blocked.IMPOSSIBLE,
    Blocked.SHAPE,
)
# A job that could not run now even on an empty cluster waits, and claims no share: others run meanwhile.
CANNOT_START = (Blocked.LIMIT, Blocked.PARTITION, Blocked.BACKOFF, Blocked.NODES)
_IS_KEPT_BACK = np.isin(np.arange(max(Blocked) + 1), KEPT_BACK)
_CLAIMS_NOTHING = np.isin(np.arange(max(Blocked) + 1), KEPT_BACK + CANNOT_START)


class Answer(Code):
    """The answer of a run to the request under way."""

    NONE = 0
    SAVED = 1
    NOT_SAVED = 2  # it could not


@dataclass(frozen=True)
class JobTable(Columns):
    """One row per managed job or array task, sorted by key."""

    key: Ints
    record: Ints  # Slurm's own record id; tasks of one unsplit array share it
    submit: Floats  # SubmitTime; a requeue moves it
    restarts: Ints
    tenant: Ints  # index into Snapshot.tenants
    user: Ints  # index into Snapshot.users
    partition: Ints  # index into Snapshot.partitions
    state: Codes  # JobState
    blocked: Codes  # Blocked
    gated: Bools  # kept back by a gate of ours
    gate_until: Floats  # when it opens by itself: inf = held by us; of a user's own begin time too; 0 = none
    gate_set: Floats  # when we set the gate that only somebody else can have moved since; 0 = there is none
    pinned: Bools  # carries a node list of ours
    gpus: Ints  # the gang: of a job that runs what it holds
    usual_gpus: Ints  # the gang that its user asked for: an elastic job may hold more or fewer
    nodes: Ints  # how many nodes it wants at least
    most_nodes: Ints  # and at most; 0 = as many as it takes
    gpus_per_node: Ints  # 0 = any split
    gpu_type: Ints  # index into Snapshot.gpu_types, -1 = any
    cpus: Ints  # of the whole job
    memory_mb: Ints  # of the whole job
    start: Floats  # of this run; 0 while waiting
    end: Floats  # 0 while it lives
    time_limit_seconds: Floats  # inf = none
    checkpoints: Bools  # speaks the checkpoint protocol
    requeueable: Bools  # Slurm would requeue it, of a waiting job: once its first lease is over
    acknowledged: Codes  # Answer
    array_limit: Ints  # the array's %limit, 0 = none
    weight: Floats
    restartable: Bools  # may be requeued though it saves nothing: the site says so
    gpu_weight: Floats  # what each of its GPUs counts: of those it holds, else of those it asks for

    @property
    def active(self) -> Bools:
        """Jobs that claim a share now."""
        return self._living_but(_CLAIMS_NOTHING)

    @property
    def waits(self) -> Bools:
        """Jobs that wait for GPUs while they do not run: those that claim a share, and those that cannot start."""
        return self._living_but(_IS_KEPT_BACK)

    def _living_but(self, is_out: Bools) -> Bools:
        """Jobs that are not over, less those that wait and are blocked in one of these ways."""
        living: Bools = self.state != JobState.DONE.code
        if np.count_nonzero(self.blocked):
            living &= ~(self.waiting & is_out[self.blocked])
        return living

    @property
    def waiting(self) -> Bools:
        """Jobs in state WAITING."""
        there: Bools = self.state == JobState.WAITING.code
        return there

    @property
    def running(self) -> Bools:
        """Jobs in state RUNNING."""
        there: Bools = self.state == JobState.RUNNING.code
        return there

    @property
    def ending(self) -> Bools:
        """Jobs in state ENDING."""
        there: Bools = self.state == JobState.ENDING.code
        return there

    @property
    def suspended(self) -> Bools:
        """Jobs in state SUSPENDED."""
        there: Bools = self.state == JobState.SUSPENDED.code
        return there

    @property
    def done(self) -> Bools:
        """Jobs in state DONE, which Slurm still lists for a while."""
        there: Bools = self.state == JobState.DONE.code
        return there

    @property
    def revocable(self) -> Bools:
        """Jobs that can be taken off their GPUs when a lease is over."""
        return (self.checkpoints | self.restartable) & self.requeueable

    @property
    def unblocked(self) -> Bools:
        """Jobs that nothing but the want of GPUs keeps from starting."""
        return np.logical_not(self.blocked)  # NOT_BLOCKED is 0

    @property
    def holds_gpus(self) -> Bools:
        """Jobs whose GPUs are not free."""
        return (self.state >= JobState.RUNNING.code) & (self.state <= JobState.SUSPENDED.code)
