"""The parts of a fake Slurm: a clock, nodes, job records, and what a job does when it is let run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_fair.model.ids import pack
from slurm_fair.sim import VirtualClock

START = 1_800_000_000.0  # a multiple of every lease term that tests use
REQUEUE_DELAY_SECONDS = 121.0
MIN_JOB_AGE_SECONDS = 300.0
USER, ADMIN, REQUEUED_HELD = "JobHeldUser", "JobHeldAdmin", "job requeued in held state"
PENDING, RUNNING, COMPLETING = "PENDING", "RUNNING", "COMPLETING"
OVER = frozenset({"COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "DEADLINE"})


class PushedClock(VirtualClock):
    """The clock of simulations, which a test may push on by hand."""

    def __init__(self, now: float = START) -> None:
        super().__init__(now)

    def advance(self, seconds: float) -> None:
        self._now += seconds


@dataclass(slots=True)
class Machine:
    name: str
    gpus: int = 8
    others: int = 0  # GPUs held by jobs that are not ours to manage
    cpus: int = 64
    memory_mb: int = 512_000
    state: str = "idle"  # idle | drained | down
    partition: str = "gpu"
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """The acts of a job once it is let run."""

    seconds: float = math.inf
    checkpoints: bool = True
    answers_in: float = 0.5  # seconds from the request to the acknowledgement; inf = never
    saves: bool = True
    leaves_in: float = 0.1  # seconds of COMPLETING
    patience: float = 60.0  # seconds after which it goes on when nobody takes its GPUs


ENDLESS = Work()


@dataclass(slots=True)
class Record:
    """One of slurmctld's job records; `tasks` are those of an unsplit array."""

    number: int
    base: int
    task: int
    tasks: tuple[int, ...]
    gpus: int
    gpus_per_node: int
    nodes: int
    tenant: str
    partition: str
    comment: str
    requeue: bool
    work: Work
    submit: float
    eligible: float
    array_limit: int = 0
    scheduled: float = 0.0  # when Slurm last tried to start it
    deadline: float = 0.0
    time_limit: float = math.inf  # never enforced: only whether it fits before the deadline counts
    restarts: int = 0
    state: str = PENDING
    held: str = ""
    wanted: tuple[str, ...] = ()
    on: Mapping[str, int] = field(default_factory=dict)
    start: float = 0.0
    end: float = 0.0
    left_at: float = 0.0
    left: frozenset[str] = frozenset()
    next_state: str = ""  # what it becomes when COMPLETING is over
    gone_at: float = math.inf
    done: float = 0.0  # seconds of work, in this run's memory
    saved: float = 0.0  # seconds of work on disk
    counted_to: float = 0.0
    answer_at: float = math.inf
    answered: tuple[int, float, bool] = (-1, 0.0, False)  # restarts, time, saved
    waits_until: float = 0.0  # it has answered and makes no progress until then
    after: Record | None = None  # it does not start before that one has ended
    excluded: tuple[str, ...] = ()
    interactive: bool = False
    constraint: str = ""  # that the fake itself does not weigh
    raw: Mapping[str, str] = field(default_factory=dict)  # columns of listings that hold its user's own words

    @property
    def key(self) -> int:
        """The controller's key of a job or single task."""
        if self.tasks:
            raise AssertionError(f"record {self.number} is an unsplit array")
        return pack(self.base, self.task)

    @property
    def alive(self) -> bool:
        """Waiting, running or on its way out."""
        return self.state not in OVER

    def hold(self, by: str, now: float) -> None:
        """Somebody holds it: if it might have started, Slurm tried it till now and forgets its eligible time."""
        if not (self.held or self.depends) and self.eligible <= now:
            self.scheduled, self.eligible = float(int(now)), 0.0
        self.held = by

    @property
    def depends(self) -> bool:
        """True where it waits for another one's end."""
        return self.after is not None and self.after.alive

    @property
    def least_time(self) -> float:
        """Seconds that must fit before its deadline at a start; without a limit it gets what there is."""
        return self.time_limit if math.isfinite(self.time_limit) else 0.0

    @property
    def finishes_at(self) -> float:
        """The instant at which its work is done if nobody interferes."""
        if self.state != RUNNING:
            return math.inf
        return max(self.counted_to, self.waits_until) + self.work.seconds - self.done


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job, as the job itself would note it."""

    key: int
    restarts: int
    time: float
    on: Mapping[str, int]


def spread(record: Record, free: Mapping[str, int]) -> dict[str, int] | None:
    """The gang over these nodes, one filled after the other if no split is asked for; None = it does not fit."""
    names = list(free)
    if record.gpus_per_node:
        enough = len(names) * record.gpus_per_node == record.gpus
        share = dict.fromkeys(names, record.gpus_per_node)
        return share if enough and all(free[n] >= record.gpus_per_node for n in names) else None
    split, missing = {}, record.gpus
    for after, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
        split[name] = min(free[name], missing - after)
        missing -= split[name]
    fits = missing == 0 and all(here >= 1 for here in split.values())
    return split if fits else None
