"""What a simulation came to: outcomes of jobs, metrics, and the simulator's own cost."""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import metrics
from slurm_fair.ledger.efficiency import span
from slurm_fair.ledger.finish import mean_active
from slurm_fair.ledger.latency import expected_seconds, modelled_seconds
from slurm_fair.ledger.outcomes import Outcomes, Runs, told
from slurm_fair.ledger.summary import Facts, Summary, summarise
from slurm_fair.ledger.timeline import totals
from slurm_fair.ledger.windows import Steps, TenantWindows, edges_of, exact_windows
from slurm_fair.model import TenantAccounts
from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.sim.cluster import VirtualCluster
from slurm_fair.sim.drive import Simulation
from slurm_fair.sim.log import Log


@dataclass(frozen=True, slots=True)
class Result:
    """One policy's run over one scenario; instants count from the epoch of its clock."""

    policy: str
    epoch: float
    outcomes: Outcomes  # row i is job `trace_row[i]` of the scenario's trace
    trace_row: Ints
    runs: Runs
    windows: TenantWindows
    capacity: Steps  # M over time
    mean_gpus: float  # M, averaged over time
    accounts: Mapping[str, tuple[float, float]]  # GPU-seconds that each tenant had, and was owed by eq. 8
    summary: Summary
    placement_score: float
    decisions: Floats  # seconds that the policy took at each look
    wall_seconds: float
    cpu_seconds: float

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
            "wall_s": self.wall_seconds,
            "cpu_s": self.cpu_seconds,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def result_of(simulation: Simulation, log: Log, wall_seconds: float, cpu_seconds: float) -> Result:
    """Everything that can be said of a simulation that is over."""
    cluster, until = simulation.cluster, simulation.clock.now()
    outcomes, runs = told(log.events, until)
    trace_row = find(cluster.jobs.key[: cluster.jobs.count], outcomes.key)
    outcomes = _with_truth(outcomes, trace_row, cluster)
    scenario, resized = simulation.scenario, np.array(cluster.life.resized, dtype=np.float64)
    capacity = Steps(resized[:, 0], resized[:, 1])
    last = float(outcomes.ended_or_now.max(initial=simulation.epoch))
    weight, edges = scenario.weights_of(outcomes.tenants), edges_of(simulation.epoch, last)
    windows = exact_windows(outcomes, runs, weight, capacity, edges, scenario.weight_sum)
    ledger = simulation.standing.ledger.tenants
    facts = Facts(
        total_gpus=_mean(capacity, *span(outcomes)),
        lost_gpu_seconds=cluster.tally.lost_gpu_seconds,
        fragments_mean=log.fragments_mean,
        windows=windows,
        tenant_had=ledger.had,
        tenant_owed=ledger.owed_demand,
    )
    tally = cluster.tally
    score = tally.placement_score / tally.placements if tally.placements else math.nan
    return Result(
        simulation.rules.policy_name, simulation.epoch, outcomes, trace_row, runs, windows,
        capacity, facts.total_gpus, _accounts(ledger), summarise(outcomes, facts), score,
        np.array(simulation.decisions), wall_seconds, cpu_seconds,
    )  # fmt: skip


def _accounts(tenants: TenantAccounts) -> dict[str, tuple[float, float]]:
    columns = zip(tenants.had.tolist(), tenants.owed_demand.tolist(), strict=True)
    return dict(zip(tenants.names, columns, strict=True))


def _mean(capacity: Steps, since: float, until: float) -> float:
    """M, averaged over the time that the metrics speak of."""
    return float(capacity.mean(np.array([since]), np.array([until]))[0])


def _with_truth(outcomes: Outcomes, row: Ints, cluster: VirtualCluster) -> Outcomes:
    """What only the simulator knows of the jobs: how long they would run alone."""
    jobs, people = cluster.jobs, cluster.people
    work, rates = jobs.work[row], people.rates[row]
    gpus = _gpus_by_type(cluster)
    alone = work / _allowed(rates, jobs.gpu_type[row], gpus > 0).max(axis=1)
    # A rate is that of the whole gang, so the mean of its requirement set is one gang.
    by_type = modelled_seconds(work, rates, gpus / gpus.sum(), np.ones(len(row)))
    declared = jobs.declared[row]
    expected = expected_seconds(by_type, declared, np.full(len(row), np.nan), np.full(len(row), np.nan))
    outcomes = outcomes.with_columns(
        exclusive_seconds=alone, declared_seconds=declared, expected_seconds=expected,
        app=cluster.scenario.trace.app[row],
    )  # fmt: skip
    return outcomes.with_columns(sia_seconds=_sia_seconds(outcomes, work, rates, gpus))


def _gpus_by_type(cluster: VirtualCluster) -> Floats:
    gpus = cluster.scenario.machines.gpus
    return totals(np.array(cluster.floor.type_of), gpus, len(cluster.people.gpu_types))


def _allowed(rates: NDArray[np.float64], gpu_type: Ints, there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Speeds on the types that a job may use and that exist, 0 elsewhere."""
    asked = (gpu_type[:, None] < 0) | (np.arange(rates.shape[1]) == gpu_type[:, None])
    return np.maximum(np.where(asked & there, rates, 0.0), 1e-9)


def _sia_seconds(outcomes: Outcomes, work: Floats, rates: NDArray[np.float64], gpus: Floats) -> Floats:
    """Run time alone on a 1/N share of every type, N = mean number of active jobs during the job's life.

    A gang on less than its GPUs goes slower in proportion (time slices), on more it goes no faster.
    """
    share = gpus / np.maximum(mean_active(outcomes), 1.0)[:, None]
    speed = (rates * share).sum(axis=1) / np.maximum(outcomes.gpus, 1)
    seconds: Floats = metrics.ratio(work, np.minimum(speed, rates.max(axis=1)), nothing=np.nan)
    return seconds
