"""The ledger against a reference that counts quarter seconds one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import Gap, LedgerSettings, advance, fill_gap, fill_late, settle
from slurm_fair.model import Event, JobState, Ledger, RunTable, Snapshot, Unfilled, label
from tests.support.builders import JobSpec, RunSpec, job, run, runs, snapshot

BEGAN = 1000.0
FINISH = 1060.0
STEP = 0.25  # of the reference; polls and events lie on multiples of it
TENANTS = ("a", "b", "c")
LISTED_SECONDS = 15.0  # how long an ended job stays in the snapshots; polls are closer together


@dataclass(frozen=True)
class Life:
    """A job as it really was: every run but the last ended in a requeue."""

    base: int
    tenant: str
    gpus: int
    weight: float
    submit: float
    runs: tuple[tuple[float, float], ...]
    end: float  # inf = lives at the finish

    def incarnation(self, time: float) -> tuple[float, int]:
        """SubmitTime and Restarts as Slurm tells them."""
        over = [end for _, end in self.runs if end <= time and end < self.end]
        return (over[-1], len(over)) if over else (self.submit, 0)

    def had(self, since: float, until: float) -> float:
        return self.gpus * sum(max(0.0, min(e, until) - max(s, since)) for s, e in self.runs)


@dataclass(frozen=True)
class World:
    """Events that happen whether or not somebody looks."""

    lives: tuple[Life, ...]
    polls: tuple[float, ...]
    nodes: tuple[int, ...]  # GPUs as every poll finds them
    weights: dict[str, float]
    settings: LedgerSettings

    def look(self, time: float, gpus: int) -> Snapshot:
        """The cluster as Slurm shows it at one instant."""
        seen = {one.base: one for one in self.lives if one.submit <= time < one.end + LISTED_SECONDS}
        rows = [self._row(one, time) for one in seen.values()]
        return snapshot(time=time, nodes={"n1": gpus}, jobs=rows, weights=self.weights)

    def _row(self, life: Life, time: float) -> JobSpec:
        submit, restarts = life.incarnation(time)
        running = [start for start, end in life.runs if start <= time < end]
        start = running[0] if running else 0.0
        state = JobState.RUNNING if running else JobState.WAITING
        if life.end <= time:
            state = JobState.DONE
            start = life.runs[-1][0] if life.runs and life.runs[-1][1] == life.end else 0.0
        return job(
            life.base, tenant=life.tenant, gpus=life.gpus, weight=life.weight, submit=submit, on={},
            restarts=restarts, state=state, start=start, end=life.end if state == JobState.DONE else 0.0,
        )  # fmt: skip

    def accounting(self, at: float = FINISH) -> RunTable:
        """Every run until an instant, and the waits that have no run yet."""
        rows: list[RunSpec] = []
        for one in self.lives:
            submit = one.submit
            for start, end in one.runs:
                if submit > at or start > at:
                    break
                over = end <= at
                rows.append(
                    run(one.base, start, end if over else 0.0, tenant=one.tenant, gpus=one.gpus,
                        submit=submit, requeued=over and end < one.end)
                )  # fmt: skip
                submit = end
            begun = sum(start <= at for start, _ in one.runs)
            if (begun < len(one.runs) or not begun or one.runs[-1][1] < one.end) and submit <= at:
                end = one.end if one.end <= at else 0.0
                rows.append(run(one.base, 0.0, end, tenant=one.tenant, gpus=one.gpus, submit=submit))
        return runs(*rows)


def quarter_seconds(first: float, last: float) -> st.SearchStrategy[float]:
    return st.integers(int(first / STEP), int(last / STEP)).map(lambda n: n * STEP)


@st.composite
def lives(draw: st.DrawFn, base: int, polls: tuple[float, ...], earliest: float) -> Life:
    """A job whose first submission is seen before it is requeued: nobody could know of it later."""
    submit = draw(quarter_seconds(earliest, FINISH - 1))
    first_seen = min((p for p in polls if p >= submit), default=FINISH)
    instants = sorted(draw(st.sets(quarter_seconds(submit + STEP, FINISH + 10), max_size=6)))
    stretches = [(s, e) for s, e in zip(instants[::2], instants[1::2], strict=False) if e > BEGAN]
    requeued = [(s, e) for s, e in stretches if e > first_seen]
    real = requeued or stretches[-1:]
    last_end = real[-1][1] if real else submit
    ends_with_run = bool(real) and draw(st.booleans())
    end = last_end if ends_with_run else draw(st.just(math.inf) | quarter_seconds(last_end + 1, FINISH + 20))
    if end <= BEGAN or end > FINISH:
        end = math.inf if not ends_with_run else end
    if real and not requeued and end != last_end:
        end = last_end  # one short run that nobody saw: the job ended with it
    gpus, weight = draw(st.integers(1, 8)), draw(st.sampled_from([1.0, 0.5, 2.0]))
    return Life(base, draw(st.sampled_from(TENANTS)), gpus, weight, submit, tuple(real), end)


@st.composite
def worlds(draw: st.DrawFn, *, reuse_ids: bool = True) -> World:
    gaps = draw(st.lists(quarter_seconds(STEP, 10), min_size=4, max_size=20))
    polls = [BEGAN]
    for gap in [*gaps, *[10.0] * 10]:
        if polls[-1] + gap < FINISH:
            polls.append(polls[-1] + gap)
    polls.append(FINISH)
    everyone: list[Life] = []
    for base in range(1, draw(st.integers(1, 6)) + 1):
        one = draw(lives(base, tuple(polls), BEGAN - 10))
        everyone.append(one)
        again = one.end + LISTED_SECONDS
        if reuse_ids and BEGAN < again < FINISH - 2 and draw(st.booleans()):
            second = draw(lives(base, tuple(polls), again))
            runs_once = second.runs[:1] if len(second.runs) == 1 and second.end == second.runs[0][1] else ()
            everyone.append(Life(base, second.tenant, second.gpus, 1.0, second.submit, runs_once, second.end))
    gpus = draw(st.lists(st.integers(0, 12), min_size=len(polls), max_size=len(polls)))
    weights = draw(st.dictionaries(st.sampled_from(TENANTS), st.sampled_from([0.5, 1.0, 3.0])))
    how = LedgerSettings(
        tenant_memory_seconds=draw(st.sampled_from([0.0, 7.5, 1e6])), water_filled=draw(st.booleans())
    )
    return World(tuple(everyone), tuple(polls), tuple(gpus), weights, how)


@dataclass
class Reference:
    """Integrals as sums over quarter seconds."""

    job_owed: dict[tuple[int, float], float]
    quota: dict[str, float]
    demand: dict[str, float]


def reference(world: World, gpus_at: tuple[tuple[float, int], ...]) -> Reference:
    result = Reference(defaultdict(float), defaultdict(float), defaultdict(float))
    for number in range(int((FINISH - BEGAN) / STEP)):
        time = BEGAN + number * STEP
        gpus = [count for since, count in gpus_at if since <= time][-1]
        _count_one_step(world, time, gpus, result)
    return result


def _count_one_step(world: World, time: float, gpus: int, result: Reference) -> None:
    memory = world.settings.tenant_memory_seconds
    met = [one for one in world.lives if one.submit <= time and one.end > BEGAN]
    present = {one.tenant for one in met if time < one.end + memory}
    weight_sum = sum(world.weights.get(t, 1.0) for t in present)
    for tenant in present:
        active = [one for one in met if one.tenant == tenant and time < one.end]
        quota = gpus * world.weights.get(tenant, 1.0) / weight_sum
        share = min(quota, sum(one.gpus for one in active))
        result.quota[tenant] += quota * STEP
        result.demand[tenant] += share * STEP
        for one, rate in _rates(active, share, world.settings.water_filled):
            result.job_owed[one.base, one.submit] += rate * STEP


def _rates(active: list[Life], share: float, water_filled: bool) -> list[tuple[Life, float]]:
    weight_sum = sum(one.weight for one in active)
    if not water_filled:
        return [(one, min(one.gpus, share * one.weight / weight_sum)) for one in active]
    rates, left = [], share
    for one in sorted(active, key=lambda o: o.gpus / o.weight):
        rate = min(one.gpus, left * one.weight / weight_sum)
        rates.append((one, rate))
        left, weight_sum = left - rate, weight_sum - one.weight
    return rates


def watch(world: World, polls: tuple[float, ...]) -> tuple[Ledger, list[Event]]:
    ledger = Ledger.new(BEGAN)
    told: list[Event] = []
    for time, gpus in zip(world.polls, world.nodes, strict=True):
        if time in polls:
            ledger, events = advance(ledger, world.look(time, gpus), world.settings)
            told += events
    return ledger, told


def jobs_owed(ledger: Ledger, told: list[Event]) -> dict[tuple[int, float], float]:
    jobs = ledger.jobs
    alive = zip(jobs.key.tolist(), jobs.submit.tolist(), jobs.owed.tolist(), strict=True)
    owed = {(int(label(key)), submit): value for key, submit, value in alive}
    for event in told:
        if event.kind == "finished":
            owed[int(label(event.key)), event.detail["submit"]] = event.detail["owed"]
    return owed


def of_tenants(ledger: Ledger, column: str) -> dict[str, float]:
    return dict(zip(ledger.tenants.names, getattr(ledger.tenants, column).tolist(), strict=True))


def same(found: dict, expected: dict) -> bool:  # type: ignore[type-arg]
    keys = set(found) | set(expected)
    return {k: found.get(k, 0.0) for k in keys} == pytest.approx(
        {k: expected.get(k, 0.0) for k in keys}, rel=1e-9, abs=1e-6
    )


@given(worlds())
def test_what_is_owed_is_what_counting_quarter_seconds_gives(world: World) -> None:
    ledger, told = watch(world, world.polls)
    truth = reference(world, tuple(zip(world.polls, world.nodes, strict=True)))
    assert same(of_tenants(ledger, "owed_quota"), truth.quota)
    assert same(of_tenants(ledger, "owed_demand"), truth.demand)
    assert same(jobs_owed(ledger, told), truth.job_owed)


@given(worlds())
def test_after_settling_everybody_had_what_accounting_says_and_nothing_moves_twice(world: World) -> None:
    ledger, _ = watch(world, world.polls)
    settled, _ = settle(ledger, world.accounting(), FINISH)
    truth: dict[str, float] = defaultdict(float)
    for one in world.lives:
        truth[one.tenant] += one.had(BEGAN, FINISH)
    assert same(of_tenants(settled, "had"), truth)
    alive = {one.base: one.had(BEGAN, FINISH) for one in world.lives if one.end > FINISH}
    assert same(dict(zip((settled.jobs.key >> 23).tolist(), settled.jobs.had.tolist(), strict=True)), alive)
    again, moved = settle(settled, world.accounting(), FINISH)
    assert moved == 0.0
    assert of_tenants(again, "had") == of_tenants(settled, "had")


@given(worlds())
def test_what_tenants_had_is_what_their_jobs_had(world: World) -> None:
    ledger, told = watch(world, world.polls)
    jobs: dict[str, float] = defaultdict(float)
    for row, had in zip(ledger.jobs.tenant.tolist(), ledger.jobs.had.tolist(), strict=True):
        jobs[ledger.tenants.names[row]] += had
    for event in told:
        if event.kind == "finished":
            jobs[event.tenant] += event.detail["had"]
    assert same(of_tenants(ledger, "had"), jobs)


@given(worlds())
def test_every_job_is_told_of_once_and_in_order(world: World) -> None:
    _, told = watch(world, world.polls)
    submitted = [(e.key, e.time) for e in told if e.kind == "submitted"]
    finished = [(e.key, e.detail["submit"]) for e in told if e.kind == "finished"]
    assert len(set(submitted)) == len(submitted)
    assert len(set(finished)) == len(finished)
    assert set(finished) <= set(submitted)


@given(worlds(), st.data())
def test_the_polls_do_not_matter_when_times_are_exact(world: World, data: st.DataObject) -> None:
    world = World(world.lives, world.polls, (7,) * len(world.polls), world.weights, world.settings)
    middle = data.draw(st.sets(st.sampled_from(world.polls)))
    # Nobody could know later of what a job waited before a requeue: each is seen before that.
    first_seen = {min((p for p in world.polls if p >= one.submit), default=FINISH) for one in world.lives}
    fewer = [BEGAN, *sorted((middle | first_seen) - {BEGAN, FINISH}), FINISH]
    for before, after in pairwise(list(fewer)):
        needed = [p for p in world.polls if before < p < after]
        fewer += needed if after - before > 10 else []
    often, told_often = watch(world, world.polls)
    seldom, told_seldom = watch(world, tuple(sorted(set(fewer))))
    for column in ("owed_quota", "owed_demand"):
        assert same(of_tenants(often, column), of_tenants(seldom, column))
    seen_both = set(jobs_owed(often, told_often)) & set(jobs_owed(seldom, told_seldom))
    assert same(
        {k: v for k, v in jobs_owed(often, told_often).items() if k in seen_both},
        {k: v for k, v in jobs_owed(seldom, told_seldom).items() if k in seen_both},
    )


@given(worlds(), st.integers(0, 3))
def test_a_gap_filled_from_accounting_is_as_good_as_polls(world: World, seen_polls: int) -> None:
    world = World(world.lives, world.polls, (7,) * len(world.polls), world.weights, world.settings)
    ones = tuple(Life(o.base, o.tenant, o.gpus, 1.0, o.submit, o.runs, o.end) for o in world.lives)
    weights = dict.fromkeys(TENANTS, 1.0)
    world = World(ones, world.polls, world.nodes, weights, world.settings)
    before, _ = watch(world, world.polls[: 1 + seen_polls])
    filled = fill_gap(before, world.accounting(), FINISH, world.settings).ledger
    truth = reference(world, ((BEGAN, 7),))
    had: dict[str, float] = defaultdict(float)
    for one in world.lives:
        had[one.tenant] += one.had(BEGAN, FINISH)
    settled, _ = settle(filled, world.accounting(), FINISH)
    assert same(of_tenants(settled, "had"), had)
    assert same(of_tenants(filled, "owed_quota"), truth.quota)
    assert same(of_tenants(filled, "owed_demand"), truth.demand)
    alive = {(o.base, o.submit): truth.job_owed[o.base, o.submit] for o in world.lives if o.end > FINISH}
    assert same(jobs_owed(filled, []), alive)
    after, told = advance(filled, world.look(FINISH, 7), world.settings)
    assert of_tenants(after, "had") == of_tenants(filled, "had")
    assert [event.kind for event in told if event.kind != "finished"] == []


OF_JOBS = ("submit", "owed", "had", "ran", "waited", "run_had")


def watched(ledger: Ledger, world: World, polls: tuple[float, ...]) -> Ledger:
    for time in polls:
        ledger, _ = advance(ledger, world.look(time, 7), world.settings)
    return ledger


def of_jobs(ledger: Ledger, column: str) -> dict[int, float]:
    return dict(zip(ledger.jobs.key.tolist(), getattr(ledger.jobs, column).tolist(), strict=True))


@given(worlds(), st.data())
def test_a_gap_filled_late_is_as_good_as_one_filled_in_time(world: World, data: st.DataObject) -> None:
    """Tenants count as long as they have jobs: one that looks do not show is not known until it is told."""
    settings = replace(world.settings, tenant_memory_seconds=0.0)
    world = replace(world, nodes=(7,) * len(world.polls), settings=settings)
    seen = data.draw(st.integers(1, len(world.polls) - 1))
    first = data.draw(st.integers(seen, len(world.polls) - 1))
    before, _ = watch(world, world.polls[:seen])
    look, said = world.look(world.polls[first], 7), world.accounting()
    in_time = fill_gap(before, world.accounting(look.time), look.time, settings, look.jobs).ledger
    in_time = watched(in_time, world, world.polls[first:])
    looked = watched(before, world, world.polls[first:])
    late = fill_late(looked, Unfilled(before, look), Gap(said, look.time), settings).ledger
    in_time, _ = settle(in_time, said, FINISH)
    late, moved = settle(late, said, FINISH)
    assert moved < 1e-6
    for column in ("had", "owed_quota", "owed_demand"):
        assert same(of_tenants(late, column), of_tenants(in_time, column)), column
    for column in OF_JOBS:
        assert same(of_jobs(late, column), of_jobs(in_time, column)), column
