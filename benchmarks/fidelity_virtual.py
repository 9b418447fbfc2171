"""The simulations of `make fidelity`: the same jobs and settings, and steps that take as long as in real runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.fidelity_compare import Numbers
from benchmarks.fidelity_recording import Grant, Measured, RealRun, numbers_of
from benchmarks.fidelity_stage import Way
from benchmarks.fidelity_trace import GPUS_PER_NODE, NODES, WEIGHTS, PlannedJob, as_trace
from slurm_fair.ledger import settle
from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.model import EventKind, Standing, TickRecord
from slurm_fair.ports import Want
from slurm_fair.sim import Costs, Scenario, Simulation, SimulationResult, rules_for, simulate
from slurm_fair.sim.loop.drive import LookAfter
from slurm_fair.sim.loop.ledger_batches import plain_ledger
from slurm_fair.sim.loop.paces import DaemonsLooks, RecordedLooks
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.repeat import shaken
from slurm_fair.sim.scenario import Takes
from slurm_fair.tick import Rules
from slurm_fair.trace import uniform


def rules_of(way: Way) -> Rules:
    """The rules of a daemon with these settings."""
    rules = rules_for(way.policy, {}, lease=way.term, interval=way.interval, aligned=way.align == "aligned")
    return replace(rules, terms=replace(rules.terms, grace=way.grace))


def scenario_of(jobs: Sequence[PlannedJob], costs: Costs, takes: Takes | None = None) -> Scenario:
    """The jobs on the lab's machines."""
    weights = {name: float(weight) for name, weight in WEIGHTS.items()}
    machines = uniform(NODES * GPUS_PER_NODE, GPUS_PER_NODE)
    return Scenario(as_trace(tuple(jobs)), machines, costs, weights, takes=takes)


def simulated(
    way: Way,
    jobs: Sequence[PlannedJob],
    costs: Costs,
    dice: np.random.Generator,
    looks: LookAfter | None = None,
    takes: Takes | None = None,
) -> Numbers:
    """One simulation, shaken as `slurm-fair simulate --repeat` shakes its own."""
    scenario = shaken(scenario_of(jobs, costs, takes), way.interval, dice)
    return _numbers(simulate(scenario, rules_of(way), wants=(), looks=looks))


def _numbers(result: SimulationResult) -> Numbers:
    outcomes = result.outcomes
    held = totals(outcomes.tenant, outcomes.had, len(outcomes.tenants))
    gpu_seconds = dict(zip(outcomes.tenants, held.tolist(), strict=True))
    return numbers_of(
        outcomes.end, outcomes.submit, float(result.summary.preemptions), gpu_seconds, result.accounts
    )


def plain_costs(found: Measured) -> Costs:
    """The costs that the options of `slurm-fair simulate` can say."""
    return Costs(checkpoint=found.requeue + found.returning, start=found.opening + found.starting)


def as_the_daemon(way: Way, found: Measured) -> LookAfter:
    """Looks as the daemon has them."""
    return DaemonsLooks(rules_of(way).terms, found.look, found.tick, found.acting, found.act)


# -- a simulation that follows one real run ---------------------------------------------------------------------


def follow(run: RealRun, costs: Costs, takes: Takes) -> tuple[Numbers, float]:
    """A simulation with the looks and steps of a real run, and the second from which it grants otherwise."""
    shift = epoch_for(run.way.term) - run.began
    jobs = run.as_submitted()
    heard = _Grants([])
    left = {look.time + shift: look.left for look in run.looks if look.left}
    scenario = replace(
        scenario_of(jobs, costs, takes), whole_seconds=True, unfreed=lambda instant: left.get(instant, {})
    )
    looks = RecordedLooks([look.time + shift for look in run.looks], run.way.interval)
    result = simulate(
        scenario, rules_of(run.way), listen=heard, wants={Want.LEASE_EVENTS}, looks=looks,
        after_look=Settling(frozenset(time + shift for time in _settled(run))),
    )  # fmt: skip
    name_of = {
        int(key): jobs[row].name
        for key, row in zip(result.outcomes.key.tolist(), result.trace_row.tolist(), strict=True)
    }
    grants = [Grant(time - shift, name_of[key], nodes) for time, key, nodes in heard.found]
    return _numbers(result), parted(run.grants, grants) - run.began


def _settled(run: RealRun) -> Iterable[float]:
    """The looks after which the daemon settled its ledger with accounting."""
    return (one.time for one, then in zip(run.looks, run.looks[1:], strict=False) if then.settled)


def parted(real: Iterable[Grant], simulated: Iterable[Grant]) -> float:
    """The first instant at which other jobs were granted, or other nodes; inf = there is none."""
    each: list[dict[float, set[tuple[str, tuple[str, ...]]]]] = []
    for grants in (real, simulated):
        by_look: dict[float, set[tuple[str, tuple[str, ...]]]] = defaultdict(set)
        for grant in grants:
            by_look[round(grant.time, 3)].add((grant.job, grant.nodes))
        each.append(by_look)
    one, other = each
    return min(
        (time for time in one.keys() | other.keys() if one.get(time) != other.get(time)), default=math.inf
    )


@dataclass(frozen=True, slots=True)
class _Grants:
    """Hears of every tick; keeps what was granted."""

    found: list[tuple[float, int, tuple[str, ...]]]

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        del standing
        self.found.extend(
            (tick.time, event.key, tuple(event.detail["nodes"]))
            for event in tick.events
            if event.kind == EventKind.GRANTED
        )


@dataclass(frozen=True, slots=True)
class Settling:
    """Settles the ledger with accounting after the looks after which a daemon did."""

    after: frozenset[float]

    def __call__(self, simulation: Simulation) -> None:
        """Settle the ledger where a daemon did."""
        books, standing = simulation.cluster.life.books, simulation.standing
        assert books is not None
        if books.ended is None:
            books.ended = []
        if simulation.clock.now() in self.after:
            if simulation.batches is not None:
                simulation.batches.tell_all()
            ledger = plain_ledger(standing.ledger)
            settled, _ = settle(ledger, books.table(books.ended), ledger.time)
            simulation.standing = standing._replace(ledger=settled, amended=True)
