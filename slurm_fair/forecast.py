"""Forecast of starts: it plays the policy some leases ahead, on what is known now.

Nobody new comes, every job that runs ends when it says or at its time limit, and what cannot be asked to give way
keeps its GPUs until then. What follows later than the last instant played is not known: "not before" that instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np

from slurm_fair.looks.ends import next_decision_on_leases
from slurm_fair.model import (
    Blocked,
    JobState,
    JobTable,
    LeasePhase,
    Leases,
    LeaseTerms,
    Placement,
    Snapshot,
    Standing,
    TickRecord,
)
from slurm_fair.model.columns import Bools, Floats, Ints, find, ranks, take_or
from slurm_fair.model.gpu_weight import of_jobs
from slurm_fair.model.latest_starts import latest_starts
from slurm_fair.model.sizes import with_gangs
from slurm_fair.policy.protocol import QuickPolicy, solves
from slurm_fair.reconcile import apply_plan
from slurm_fair.tick import InThisProcess, Rules, decide, prepare

_MOMENT = 1e-3
# A waiting job may come to be free to start by itself, and it is known when; of other blocked jobs nobody knows.
_PASSES = (Blocked.ARRAY_LIMIT, Blocked.UNSETTLED, Blocked.BACKOFF, Blocked.REQUEUED, Blocked.KEPT)
_PLANNED = (Blocked.NOT_BLOCKED, Blocked.OWN_BEGIN, *_PASSES)


@dataclass(frozen=True, slots=True)
class ForecastBounds:
    """The most looks, jobs and seconds for which the policy is played ahead."""

    seconds: float = 2.0  # of our own time
    looks: int = 1600  # each end of a lease is one, and renewed ones end often
    jobs: int = 20_000  # waiting ones, the first by rank
    ahead_seconds: float = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected starts by key, and for the others until when they do not start."""

    starts: Mapping[int, float] = field(default_factory=dict)
    not_before: Mapping[int, float] = field(default_factory=dict)
    looks: int = 0


class _Still:
    """A clock that stands: nothing that is played is late."""

    def __init__(self, instant: float) -> None:
        self._instant = instant

    def now(self) -> float:
        return self._instant

    def sleep_until(self, instant: float) -> None: ...


def forecast(
    record: TickRecord,
    standing: Standing,
    rules: Rules,
    bounds: ForecastBounds | None = None,
    clock: Callable[[], float] = monotonic,
) -> Forecast:
    """The starts expected after one tick; none where nobody waits or the policy fails."""
    bounds = bounds or ForecastBounds()
    world, quick = _World.of(record, standing, bounds.jobs), _quick(rules)
    if quick is None or not world.hopes.any():
        return Forecast()
    stop, end = clock() + bounds.seconds, record.time + bounds.ahead_seconds
    looks, due = 0, world.next_look()
    while looks < bounds.looks and due <= end and clock() < stop and world.hopes.any():
        world.come_to(due)
        if world.hopes.any() and not world.decide(quick):
            break
        looks, due = looks + 1, world.next_look()
    return world.estimated(min(due, end), looks)


def _quick(rules: Rules) -> Rules | None:
    """The rules by which a policy is played: one that solves by its quick plans, and not at all without them."""
    policy = rules.policy
    if not solves(policy):
        return rules
    return (
        replace(rules, planner=InThisProcess(policy.quick_plan)) if isinstance(policy, QuickPolicy) else None
    )


