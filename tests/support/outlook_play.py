"""A virtual cluster under a controller, with plain jobs and gangs, and what was expected of every start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.forecast import forecast
from slurm_fair.model import JobState, LeasePhase, LeaseTerms, Standing, TickRecord, Verdict
from slurm_fair.ports import EVERYTHING
from slurm_fair.reconcile import Limits
from slurm_fair.sim import Submission
from slurm_fair.tick import Rules, Stopwatch, tick
from slurm_fair_plugins.astraea import Astraea
from tests.support.virtual_scene import T0, Scene

TERMS = LeaseTerms(term=600.0, interval=10.0, grace=60.0)
NO_LIMITS = Limits(revokes=10**9, opens=10**9, closes=10**9, shrink_alarm=2.0)
RULES = Rules("astraea", Astraea(), {}, TERMS, limits=NO_LIMITS)
Rule = Callable[[TickRecord, Standing], Mapping[int, float]]


class Kept:
    """A journal of the last tick."""

    wants = EVERYTHING

    def __init__(self) -> None:
        self.record: TickRecord | None = None

    def append(self, record: TickRecord, standing: Standing) -> None:
        """The one that was last."""
        self.record = record

    def latest(self) -> Standing | None:
        return None

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        return iter(())


def whole_turns(record: TickRecord, standing: Standing) -> dict[int, float]:
    """The rule of the first release: the next lease end, and a lease for each turn of the whole cluster ahead."""
    plan, jobs = record.plan, record.snapshot.jobs
    running = standing.leases.end[standing.leases.phase == LeasePhase.RUNNING]
    first = float(running.min()) if len(running) else record.time
    ranked = np.flatnonzero((plan.explanation.rank >= 0) & (plan.verdict == Verdict.WAIT))
    ranked = ranked[np.argsort(plan.explanation.rank[ranked])]
    ahead = np.cumsum(jobs.gpus[ranked]) - jobs.gpus[ranked]
    turns = ahead // max(record.snapshot.total_gpus, 1)
    starts = np.maximum(first, record.time) + turns * record.terms.term
    return dict(zip(jobs.key[ranked].tolist(), starts.tolist(), strict=True))


def played(record: TickRecord, standing: Standing) -> dict[int, float]:
    """The policy played ahead."""
    return dict(forecast(record, standing, RULES).starts)


@dataclass
class Play:
    """Jobs submitted at instants; of each job the first estimates by two rules, and when it started."""

    scene: Scene
    submissions: Sequence[tuple[float, Submission]]
    rules: Mapping[str, Rule]
    first: dict[str, dict[int, float]] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)

    def run(self, seconds: float) -> Play:
        standing, journal, ahead = Standing.new(T0), Kept(), list(self.submissions)
        for at in range(0, int(seconds) + 1, int(TERMS.interval)):
            self.scene.at(at)
            while ahead and ahead[0][0] <= at:
                self.scene.hands.submit(ahead.pop(0)[1])
            done = tick(
                self.scene.cluster, self.scene.clock, journal, RULES, standing, Stopwatch(lambda: 0.0)
            )
            standing = done.standing
            if journal.record is not None:
                self._note(journal.record, standing)
        return self

    def _note(self, record: TickRecord, standing: Standing) -> None:
        for event in record.events:
            if event.kind == "started":
                self.started.setdefault(event.key, event.time)
        jobs = record.snapshot.jobs
        waits = jobs.key[(jobs.state == JobState.WAITING) & (record.plan.verdict == Verdict.WAIT)].tolist()
        new = [key for key in waits if any(key not in self.first.get(name, {}) for name in self.rules)]
        if not new:
            return
        for name, rule in self.rules.items():
            said = rule(record, standing)
            for key in new:
                if key in said:
                    self.first.setdefault(name, {}).setdefault(key, said[key])

    def errors(self, name: str) -> list[float]:
        """Seconds by which each first estimate was off; of jobs that started and were estimated by all rules."""
        both = set.intersection(*(set(self.first[rule]) for rule in self.rules)) & set(self.started)
        return [abs(self.started[key] - self.first[name][key]) for key in sorted(both)]


def busy(seed: int) -> list[tuple[float, Submission]]:
    """Three tenants on 32 GPUs: plain jobs that nobody can ask, gangs of up to the whole, and small jobs."""
    dice, jobs = np.random.default_rng(seed), []
    for tenant, seconds in (("nlp", 3000.0), ("vision", 3600.0), ("speech", 4200.0)):  # each its own share
        plain = Submission(gpus=8, seconds=seconds, tenant=tenant, checkpoints=False, time_limit=seconds)
        jobs.append((0.0, plain))
    for _ in range(30):
        at, gpus = float(dice.integers(0, 7200)), int(dice.choice([1, 2, 4, 8, 8, 16, 32]))
        seconds, tenant = float(dice.integers(600, 5400)), str(dice.choice(["vision", "speech", "nlp"]))
        job = Submission(
            gpus=gpus,
            seconds=seconds,
            tenant=tenant,
            nodes=max(1, gpus // 8),
            checkpoints=bool(dice.random() < 0.8),
            time_limit=seconds,
        )
        jobs.append((at, job))
    return sorted(jobs, key=lambda each: each[0])
