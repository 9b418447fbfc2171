"""One call: a scenario under a policy, from its first submission to its last end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from slurm_fair.errors import InputError
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import USUAL_RENEWALS, LeaseTerms
from slurm_fair.policy.error_place import beginning
from slurm_fair.policy.registry import load
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.reconcile import Limits
from slurm_fair.sim.loop.drive import LookAfter, Simulation
from slurm_fair.sim.loop.log import Listener, Log
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.result import SimulationResult, result_of
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.world.sizes import ElasticJobs
from slurm_fair.tick import Rules

USUAL_LEASE = 900.0
USUAL_INTERVAL = 10.0
MOST_LEASE_ENDS = 500_000  # a look at each costs minutes in all
_MUCH_TOO_SLOW = 0.1  # of the speed of a size by the number of its GPUs: GPUs come to little then
# Nothing in a simulation is odd, and no command line limits how much is done at once.
_NO_LIMITS = Limits(revokes=10**9, opens=10**9, closes=10**9, frees=10**9, shrink_alarm=2.0)


def rules_for(
    policy: str,
    settings: dict[str, object],
    *,
    lease: float | None = None,
    interval: float = USUAL_INTERVAL,
    aligned: bool = True,
    gavel_rounds: bool = False,
    checkpoint_cost: float = 0.0,
    seed: int = 0,
    ledger: LedgerSettings | None = None,
) -> Rules:
    """The rules of a simulated controller; without a lease term it is the policy's own, else 900 s.

    Under rolling leases renewed ones last a quarter of a term, and a gang that waited for one has nodes set aside.
    """
    made = load(policy, settings)
    term = float(getattr(made, "lease_seconds", USUAL_LEASE)) if lease is None else lease
    terms = LeaseTerms(
        term=term,
        interval=term if gavel_rounds else interval,
        grace=max(60.0, 2 * checkpoint_cost),
        max_grace=max(600.0, 2 * checkpoint_cost),
        aligned=aligned or gavel_rounds,
        reserve_after=term,
        renewal=term / USUAL_RENEWALS,
    )
    return Rules(
        policy,
        made,
        settings,
        terms,
        ledger or LedgerSettings(),
        _NO_LIMITS,
        seed,
        plan_limit_seconds=float("inf"),
    )


def with_looks_at_changes(rules: Rules, least_seconds: float) -> Rules:
    """The rules under which a look follows each change, so many seconds after the last one; 0 = as they are."""
    if not least_seconds:
        return rules
    terms = rules.terms
    longest = max(min(terms.interval, terms.term / 3), least_seconds)
    return replace(rules, terms=replace(terms, interval=longest, interval_min=least_seconds))


def with_reserve_after(rules: Rules, seconds: float | None) -> Rules:
    """The rules under which a gang waits so long at most until nodes are set aside; None = a term, as they are."""
    return rules if seconds is None else replace(rules, terms=replace(rules.terms, reserve_after=seconds))


def with_renewal(rules: Rules, seconds: float | None) -> Rules:
    """The rules under which a renewed lease lasts so long; None = a quarter of a term, as they are."""
    return rules if seconds is None else replace(rules, terms=replace(rules.terms, renewal=seconds))


def refuse_endless(scenario: Scenario, term: float) -> None:
    """One line where leases would end so often that nobody would wait for the result."""
    trace = scenario.trace
    if not len(trace):
        return
    least = max(
        float(trace.duration_s.max()),
        float((trace.gpus * trace.duration_s).sum()) / scenario.machines.capacity,
    )
    ends = min(least, scenario.until_s) / term
    if ends > MOST_LEASE_ENDS:
        raise InputError(
            f"the jobs need at least {least:.10g} s, in which renewed leases of {term:g} s end {ends:.10g} times: "
            f"a simulation goes up to {MOST_LEASE_ENDS}; give a longer --lease or --renewal, or --until"
        )


def refuse_endless_sizes(scenario: Scenario, elastic: ElasticJobs, kinds: int, term: float) -> None:
    """The same for a size of an elastic job with which it would hardly go on; a policy may grant it any time."""
    trace = scenario.trace
    for job, (speed, gpus) in elastic.slowest(kinds).items():
        in_proportion = min(gpus / trace.whole_gpus.item(job), 1.0)
        seconds = trace.duration_s.item(job) / speed
        ends = min(seconds, scenario.until_s) / term
        if speed < _MUCH_TOO_SLOW * in_proportion and ends > MOST_LEASE_ENDS:
            raise InputError(
                f"job {trace.job_id[job]} would take {seconds:.4g} s with {gpus} GPUs; leases of {term:g} s "
                f"end {ends:.4g} times in that: a simulation goes up to {MOST_LEASE_ENDS}; leave {gpus} out of "
                "its gpus_choices, mend its --throughputs, or give --until"
            )


def simulate(
    scenario: Scenario,
    rules: Rules,
    *,
    after_look: Callable[[Simulation], None] | None = None,
    listen: Listener | None = None,
    wants: Collection[Want] = EVERYTHING,
    looks: LookAfter | None = None,
) -> SimulationResult:
    """The result; `after_look` is called after every look, `listen` hears of every tick what it wants.

    `looks` are instants of looks as a daemon had them (sim/loop/paces.py), in the place of the simulator's own.
    """
    refuse_endless(scenario, rules.terms.shortest)
    wall, cpu = time.perf_counter(), time.process_time()
    log = Log(epoch_for(rules.terms.term), listen, wants, beginning(type(rules.policy)))
    simulation = Simulation(scenario, rules, log, batches=log.batches(), looks=looks)
    population = simulation.cluster.life.population
    refuse_endless_sizes(scenario, population.elastic, len(population.gpu_types), rules.terms.shortest)
    if after_look is not None:
        simulation.after_look = after_look
    simulation.run()
    return result_of(simulation, log, time.perf_counter() - wall, time.process_time() - cpu)
