"""The result of a simulation: outcomes of jobs, metrics, and the simulator's own cost."""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.ledger.metrics.efficiency import mean_gpus, placement_score
from slurm_fair.ledger.metrics.latency import modelled_seconds
from slurm_fair.ledger.metrics.summary import RunFacts, Summary, summarise
from slurm_fair.ledger.metrics.windows import Steps, TenantWindows, edges_of, exact_windows, quotas_of
from slurm_fair.ledger.outcomes.expected import expected_seconds
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs, outcomes_heard
from slurm_fair.ledger.settings import ReportShare
from slurm_fair.model import TenantAccounts
from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.sim.loop.drive import Simulation
from slurm_fair.sim.loop.log import Log
from slurm_fair.sim.loop.weighed import PlansWeighed
from slurm_fair.sim.port.cluster import VirtualCluster
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.world.load import Population
from slurm_fair.trace import Machines
from slurm_fair.trace.status import BAD_ENDS


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """One policy's run over one scenario; instants count from the epoch of its clock."""

    policy: str
    epoch: float
    outcomes: Outcomes  # row i is job `trace_row[i]` of the scenario's trace
    trace_row: Ints
    runs: Runs
    weight: Floats  # of each tenant of the outcomes
    weight_sum: float  # of all tenants that count in quotas, now or later
    counts_seconds: float  # how long each does beyond its jobs; inf = all the time
    share: ReportShare  # what tenants are owed here
    windows: TenantWindows  # of an hour each
    capacity: Steps  # M over time
    shared: Steps  # the same by weight: what is shared out
    mean_gpus: float  # M, averaged over time
    accounts: Mapping[str, tuple[float, float]]  # GPU-seconds that each tenant had, and was owed
    summary: Summary
    placement_score: float
    decisions: Floats  # CPU seconds that the policy took at each look
    weighed: PlansWeighed
    wall_seconds: float
    cpu_seconds: float

    def tenants_between(self, edges: Floats) -> TenantWindows:
        """GPU time that each tenant had and was owed in windows of one's own."""
        return exact_windows(
            self.outcomes,
            self.runs,
            self.weight,
            self.shared,
            edges,
            self.weight_sum,
            self.share,
            self.counts_seconds,
        )

    def quotas(self) -> list[Steps]:
        """Q of each tenant of the outcomes over time."""
        return quotas_of(self.outcomes, self.weight, self.shared, self.weight_sum, self.counts_seconds)

    def to_dict(self) -> dict[str, Any]:
        """The JSON keys of one policy's result."""
        p50, p95, most = (
            np.percentile(self.decisions, [50, 95, 100]).tolist() if len(self.decisions) else (0.0, 0.0, 0.0)
        )
        return {
            "policy": self.policy,
            **self.summary.to_dict(),
            "placement_score": self.placement_score if math.isfinite(self.placement_score) else None,
            "decision_p50_s": p50,
            "decision_p95_s": p95,
            "decision_max_s": most,
            "looks": len(self.decisions),
            **self.weighed.to_dict(),
            "wall_s": self.wall_seconds,
            "cpu_s": self.cpu_seconds,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def result_of(simulation: Simulation, log: Log, wall_seconds: float, cpu_seconds: float) -> SimulationResult:
    """Everything that can be said of a simulation that is over."""
    cluster, until = simulation.cluster, simulation.clock.now()
    outcomes, runs = outcomes_heard(log.heard, until)
    trace_row = find(cluster.jobs.key[: cluster.jobs.count], outcomes.key)
    outcomes = _with_truth(outcomes, trace_row, cluster)
    scenario = simulation.scenario
    capacity = Steps.seen(cluster.life.resized, simulation.epoch)
    shared = Steps.seen(cluster.life.resized_by_weight, simulation.epoch)
    last = float(outcomes.ended_or_now.max(initial=simulation.epoch))
    weight, edges = scenario.weights_of(outcomes.tenants), edges_of(simulation.epoch, last)
    counts = simulation.rules.ledger.counts_seconds
    weight_sum = scenario.weight_sum if math.isinf(counts) else float(weight.sum())
    windows = exact_windows(outcomes, runs, weight, shared, edges, weight_sum, scenario.report_share, counts)
    ledger = simulation.standing.ledger.tenants
    owed = ledger.owed_demand if scenario.report_share == "demand" else ledger.owed_quota
    facts = RunFacts(
        total_gpus=mean_gpus(capacity, outcomes),
        lost_gpu_seconds=cluster.tally.lost_gpu_seconds,
        fragments_mean=log.fragments_mean,
        windows=windows,
        tenant_had=ledger.had,
        tenant_owed=owed,
        tenant_weight=ledger.weight,
        runs=runs,
        capacity=capacity,
    )
    tally = cluster.tally
    score = placement_score(tally.placements)
    return SimulationResult(
        simulation.rules.policy_name, simulation.epoch, outcomes, trace_row, runs, weight, weight_sum,
        counts, scenario.report_share, windows, capacity, shared, facts.total_gpus, _accounts(ledger, owed),
        summarise(outcomes, facts), score, np.array(simulation.decisions), simulation.weighed,
        wall_seconds, cpu_seconds,
    )  # fmt: skip


def _accounts(tenants: TenantAccounts, owed: Floats) -> dict[str, tuple[float, float]]:
    columns = zip(tenants.had.tolist(), owed.tolist(), strict=True)
    return dict(zip(tenants.names, columns, strict=True))


def _with_truth(outcomes: Outcomes, row: Ints, cluster: VirtualCluster) -> Outcomes:
    """The outcomes with what only the simulator knows of the jobs."""
    truth = truth_of(cluster.population, cluster.scenario)
    columns = {name: column[row] for name, column in truth.items()}
    trace = cluster.scenario.trace
    well = outcomes.completed & ~np.isin(trace.status[row], BAD_ENDS)  # a job ends as its trace says
    return outcomes.with_columns(**columns, app=trace.app[row], completed=well)


def truth_of(population: Population, scenario: Scenario) -> dict[str, Floats]:
    """The run time of each job of the trace, by the names of the outcomes' columns."""
    jobs, rates, count = population.jobs, population.rates, len(scenario.trace)
    work, declared = jobs.work[:count], jobs.declared[:count]
    gpus = _gpus_by_type(scenario.machines, population.gpu_types)
    # A rate is that of the whole gang, so the mean of its requirement set is one gang.
    by_type = modelled_seconds(work, rates, gpus / gpus.sum(), np.ones(count))
    unknown = np.full(count, np.nan)
    return {
        "exclusive_seconds": work / _allowed(rates, jobs.gpu_type[:count], gpus > 0).max(axis=1),
        "declared_seconds": declared,
        "expected_seconds": expected_seconds(by_type, declared, unknown, unknown),
        "spread_seconds": formulas.ratio(work * jobs.gpus[:count], rates @ gpus, nothing=np.nan),
    }


def _gpus_by_type(machines: Machines, types: Sequence[str]) -> Floats:
    of_type = np.array([types.index(name) for name in machines.gpu_types], dtype=np.int64)
    return totals(of_type[machines.gpu_type], machines.gpus, len(types))


def _allowed(rates: NDArray[np.float64], gpu_type: Ints, there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Speeds on the types that a job may use and that exist, 0 elsewhere."""
    asked = (gpu_type[:, None] < 0) | (np.arange(rates.shape[1]) == gpu_type[:, None])
    return np.maximum(np.where(asked & there, rates, 0.0), 1e-9)