@dataclass(slots=True)
class _World:
    """The cluster as it may become: rows stay those of the snapshot that it began with."""

    snapshot: Snapshot
    standing: Standing
    terms: LeaseTerms
    switch: float  # seconds from a request to give way until the next job runs
    left: Floats  # of each job, until it ends by itself once it runs; inf = not known
    fresh: Floats  # the same for a new run of a job that does not say what it has done
    hopes: Bools  # rows that have no start yet and may get one
    later: Bools  # rows that wait behind so many others that they are not played
    starts: dict[int, float]
    changed: bool = True  # a gate is about to open, or a job to leave

    @classmethod
    def of(cls, record: TickRecord, standing: Standing, most: int) -> _World:
        """The world as it stands after a tick."""
        seen, terms = record.snapshot, record.terms
        jobs, leased = seen.jobs, find(standing.leases.key, seen.jobs.key) >= 0
        ends = jobs.waiting & (latest_starts(seen) < record.time)  # Slurm starts none of these
        free = jobs.waiting & np.isin(jobs.blocked, _PLANNED) & ~ends
        later = free & ~leased & (_place(record, free) >= most)
        left, fresh = _left(seen)
        left /= _speed(seen)
        snapshot = replace(
            seen,
            left_alone=(),
            to_free=(),
            resized=(),
            jobs=jobs.with_columns(blocked=_blocked(seen, later | ends)),
        )
        return cls(
            snapshot,
            standing._replace(asked_for={}, left_over=0),
            terms,
            min(terms.grace, terms.interval),
            left,
            fresh,
            free & ~later,
            later,
            {},
        )

    @property
    def now(self) -> float:
        return self.snapshot.time

    def next_look(self) -> float:
        """The next instant at which something may change."""
        now, term, jobs = self.now, self.terms.term, self.snapshot.jobs
        if self.changed:
            return now + self.switch
        running = jobs.running
        leases = self.standing.leases
        end = next_decision_on_leases(self.standing, self.terms, leases.running, now + _MOMENT)
        begins = jobs.gate_until[(jobs.blocked == Blocked.OWN_BEGIN) & self.hopes]
        over = now + self.left[running]
        ahead = np.concatenate((begins[begins > now], over[over > now + _MOMENT]))
        regular = (math.floor(now / term) + 1) * term
        return float(min(ahead.min(initial=math.inf), end, regular))

    def come_to(self, instant: float) -> None:
        """Jobs that are over end, those that were asked leave, and those that were promised GPUs start."""
        jobs, leases = self.snapshot.jobs, self.standing.leases
        passed, runs = instant - self.now, jobs.running
        self.left[runs] -= passed
        over = runs & (self.left <= _MOMENT)
        lease = find(leases.key, jobs.key)
        phase = take_or(leases.phase, lease, -1)
        leaves = runs & ~over & (phase == LeasePhase.REVOKING)
        begins = jobs.waiting & (phase == LeasePhase.GRANTED)
        for row in (begins & self.hopes).nonzero()[0].tolist():
            self.starts.setdefault(jobs.key.item(row), instant)
        self.hopes &= ~begins
        self.left *= _speed(self.snapshot)
        self.left[leaves] = np.where(np.isfinite(self.fresh[leaves]), self.fresh[leaves], self.left[leaves])
        self.snapshot = self._moved(instant, over, leaves, begins, leases)
        self.left /= _speed(self.snapshot)

    def _moved(self, instant: float, over: Bools, leaves: Bools, begins: Bools, leases: Leases) -> Snapshot:
        seen, jobs = self.snapshot, self.snapshot.jobs
        state, blocked = jobs.state.copy(), jobs.blocked.copy()
        state[over], state[leaves], state[begins] = JobState.DONE, JobState.WAITING, JobState.RUNNING
        blocked[(blocked == Blocked.OWN_BEGIN) & (jobs.gate_until <= instant)] = Blocked.NOT_BLOCKED
        moved = jobs.with_columns(
            state=state,
            blocked=blocked,
            restarts=jobs.restarts + leaves,
            submit=np.where(leaves, instant, jobs.submit),
            start=np.where(begins, instant, np.where(leaves, 0.0, jobs.start)),
            end=np.where(over, instant, jobs.end),
            gated=(jobs.gated | leaves) & ~begins,
        )
        gone = over | leaves
        held = seen.held.take(~gone[seen.held.row]).plus(_places(begins, leases, seen))
        if seen.sizes is not None:
            moved = with_gangs(moved, seen.sizes, _gangs(moved, held))
        if seen.gpu_weights is not None:
            weighed = of_jobs(seen.gpu_weights, seen.nodes, held, moved.gpu_type)
            moved = moved.with_columns(gpu_weight=np.where(over, moved.gpu_weight, weighed))
        return replace(seen, time=instant, jobs=moved, held=held)

    def decide(self, rules: Rules) -> bool:
        """One look of the controller; False when the policy could not say what follows."""
        ready = prepare(self.standing, self.snapshot, rules, wants=())
        plan = decide(ready.view, rules, _Still(self.now), in_full=False)
        if not plan.is_own:
            return False
        leases, _ = apply_plan(
            ready.standing.leases,
            plan,
            ready.snapshot,
            rules.terms,
            self.now,
            tell_all=False,
            tell_why=False,
        )
        self.standing = ready.standing._replace(leases=leases, memory=plan.memory, asked_for={})
        self.changed = bool((~leases.running).any())
        return True

    def estimated(self, until: float, looks: int) -> Forecast:
        """The starts that were seen, and until when the others did not start."""
        waits = (self.hopes | self.later) & self.snapshot.jobs.waiting
        keys = self.snapshot.jobs.key[waits].tolist()
        return Forecast(self.starts, dict.fromkeys(keys, until), looks)


