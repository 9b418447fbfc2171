"""Any small simulation that can be asked for, drawn by hypothesis, and what came of it.

One strategy draws machines (types, racks, uneven nodes), people (tenants, weights, declared times that are wrong),
work (regimes, measured speeds, sensitivity, elastic jobs), rules (rolling or aligned leases, either kind of
rounds, costs) and mishaps (nodes that drain or fail, jobs that people cancel, acts that Slurm refuses or leaves
without an answer).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from slurm_fair.errors import InputError
from slurm_fair.model import Action, TickRecord, Verb
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim import (
    Costs,
    Hitch,
    Listener,
    Log,
    Manners,
    NodeEvent,
    Outage,
    Scenario,
    Simulation,
    SimulationResult,
    population,
    rules_for,
    with_looks_at_changes,
    with_renewal,
    with_reserve_after,
)
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.result import result_of
from slurm_fair.sim.world.books import Run
from slurm_fair.trace import JobRegimes, Machines, Throughputs, cells
from slurm_fair.trace.regimes import Regime
from slurm_fair.trace.table import Mode
from tests.support.simulated import Arrival, Rounds, trace

EXAMPLES = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
MINUTE = 60.0
NEVER_SECONDS = 360_000.0  # whoever is not done by then will never be
FAST, SLOW = "a100", "v100"


def machines(sizes: tuple[int, ...], kinds: str = "", racks: str = "") -> Machines:
    """Nodes n1, n2, ... of these sizes; a letter of `kinds` (f = fast, s = slow) and of `racks` for each."""
    kinds, racks = kinds or "s" * len(sizes), racks or "1" * len(sizes)
    types, names = sorted({{"f": FAST, "s": SLOW}[k] for k in kinds}), sorted(set(racks))
    fast = np.array([k == "f" for k in kinds])
    zeros = np.zeros(len(sizes), dtype=np.int64)
    return Machines(
        names=tuple(f"n{number}" for number in range(1, len(sizes) + 1)),
        gpus=np.array(sizes, dtype=np.int64),
        gpu_type=np.array([types.index(FAST if f else SLOW) for f in fast], dtype=np.int64),
        rack=np.array([names.index(r) for r in racks], dtype=np.int64),
        speed=np.where(fast, 2.0, 1.0),
        cpus=zeros,
        memory_gb=np.zeros(len(sizes)),
        gpu_types=tuple(types),
        racks=tuple(names),
    )


MACHINES = st.sampled_from(
    (
        machines((4, 4)),
        machines((4, 4, 2)),
        machines((8, 3)),
        machines((2, 2, 2, 2), racks="1122"),
        machines((4, 4, 4), "ffs"),
        machines((4, 2, 4, 4), "ffss", racks="1212"),
        machines((2, 2, 2, 2), "ffss", racks="1212"),
    )
)
# Measured speeds in steps a second: model b runs on the slow type only, model c was measured on the fast one only
# as fast as on the slow one.
_SPEEDS = {"a": (10.0, 30.0), "b": (4.0, 0.0), "c": (8.0, 8.0)}
_KEPT = st.sampled_from((0.25, 0.5, 0.9, 1.0))  # of the speed, on more nodes than it needs


@st.composite
def measurements(draw: Any) -> Throughputs:
    """Steps per second; spread, each model keeps a part of its own on each type."""
    rates = {}
    for model, kinds in _SPEEDS.items():
        for kind, rate in zip((SLOW, FAST), kinds, strict=True):
            kept = draw(_KEPT)
            for gpus in range(1, 9):
                rates[kind, "consolidated", model, 16, gpus] = rate * gpus
                rates[kind, "unconsolidated", model, 16, gpus] = rate * gpus * kept
    return Throughputs("made", ("made",), SLOW, rates)


# Numbers of GPUs with which a job can run beside the one that it asks for, as a trace has them.
CHOICES = st.sampled_from(("", "", "", "1|2|4|8", "1|3", "2-6:2", "1-8", "4-5"))
JOBS = st.builds(
    Arrival,
    at=st.integers(0, 40).map(lambda halves: halves * MINUTE / 2),
    gpus=st.sampled_from((1, 1, 1, 2, 3, 4, 5, 6, 8)),
    seconds=st.integers(1, 50).map(lambda halves: halves * MINUTE / 2 + 7),
    tenant=st.sampled_from(("a", "b", "c")),
    user=st.sampled_from(("", "u1", "u2")),
    gpu_type=st.sampled_from(("", "", "", SLOW, FAST)),
    model=st.sampled_from(("", *_SPEEDS)),
    app=st.sampled_from(("", "", "sweep")),
    batch_size=st.just(16),
    nodes=st.sampled_from((0, 0, 0, 2, 3)),
    weight=st.sampled_from((1.0, 1.0, 3.0)),
    sensitivity=st.sampled_from((math.nan, 1.0, 1.5)),
    declared=st.sampled_from((math.nan, 60.0, 600.0, 7200.0)),
    epochs=st.sampled_from((0, 10)),
    choices=CHOICES.map(cells.choices),
)
REGIMES = st.lists(
    st.builds(
        Regime,
        st.integers(1, 4),
        st.sampled_from((16, 32, 64)),
        st.sampled_from((20.0, 45.0, 90.0)),
    ),
    min_size=1,
    max_size=3,
)
HOW = st.builds(
    Rounds,
    lease=st.sampled_from((120.0, 300.0, 600.0)),
    interval=st.sampled_from((10.0, 30.0)),
    interval_min=st.sampled_from((0.0, 0.0, 1.0)),
    aligned=st.booleans(),
    reserve_after=st.sampled_from((0.0, 0.0, 240.0, None, math.inf)),
    renewal=st.sampled_from((None, None, 60.0, math.inf)),
    rounds=st.sampled_from(("conserving", "conserving", "gavel")),
    costs=st.builds(
        Costs,
        checkpoint=st.sampled_from((0.0, 0.0, 5.0)),
        restart=st.sampled_from((0.0, 20.0)),
        requeue_delay=st.sampled_from((0.0, 0.0, 60.0)),
        start=st.sampled_from((0.0, 0.0, 7.0)),
    ),
    everyone=st.booleans(),
)


# What may befall the acts of one kind, in their order: an act in ten or so, and those on one job for good.
_VERBS = st.sampled_from((Verb.ASK, Verb.REQUEUE, Verb.OPEN))
ONCE = st.dictionaries(st.tuples(_VERBS, st.integers(0, 12)), st.sampled_from(Hitch), max_size=3)


@dataclass(frozen=True, slots=True)
class Hitches:
    """Mishaps of acts, drawn beforehand."""

    once: Mapping[tuple[Verb, int], Hitch] = field(
        default_factory=dict
    )  # by verb, and how many of it came before
    never_stops: int = -1  # the row of a job that Slurm will not requeue, or cannot signal
    verb: Verb = Verb.REQUEUE

    def __bool__(self) -> bool:
        return bool(self.once) or self.never_stops >= 0

    def told(self) -> Callable[[Action], Hitch | None]:
        """From the first act of a simulation on."""
        count: Counter[Verb] = Counter()

        def befalls(action: Action) -> Hitch | None:
            number = count[action.verb]
            count[action.verb] += 1
            if action.verb is self.verb and action.record == self.never_stops + 1:
                return Hitch.NEVER
            return self.once.get((action.verb, number))

        return befalls


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario, the rules of its controller, and what people do meanwhile."""

    scenario: Scenario
    how: Rounds
    jobs: tuple[Arrival, ...] = ()  # of the trace, as they were drawn
    cancels: tuple[tuple[float, int], ...] = ()  # (second, row of the trace)
    hitches: Hitches = field(default_factory=Hitches)
    patience: float = 60.0  # as long as the grace

    @property
    def lease(self) -> float:
        """The term of a lease."""
        assert self.how.lease is not None
        return self.how.lease

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The draws, and little else: hypothesis shows this when a promise is broken."""
        scenario, floor = self.scenario, self.scenario.machines
        nodes = zip(
            floor.names, floor.gpus.tolist(), floor.gpu_type.tolist(), floor.rack.tolist(), strict=True
        )
        lines = [
            f"{self.how}",
            f"nodes (name, GPUs, type, rack) {[*nodes]}, measured: {scenario.throughputs is not None}",
            f"weights {scenario.weights}, cancels {self.cancels}",
            f"{self.hitches}, patience {self.patience}",
            f"outages {[(o.time_s, o.node, o.event.name) for o in scenario.outages]}",
            f"GPUs by weight {dict(scenario.gpu_weights)}",
            f"regimes {[(key, job.regimes) for key, job in scenario.regimes.items()]}",
            *map(_told, self.jobs),
        ]
        printer.text("\n".join(lines))


def _told(job: Arrival) -> str:
    """The claims without those that are as usual."""
    said = {name: getattr(job, name) for name in Arrival.__slots__}
    return str({name: value for name, value in said.items() if repr(value) != repr(getattr(Arrival(), name))})


@st.composite
def cases(draw: Any) -> Case:
    """Any of them in which every job can be run."""
    floor, how = draw(MACHINES), draw(HOW)
    measured = draw(st.none() | measurements())
    jobs = sorted(draw(st.lists(JOBS, min_size=1, max_size=9)), key=lambda job: job.at)
    jobs = _that_can_be([replace(job, job_id=str(row)) for row, job in enumerate(jobs)], floor, measured)
    regimes = {}
    for row, job in enumerate(jobs):
        if draw(st.integers(0, 3)) == 0:
            listed = tuple(draw(REGIMES))
            mode = draw(st.sampled_from((Mode.ACCORDION, Mode.GNS)))
            regimes[job.job_id] = JobRegimes(job.job_id, job.model, mode, job.gpus, 1000, listed)
            jobs[row] = replace(job, seconds=regimes[job.job_id].seconds)
    scenario = Scenario(
        trace(jobs),
        floor,
        how.costs,
        weights=draw(st.sampled_from(({}, {"a": 1.0, "b": 3.0}, {"a": 0.25, "c": 2.0}))),
        regimes=regimes,
        throughputs=measured,
        outages=tuple(draw(_outages(floor))),
        rounds=how.rounds,
        until_s=NEVER_SECONDS,
        gpu_weights=draw(st.sampled_from(({}, {}, {SLOW: 0.5}, {FAST: 2.5, SLOW: 0.75}))),
    )
    cancels = draw(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, len(jobs) - 1)), max_size=2))
    cancelled = tuple(sorted((float(at), row) for at, row in cancels))
    hitches = Hitches(
        draw(st.just({}) | ONCE),
        draw(st.sampled_from((-1, -1, 0, len(jobs) - 1))),
        draw(st.sampled_from((Verb.ASK, Verb.REQUEUE))),
    )
    # A job whose answer nobody takes up goes on, before it is asked again: else it would stand still.
    patience = draw(st.sampled_from((20.0, 60.0))) if hitches else 60.0
    return Case(scenario, how, tuple(jobs), cancelled, hitches, patience)


def _that_can_be(jobs: list[Arrival], floor: Machines, measured: Throughputs | None) -> list[Arrival]:
    """Arrivals without wishes that these machines cannot fulfil, of smaller gangs where that is not enough."""
    possible = []
    for job in jobs:
        free = replace(job, gpu_type="")
        wishes = (job, free, replace(free, nodes=0), replace(free, nodes=0, gpus=1), replace(free, model=""))
        possible.append(next(wish for wish in wishes if _can_be(wish, floor, measured)))
    return possible


def _can_be(job: Arrival, floor: Machines, measured: Throughputs | None) -> bool:
    try:
        population(Scenario(trace([job]), floor, throughputs=measured), 0.0)
    except InputError:
        return False
    return True


@st.composite
def _outages(draw: Any, floor: Machines) -> list[Outage]:
    """Up to two nodes that go and come back."""
    found = []
    for node in draw(st.lists(st.sampled_from(floor.names), max_size=2, unique=True)):
        begins, lasts = draw(st.integers(0, 1500)), draw(st.sampled_from((40, 400, 2000)))
        event = draw(st.sampled_from((NodeEvent.DOWN, NodeEvent.DRAIN)))
        found += [Outage(begins, node, event), Outage(begins + lasts, node, NodeEvent.UP)]
    return found


class Peopled(Simulation):
    """A simulation in which people cancel jobs: it looks at those instants too."""

    ahead: list[tuple[float, int]]  # cancellations to come: (second, row of the trace)

    def _next_look(self, record: TickRecord) -> float:
        now = self.clock.now()
        due = Simulation._next_look(self, record)
        while self.ahead and self.ahead[0][0] <= now - self.epoch:
            _, row = self.ahead.pop(0)
            if self.cluster.jobs.submit[row] <= now:
                self.cluster.by_hand.cancel(int(self.cluster.jobs.key[row]))
            ends = self.standing.leases.end  # a cancelled job's is not renewed
            due = min(due, self._first_look_from(now + 1e-6), *ends[ends > now].tolist())
        return min(due, self._first_look_from(self.epoch + self.ahead[0][0])) if self.ahead else due


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a case."""

    case: Case
    result: SimulationResult
    simulation: Simulation
    over: list[Run]  # every run that ended, in the order of its end


