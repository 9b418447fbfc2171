"""A ledger that is folded in batches is the one that is folded at every look, whatever the looks show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.ledger import LedgerSettings, advance, settle
from slurm_fair.ledger.charging.window_events import Happened
from slurm_fair.ledger.outcomes.event_columns import Heard
from slurm_fair.model import Blocked, Event, EventKind, JobState, Ledger, Snapshot
from slurm_fair.sim.loop.ledger_batches import LedgerBatches, plain_ledger
from slurm_fair.sim.loop.pending_looks import shown_by
from tests.support.builders import HOLDING, JobSpec, job, run, runs, snapshot
from tests.support.same_ledgers import same_events, same_ledgers, same_outcomes

BEGAN = 1000.0
GAPS = st.sampled_from((0.25, 1.0, 1.0, 10.0, 10.0, 10.0, 0.0, 40.0, 2000.0))
PLAIN = ("arrive", "arrive", "start", "start", "end", "end", "flash")
ODD = (
    "requeue", "requeue", "restart", "resize", "move", "weigh", "hold", "hold", "held", "vanish", "reuse", "late",
    "correct", "freeze", "nodes", "tenants", "account", "linger", "shrink", "ahead", "unseen",
)  # fmt: skip
HOW = st.builds(
    LedgerSettings,
    tenant_memory_seconds=st.sampled_from((0.0, 7.5, 1e6)),
    everyone_counts=st.booleans(),
    closed_memory_seconds=st.sampled_from((20.0, 21_600.0)),
    water_filled=st.booleans(),
)


@dataclass
class Site:
    """A cluster to which things happen between looks."""

    draw: Any
    now: float = BEGAN
    before: float = BEGAN
    gpus: int = 7
    weights: dict[str, float] = field(default_factory=lambda: dict.fromkeys("abc", 1.0))
    jobs: dict[int, JobSpec] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    lingers: set[int] = field(default_factory=set)
    last: int = 0
    behind: float = 0.0  # how late news come

    def look(self, gap: float, what: Sequence[str]) -> Snapshot:
        """The cluster a little later, after all this; jobs that are over are shown once, or linger."""
        gone = [
            base for base, one in self.jobs.items() if one.state == JobState.DONE and base not in self.lingers
        ]
        self.gone += gone
        self.jobs = {base: one for base, one in self.jobs.items() if base not in gone}
        self.before, self.now, self.behind = self.now, self.now + gap, 0.0
        for each in what:
            getattr(self, each)()
        return snapshot(
            time=self.now, nodes={"n1": self.gpus, "n2": 4}, jobs=self.jobs.values(), weights=self.weights
        )

    def instant(self, since: float = 0.0) -> float:
        """One between the two looks, or before both where news come late."""
        part: float = self.draw(st.sampled_from((0.0, 0.0, 0.5, 0.75, 1.0)))
        return max(self.before + part * (self.now - self.before) - self.behind, since, 1.0)

    def one(self, *states: JobState) -> JobSpec | None:
        """A job in one of these states."""
        some = [base for base, each in self.jobs.items() if each.state in states]
        return self.jobs[self.draw(st.sampled_from(some))] if some else None

    def change(self, base: int, **columns: Any) -> None:
        self.jobs[base] = replace(self.jobs[base], **columns)

    # -- what counts from its instant -----------------------------------------------------------------------------

    def arrive(self) -> None:
        self.last += 1
        gpus, weight = self.draw(st.integers(1, 4)), self.draw(st.sampled_from((1.0, 1.0, 0.5)))
        tenant, blocked = self.draw(st.sampled_from("abc")), self.draw(st.sampled_from((0, 0, 0, 1)))
        self.jobs[self.last] = job(
            self.last,
            gpus=gpus,
            weight=weight,
            tenant=tenant,
            submit=self.instant(),
            blocked=Blocked(blocked),
        )

    def start(self) -> None:
        if one := self.one(JobState.WAITING):
            node = self.draw(st.sampled_from(("n1", "n2")))
            start = self.instant(one.submit)
            self.change(
                one.base, state=JobState.RUNNING, start=start, on={node: one.gpus}, blocked=Blocked(0)
            )

    def end(self) -> None:
        if one := self.one(JobState.WAITING, *HOLDING):
            since = max(one.submit, one.start, self.before - self.behind)
            self.change(one.base, state=JobState.DONE, end=self.instant(since), on={}, reason="COMPLETED")

    def flash(self) -> None:
        """Somebody starts and ends, and no look shows it run."""
        if one := self.one(JobState.WAITING):
            start = self.instant(one.submit)
            self.change(
                one.base, state=JobState.DONE, start=start, end=self.instant(start), reason="COMPLETED"
            )

    # -- what counts from the look that shows it ------------------------------------------------------------------

    def requeue(self) -> None:
        if one := self.one(*HOLDING):
            submit = self.instant(one.start)
            self.change(
                one.base, state=JobState.WAITING, start=0.0, submit=submit, restarts=one.restarts + 1, on={}
            )

    def restart(self) -> None:
        """Requeued and started again between two looks."""
        if one := self.one(*HOLDING):
            submit = self.instant(one.start)
            start = self.instant(submit)
            self.change(one.base, start=start, submit=submit, restarts=one.restarts + 1)

    def resize(self) -> None:
        if one := self.one(JobState.WAITING):
            self.change(one.base, gpus=one.gpus % 4 + 1)

    def shrink(self) -> None:
        if one := self.one(*HOLDING):
            self.change(one.base, gpus=max(one.gpus - 1, 1), on={"n1": max(one.gpus - 1, 1)})

    def move(self) -> None:
        if one := self.one(JobState.WAITING, *HOLDING):
            self.change(one.base, tenant="abc"["abc".index(one.tenant) - 1])

    def weigh(self) -> None:
        if one := self.one(JobState.WAITING, *HOLDING):
            self.change(one.base, weight=one.weight + 1.0)

    def hold(self) -> None:
        if one := self.one(JobState.WAITING):
            self.change(one.base, blocked=Blocked.NOT_BLOCKED if one.blocked else Blocked.USER_HOLD)

    def held(self) -> None:
        """One that never counted is over."""
        if (one := self.one(JobState.WAITING)) and one.blocked:
            self.change(one.base, state=JobState.DONE, end=self.instant(one.submit))

    def vanish(self) -> None:
        if one := self.one(*JobState):
            del self.jobs[one.base]

    def reuse(self) -> None:
        """Another job under the id of one that is gone."""
        if bases := [*self.gone, *self.jobs]:
            base = self.draw(st.sampled_from(bases[-3:]))
            self.jobs[base] = job(base, submit=self.instant())

    def correct(self) -> None:
        """Slurm thinks better of when a job began."""
        if one := self.one(*HOLDING):
            self.change(one.base, start=max(one.start - 0.5, one.submit))

    def freeze(self) -> None:
        if one := self.one(*HOLDING):
            states = (JobState.SUSPENDED, JobState.ENDING, JobState.RUNNING, JobState.WAITING)
            self.change(one.base, state=self.draw(st.sampled_from(states)))

    def late(self) -> None:
        """Other events, of some time ago."""
        self.behind = self.draw(st.sampled_from((0.5, 3.0, 30.0)))

    def ahead(self) -> None:
        """The clock of whoever tells of it goes before ours."""
        self.behind = -0.5

    def unseen(self) -> None:
        """Somebody comes and is over before any look."""
        self.arrive()
        self.change(
            self.last,
            state=JobState.DONE,
            end=self.now,
            start=self.draw(st.sampled_from((0.0, self.now - 0.25))),
        )

    def linger(self) -> None:
        """Jobs that are over stay listed from now on."""
        self.lingers |= self.jobs.keys()

    def nodes(self) -> None:
        self.gpus = self.draw(st.integers(0, 8))

    def tenants(self) -> None:
        self.weights["b"] += 1.0

    def account(self) -> None:
        self.weights["d"] = 2.0


@st.composite
def histories(draw: Any) -> list[Snapshot]:
    """Looks at a cluster to which mostly plain things happen, or mostly odd ones."""
    one_oddity = st.sampled_from(ODD).map(lambda odd: (*PLAIN, odd, odd))
    kinds = draw(one_oddity | one_oddity | st.sampled_from((PLAIN, PLAIN * 6 + ODD)))
    steps = st.lists(st.tuples(GAPS, st.lists(st.sampled_from(kinds), max_size=4)), min_size=3, max_size=25)
    site = Site(draw)
    return [site.look(gap, what) for gap, what in draw(steps)]


@settings(max_examples=400, deadline=None)
@given(looks=histories(), how=HOW, data=st.data())
def test_a_ledger_read_now_and_then_is_the_one_read_at_every_look(
    looks: list[Snapshot], how: LedgerSettings, data: st.DataObject
) -> None:
    often = seldom = Ledger.new(BEGAN)
    by_column, told = Heard(), list[list[Event]]()
    shown: list[tuple[Happened, int]] = []

    def hear(happened: Happened, looks: Sequence[int]) -> None:
        for some in shown_by(happened, looks):
            by_column.take_columns(some)
        shown.extend((happened, look) for look in looks)

    batches = LedgerBatches(hear)
    for look in looks:
        often, events = advance(often, look, how)
        told.append([event for event in events if event.kind != EventKind.CAPACITY])
        seldom, others = batches.advance(seldom, look, how)
        assert others == tuple(event for event in events if event.kind == EventKind.CAPACITY)
        if data.draw(st.integers(0, 5)) == 0:
            same_ledgers(seldom, often)
            if data.draw(st.booleans()):
                often, seldom = (mended(plain_ledger(ledger), look) for ledger in (often, seldom))
        if data.draw(st.integers(0, 7)) == 0:
            same_events(batches.events(), told.pop())
        if data.draw(st.integers(0, 7)) == 0:
            batches.tell_all()
    same_ledgers(seldom, often)
    batches.tell_all()
    told_in_batches = [event for happened, look in shown for event in happened.events[look]]
    same_events(told_in_batches, [*chain.from_iterable(told)])
    same_outcomes(by_column, told_in_batches)


def mended(ledger: Ledger, look: Snapshot) -> Ledger:
    """Settled with accounting, which says of some who are over that they ended a little earlier."""
    jobs = look.jobs
    over = np.flatnonzero((jobs.state == JobState.DONE) & (jobs.start > 0) & (jobs.end > jobs.start)).tolist()
    said = [
        run(
            int(jobs.key[row]) >> 23,
            jobs.start[row],
            jobs.end[row] - 0.125,
            gpus=int(jobs.gpus[row]),
            tenant=look.tenants.names[jobs.tenant[row]],
            submit=jobs.submit[row],
        )
        for row in over
    ]
    return settle(ledger, runs(*said), look.time)[0]


def test_a_job_that_ends_at_the_instant_at_which_it_came_makes_its_tenant_count_at_no_time() -> None:
    how = LedgerSettings(tenant_memory_seconds=7.5, everyone_counts=False)
    nodes, weights = {"n1": 7, "n2": 4}, dict.fromkeys("abc", 1.0)
    over = job(3, submit=1001.0, state=JobState.DONE, end=1001.0)
    looks = [
        snapshot(time=time, nodes=nodes, jobs=jobs, weights=weights)
        for time, jobs in (
            (1000.5, []),
            (1001.0, []),
            (1001.0, [job(3, submit=1001.0)]),
            (1001.25, [over]),
            (1001.5, [job(4, submit=1001.25)]),
        )
    ]
    often = seldom = Ledger.new(BEGAN)
    batches = LedgerBatches(lambda happened, looks: None)
    for look in looks:
        often, _ = advance(often, look, how)
        seldom, _ = batches.advance(seldom, look, how)
    same_ledgers(seldom, often)
    assert often.tenants.owed_quota.tolist() == [11 * 0.25, 0.0, 0.0]