def _place(record: TickRecord, free: Bools) -> Ints:
    """Places in the line of those that are free to start; those without a rank go last."""
    rank = np.where(record.plan.explanation.rank >= 0, record.plan.explanation.rank, np.iinfo(np.int64).max)
    order = np.lexsort((record.snapshot.jobs.key, rank, ~free))
    return ranks(len(order), order)


def _blocked(seen: Snapshot, later: Bools) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """The obstacle of each job: none where it passes soon, UNSETTLED for jobs that are not played."""
    passes = np.isin(seen.jobs.blocked, _PASSES)
    # Our gate stands in the place of a begin time that is less than two intervals ahead.
    passes |= (seen.jobs.blocked == Blocked.OWN_BEGIN) & seen.jobs.gated
    blocked = np.where(passes, np.int8(Blocked.NOT_BLOCKED), seen.jobs.blocked)
    return np.where(later, np.int8(Blocked.UNSETTLED), blocked).astype(np.int8)


def _left(seen: Snapshot) -> tuple[Floats, Floats]:
    """Seconds until each job ends once it runs on, and those of a new run where only a time limit is known."""
    jobs = seen.jobs
    limit, ran = jobs.time_limit_seconds, np.where(jobs.running, seen.time - jobs.start, 0.0)
    said = np.full(len(jobs), np.nan) if seen.told is None else seen.told.left_seconds
    if seen.told is not None:
        declared = seen.told.declared_seconds - np.where(np.isnan(said), ran, 0.0)
        said = np.where(np.isnan(said), declared, said)
    known = np.isfinite(said)
    left = np.where(known, np.minimum(np.maximum(said, 1.0), limit - ran), limit - ran)
    return np.maximum(left, 1.0), np.where(known, np.inf, limit)


def _places(begins: Bools, leases: Leases, seen: Snapshot) -> Placement:
    """The GPUs promised to those that begin, by this snapshot's numbers of jobs and nodes."""
    return leases.promises_by(seen.jobs.key, seen.nodes.names).only(begins.nonzero()[0])


def _gangs(jobs: JobTable, held: Placement) -> Ints:
    """The gang of each job: what a running one holds, else its usual size."""
    here = np.bincount(held.row, held.gpus, len(jobs)).astype(np.int64)
    return np.where(here > 0, here, np.where(jobs.done, jobs.gpus, jobs.usual_gpus))


def _speed(seen: Snapshot) -> Floats:
    """Speed of each job with the gang that it has, against that with its usual size: in proportion."""
    jobs = seen.jobs
    return np.ones(len(jobs)) if seen.sizes is None else jobs.gpus / np.maximum(jobs.usual_gpus, 1)