def play(
    case: Case,
    policy: str,
    listen: Listener | None = None,
    kind: type[Simulation] = Peopled,
    wants: Collection[Want] = EVERYTHING,
) -> Played:
    """The whole simulation; the ledger is folded in batches unless whoever listens wants events of jobs."""
    rules = rules_for(
        policy,
        {},
        lease=case.how.lease,
        interval=case.how.interval,
        aligned=case.how.aligned,
        gavel_rounds=case.how.rounds == "gavel",
        checkpoint_cost=case.how.costs.checkpoint,
        ledger=case.how.ledger,
    )
    rules = with_renewal(with_reserve_after(rules, case.how.reserve_after), case.how.renewal)
    rules = with_looks_at_changes(rules, 0.0 if case.how.rounds == "gavel" else case.how.interval_min)
    log = Log(epoch_for(rules.terms.term), listen, wants)
    manners = Manners(patience_seconds=case.patience, hitches=case.hitches.told() if case.hitches else None)
    simulation = kind(case.scenario, rules, log, manners=manners, batches=log.batches())
    if isinstance(simulation, Peopled):
        simulation.ahead = list(case.cancels)
    books = simulation.cluster.life.books
    assert books is not None
    books.ended = []
    simulation.run()
    return Played(case, result_of(simulation, log, 0.0, 0.0), simulation, books.ended)
