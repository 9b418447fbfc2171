"""The scenario of a simulation: jobs, machines, and the cost of a change of hands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

import numpy as np

from slurm_fair.ledger.settings import ReportShare
from slurm_fair.model import Action, Gate
from slurm_fair.model.columns import Floats
from slurm_fair.model.gpu_weight import GpuWeights
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.sim.plain_jobs import NO_PLAIN_JOBS, PlainJobs
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import JobRegimes, Machines, Throughputs, Trace

Speeds = Literal["known", "learned", "profiled"]


class NodeEvent(Enum):
    """A change of a node's state."""

    DRAIN = "drain"  # takes no new work; what runs there runs on
    DOWN = "down"  # what runs there is lost since its last checkpoint, and requeued
    UP = "up"


@dataclass(frozen=True, slots=True)
class Outage:
    """A node event at an instant, in seconds since the trace's beginning."""

    time_s: float
    node: str
    event: NodeEvent


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that a start and a change of hands cost."""

    checkpoint: float = 0.0  # from the request until the job has saved; no progress meanwhile
    restart: float = 0.0  # what a run that resumes needs beyond a first one until it makes progress
    requeue_delay: float = 0.0  # from a requeue until Slurm would start the job again (its default is 120)
    start: float = 0.0  # from the start of any run until it makes progress
    hearing: float = 0.0  # from the request until the job has heard of it; it makes progress meanwhile
    opening: float = 0.0  # from an opened gate until Slurm starts the job; nobody holds its GPUs meanwhile
    stopping: float = 0.0  # from a requeue until accounting has the run as over
    returning: float = 0.0  # from a requeue until the job is back in the queue and its GPUs are free
    leaving: float = 0.0  # from the end of a job until its GPUs are free

    @property
    def of_one_change(self) -> float:
        """Seconds that one change of jobs costs; a job gets somewhere only in a longer lease."""
        return sum((self.hearing, self.checkpoint, self.returning, self.opening, self.start, self.restart))


class Step(Enum):
    """A part of a job's way to its GPUs and off them that takes time; Costs says what each is."""

    OPENING = "opening"
    START = "start"
    HEARING = "hearing"
    SAVING = "checkpoint"
    STOPPING = "stopping"
    RETURNING = "returning"
    LEAVING = "leaving"


class Takes(Protocol):
    """Seconds that a step takes, where it is not the same each time."""

    def __call__(self, step: Step, job: int, restarts: int, now: float) -> float:
        """Seconds; `job` is its row in the trace, `restarts` the number of its run, `now` when it begins."""


# GPUs by node that a look at an instant sees in use, and no job that holds them: nodes are read before jobs.
Unfreed = Callable[[float], Mapping[int, int]]


class Hitch(Enum):
    """A failure that may befall an act, though the look before it showed nothing against it."""

    NEVER = "never"  # refused for good: Slurm does not do that to this job
    LATER = "later"  # refused, and may be tried again
    LOST = "lost"  # nobody knows whether it was done, and it was not
    UNHEARD = "unheard"  # nobody knows whether it was done, and it was


@dataclass(frozen=True, slots=True)
class Manners:
    """Ways of a cluster and its jobs that do not matter to a simulation of a trace."""

    gate: Gate = Gate.HOLD  # what CLOSE sets
    lists_ended_seconds: float = 0.0  # how long a job that is over is still shown; 0 = once
    # How long a job that has saved waits for somebody to take its GPUs.
    patience_seconds: float = float("inf")
    hitches: Callable[[Action], Hitch | None] | None = None  # what befalls an act that still applies


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a simulation begins with."""

    trace: Trace
    machines: Machines
    costs: Costs = field(default_factory=Costs)
    weights: Mapping[str, float] = field(default_factory=dict)  # of tenants; 1 where nothing is said
    regimes: Mapping[str, JobRegimes] = field(default_factory=dict)
    throughputs: Throughputs | None = None
    outages: tuple[Outage, ...] = ()
    # `gavel`: GPUs of a job that ended stay idle until the round ends, and every job that did not run in the
    # round before loses the restart cost, also one that never ran.
    rounds: Literal["conserving", "gavel"] = "conserving"
    until_s: float = float("inf")  # seconds since the trace's beginning
    # What policies are told of the run time of a job whose user declared none: how long it runs, or nothing.
    undeclared: Literal["actual", "unknown"] = "actual"
    truthfulness: Truthfulness = field(default_factory=Truthfulness)
    plain_jobs: PlainJobs = NO_PLAIN_JOBS  # they cannot save
    report_share: ReportShare = "demand"
    gpu_weights: GpuWeights = field(default_factory=dict)  # by GPU type; 1 where nothing is said
    takes: Takes | None = None  # seconds of each step, in the place of what it costs as a rule
    unfreed: Unfreed | None = None  # GPUs that looks see in use though their jobs are gone
    whole_seconds: bool = False  # instants of submissions, starts and ends are told as Slurm tells them: cut
    # What policies are told of speeds on GPU types: all; only those on which a job of the class has run; the same,
    # and the profiler gives jobs turns on the others.
    speeds: Speeds = "known"
    # Speed of an elastic job by its size where that was not measured: this power of its GPUs.
    elastic_exponent: float = USUAL_EXPONENT

    @property
    def in_gavel_rounds(self) -> bool:
        """True where GPUs change hands only when a round ends."""
        return self.rounds == "gavel"

    def weights_of(self, tenants: Iterable[str]) -> Floats:
        return np.array([self.weights.get(name, 1.0) for name in tenants], dtype=np.float64)

    @property
    def declared_seconds_of_jobs(self) -> Floats:
        """Run time of each job as policies are told it; nan = they are not."""
        trace = self.trace
        known = trace.duration_s if self.undeclared == "actual" else np.full(len(trace), np.nan)
        return self.truthfulness.declared(
            trace, np.where(np.isnan(trace.declared_s), known, trace.declared_s)
        )

    @property
    def weight_sum(self) -> float:
        """The weights of those who count in quotas where all do: each with a job in the trace."""
        trace = self.trace
        return float(self.weights_of(trace.tenants[row] for row in np.unique(trace.tenant).tolist()).sum())
