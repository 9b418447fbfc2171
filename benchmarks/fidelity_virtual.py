"""The simulations of `make fidelity`: the same jobs and settings, what starts and stops cost as real runs had it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.fidelity_recording import HOUR, Measured, RealRun, numbers_of
from benchmarks.fidelity_stage import Way
from benchmarks.fidelity_trace import GPUS_PER_NODE, NODES, WEIGHTS, PlannedJob, as_trace
from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.ledger import settle
from slurm_fair.sim import Costs, Scenario, Simulation, SimulationResult, rules_for, simulate
from slurm_fair.sim.loop.drive import Looks
from slurm_fair.sim.loop.ledger_batches import plain
from slurm_fair.sim.loop.paces import DaemonsLooks, RecordedLooks
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.repeat import shaken
from slurm_fair.sim.scenario import Takes
from slurm_fair.tick import Rules
from slurm_fair.trace import uniform


def rules_of(way: Way) -> Rules:
    """Those of the daemon."""
    rules = rules_for(way.policy, {}, lease=way.term, interval=way.interval, aligned=way.align == "aligned")
    return replace(rules, terms=replace(rules.terms, grace=way.grace))


def simulated(
    way: Way,
    jobs: Sequence[PlannedJob],
    costs: Costs,
    looks: Looks | None = None,
    number: int = 0,
    seed: int = 0,
    takes: Takes | None = None,
    cut: bool = False,
    watch: Callable[[Simulation], None] | None = None,
) -> dict[str, float]:
    """One simulation; all but number 0 are shaken, as `slurm-fair simulate --repeat` shakes them."""
    machines = uniform(NODES * GPUS_PER_NODE, GPUS_PER_NODE)
    weights = {name: float(weight) for name, weight in WEIGHTS.items()}
    scenario = Scenario(as_trace(tuple(jobs)), machines, costs, weights, takes=takes, whole_seconds=cut)
    if number:
        scenario = shaken(scenario, way.interval, np.random.default_rng([seed, number]))
    return _numbers(simulate(scenario, rules_of(way), wants=(), looks=looks, watch=watch))


def _numbers(result: SimulationResult) -> dict[str, float]:
    outcomes = result.outcomes
    held = totals(outcomes.tenant, outcomes.had, len(outcomes.tenants))
    gpu_seconds = dict(zip(outcomes.tenants, held.tolist(), strict=True))
    return numbers_of(
        outcomes.end, outcomes.submit, float(result.summary.preemptions), gpu_seconds, result.accounts
    )


def as_the_daemon(way: Way, found: Measured) -> Looks:
    """Looks as the daemon has them."""
    return DaemonsLooks(rules_of(way).terms, found.look, found.tick)


def as_recorded(run: RealRun) -> Looks:
    """The looks of one real run, on the simulator's clock."""
    shift = epoch_for(run.way.term) - run.began
    return RecordedLooks([look.time + shift for look in run.looks], run.way.interval)


@dataclass(frozen=True, slots=True)
class Settling:
    """Settles the ledger with accounting after the looks after which a daemon did."""

    after: frozenset[float]

    def __call__(self, simulation: Simulation) -> None:
        """After each look."""
        books, standing = simulation.cluster.life.books, simulation.standing
        assert books is not None
        if books.ended is None:
            books.ended = []
        if simulation.clock.now() in self.after:
            if simulation.batches is not None:
                simulation.batches.tell_all()
            ledger = plain(standing.ledger)
            settled, _ = settle(ledger, books.table(books.ended), ledger.time)
            simulation.standing = standing._replace(ledger=settled, amended=True)


def settling_as_recorded(run: RealRun) -> Settling:
    """As in one real run, on the simulator's clock."""
    shift = epoch_for(run.way.term) - run.began
    before = zip(run.looks, run.looks[1:], strict=False)
    return Settling(frozenset(one.time + shift for one, following in before if following.settled))
