"""A controller that is shown one snapshot after another, for tests of single ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from slurm_fair.dry_run import DryRun
from slurm_fair.model import (
    Action,
    Blind,
    EventKind,
    JobState,
    LeaseTerms,
    Outcome,
    Result,
    Snapshot,
    Standing,
    label,
)
from slurm_fair.policy import Policy
from slurm_fair.policy.profiling import Profiling
from slurm_fair.ports import Cluster
from slurm_fair.reconcile import Limits
from slurm_fair.tick import Rules, Stopwatch, TickDone, tick
from slurm_fair_plugins.astraea import Astraea
from tests.support.builders import JobSpec, job, snapshot
from tests.support.fake_cluster import MemoryJournal
from tests.support.fake_slurm import PushedClock

BEGAN = 9000.0
TERMS = LeaseTerms(term=900.0, interval=10.0, grace=60.0, start_timeout=60.0)
RUNNING, WAITING, DONE = JobState.RUNNING, JobState.WAITING, JobState.DONE
Judge = Callable[[Action], Result]


@dataclass
class StubCluster:
    """Shows what it is told to, and notes what is done."""

    acts: ClassVar[bool] = True
    shown: list[Snapshot | Blind] = field(default_factory=list)
    judge: Judge = lambda action: Result.DONE
    asked: list[Mapping[int, float]] = field(default_factory=list)
    done: list[Action] = field(default_factory=list)

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        self.asked.append(asked)
        return self.shown.pop(0)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        self.done += actions
        return tuple(Outcome(action, self.judge(action), "because") for action in actions)


@dataclass
class TickBench:
    """A controller that is shown one snapshot after another."""

    policy: Policy = field(default_factory=Astraea)
    judge: Judge = lambda action: Result.DONE
    terms: LeaseTerms = TERMS
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    plan_limit_seconds: float = 30.0
    profiling: Profiling | None = None

    def __post_init__(self) -> None:
        self.clock, self.journal = PushedClock(BEGAN), MemoryJournal()
        self.cluster = StubCluster(judge=self.judge)
        self.standing = Standing.new(BEGAN)

    def see(self, *jobs: JobSpec, after: float = 10.0, gpus: int = 8) -> TickDone:
        """A look at these jobs."""
        self.clock.advance(after)
        return self.look(snapshot(time=self.clock.now(), nodes={"n1": gpus}, jobs=jobs))

    def look(self, sight: Snapshot | Blind) -> TickDone:
        """A look at anything."""
        rules = Rules(
            "test",
            self.policy,
            {},
            self.terms,
            limits=self.limits,
            plan_limit_seconds=self.plan_limit_seconds,
            profiling=self.profiling,
        )
        self.cluster.shown.append(sight)
        self.cluster.done.clear()
        watch = Stopwatch(self.clock.now)
        cluster: Cluster = DryRun(self.cluster) if self.dry_run else self.cluster
        done = tick(cluster, self.clock, self.journal, rules, self.standing, watch)
        self.standing = done.standing
        return done

    def acts(self) -> list[str]:
        """The acts of the last look."""
        return [f"{a.verb.value} {label(a.key)}" for a in self.cluster.done]


def gated(base: int, **columns: Any) -> JobSpec:
    """A job behind a gate that holds."""
    return job(base, **({"gpus": 4, "gated": True, "gate_until": 1e9, "submit": BEGAN} | columns))


def running(base: int, start: float, **columns: Any) -> JobSpec:
    """A job that runs on the one node."""
    return job(base, **({"gpus": 4, "state": RUNNING, "start": start, "submit": BEGAN} | columns))


def kinds(done: TickDone) -> list[tuple[str, int]]:
    """Events of jobs in one tick."""
    assert done.record is not None
    return [(event.kind, event.key >> 23) for event in done.record.events if event.kind != EventKind.CAPACITY]
