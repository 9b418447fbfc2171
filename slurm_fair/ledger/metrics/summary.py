"""All metrics of one run or one period in one row: the keys are those of `slurm-fair simulate --json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from slurm_fair.ledger import formulas
from slurm_fair.ledger.metrics import efficiency, finish_time
from slurm_fair.ledger.metrics.efficiency import Distribution
from slurm_fair.ledger.metrics.evenness import jain, largest_envy
from slurm_fair.ledger.metrics.latency import latency_ratio, recent_latency_ratio
from slurm_fair.ledger.metrics.windows import Steps, TenantWindows
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs
from slurm_fair.model.columns import Bools, Floats

_NAN = float("nan")
RECENT_HOURS = 24.0  # of RAQLR, before the end of the run or period


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts of a run that the table of outcomes lacks. Metrics that need a fact that is left out are unknown."""

    total_gpus: float  # M; where it changed, its mean over time
    capacity_gpu_seconds: float | None = None  # of the span; None = M * span
    lost_gpu_seconds: float = _NAN  # to checkpoints and restarts
    fragments_mean: float = _NAN
    windows: TenantWindows | None = None
    tenant_had: Floats | None = None  # integral of A_j of each tenant
    tenant_owed: Floats | None = None  # integral of S_j = min(D_j, Q_j)
    tenant_weight: Floats | None = None
    runs: Runs | None = None
    capacity: Steps | None = None  # M over time


@dataclass(frozen=True, slots=True)
class Summary:
    """One value a metric; nan = not known. Fields are the JSON keys, in their order.

    jct, wait, slowdown, ftf, latency ratio and ltgf speak of the jobs that have ended; preemptions, restarts and
    gpu_seconds of all jobs.
    """

    makespan_s: float
    jct_mean_s: float
    jct_p50_s: float
    jct_p95_s: float
    jct_p99_s: float
    wait_mean_s: float
    slowdown_mean: float
    slowdown_p95: float
    utilization: float
    gpu_seconds: float
    fragments_mean: float
    preemptions: int
    restarts: int
    overhead_fraction: float
    ftf_themis_worst: float
    ftf_themis_unfair: float
    ftf_shockwave_worst: float
    ftf_shockwave_unfair: float
    ftf_static_worst: float
    ftf_static_unfair: float
    ftf_sia_worst: float
    ftf_sia_unfair: float
    latency_ratio_max: float
    latency_ratio_mean: float
    ltgf_job_loss_fraction: float
    ltgf_tenant_unfair_fraction: float
    jain_tenants: float
    jobs_completed: int
    jobs_total: int
    ftf_themis_mean: float
    ftf_shockwave_mean: float
    ftf_static_mean: float
    ftf_sia_mean: float
    latency_ratio_recent: float  # RAQLR
    utilization_loaded: float
    largest_envy_gpu_seconds: float

    def to_dict(self) -> dict[str, float | int | None]:
        """The metrics for JSON, which knows neither nan nor infinity: None in their place."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


def summarise(outcomes: Outcomes, facts: RunFacts) -> Summary:
    """Every metric of a run at once."""
    since, until = efficiency.span(outcomes)
    capacity = facts.capacity_gpu_seconds
    held = efficiency.gpu_seconds_held(outcomes)
    jct = Distribution.of(efficiency.completion_seconds(outcomes))
    slow = Distribution.of(efficiency.slowdown(outcomes))
    unfair = facts.windows.unfair if facts.windows is not None else _NAN
    return Summary(
        makespan_s=efficiency.makespan(outcomes),
        jct_mean_s=jct.mean,
        jct_p50_s=jct.p50,
        jct_p95_s=jct.p95,
        jct_p99_s=jct.p99,
        wait_mean_s=Distribution.of(efficiency.wait_seconds(outcomes)).mean,
        slowdown_mean=slow.mean,
        slowdown_p95=slow.p95,
        utilization=efficiency.utilization(
            held, facts.total_gpus * (until - since) if capacity is None else capacity
        ),
        gpu_seconds=held,
        fragments_mean=facts.fragments_mean,
        preemptions=int(outcomes.preemptions.sum()),
        restarts=int(outcomes.restarts.sum()),
        overhead_fraction=efficiency.overhead_fraction(facts.lost_gpu_seconds, held),
        **Fates.of(outcomes, facts.total_gpus).figures(),
        ltgf_tenant_unfair_fraction=unfair,
        jain_tenants=_jain_tenants(facts),
        jobs_completed=int(outcomes.completed.sum()),
        jobs_total=len(outcomes),
        utilization_loaded=_loaded(outcomes, facts, until),
        largest_envy_gpu_seconds=_envy(facts),
    )


@dataclass(frozen=True, slots=True)
class Fates:
    """The fairness that each job met, one entry a job; nan where it is not known, or the job is not over."""

    rho_ltgf: Floats
    finish: Mapping[str, Floats]  # rho by the name of its denominator
    latency: Floats
    end: Floats
    last: float  # until when the table reaches

    @classmethod
    def of(cls, outcomes: Outcomes, total_gpus: float) -> Self:
        """Measure each job of a table against all the others."""
        return cls(
            np.where(outcomes.over, outcomes.rho_ltgf, np.nan),
            job_finish_time_ratios(outcomes, total_gpus),
            job_latency_ratio(outcomes),
            outcomes.end,
            efficiency.span(outcomes)[1],
        )

    def figures(self, rows: Bools | slice = slice(None)) -> dict[str, float]:
        """The metrics of these jobs, by their keys."""
        found: dict[str, float] = {}
        for name, values in self.finish.items():
            found[f"ftf_{name}_mean"] = Distribution.of(values[rows]).mean
            found[f"ftf_{name}_worst"] = finish_time.worst(values[rows])
            found[f"ftf_{name}_unfair"] = finish_time.unfair(values[rows])
        latency, rho = Distribution.of(self.latency[rows]), self.rho_ltgf[rows]
        recent = recent_latency_ratio(self.latency[rows], self.end[rows], self.last, RECENT_HOURS)
        known = rho[~np.isnan(rho)]
        return found | {
            "latency_ratio_max": latency.most,
            "latency_ratio_mean": latency.mean,
            "latency_ratio_recent": recent,
            "ltgf_job_loss_fraction": formulas.loss_fraction(known) if known.size else _NAN,
        }


def job_latency_ratio(outcomes: Outcomes) -> Floats:
    """LR of each job that has ended; nan for the others, and where nobody knew how long it would run."""
    return np.where(outcomes.over, latency_ratio(outcomes.waited, outcomes.expected_seconds), np.nan)


def job_finish_time_ratios(outcomes: Outcomes, total_gpus: float) -> dict[str, Floats]:
    """rho of each job by the name of its denominator."""
    return {name: finish_time.ratio_of(outcomes, name, total_gpus) for name in finish_time.INDEPENDENT}


def _jain_tenants(facts: RunFacts) -> float:
    """Jain's index over the rho of the tenants that were owed something; nan where nobody was."""
    if facts.tenant_had is None or facts.tenant_owed is None:
        return _NAN
    claims = facts.tenant_owed > 0
    if not claims.any():
        return _NAN
    return jain(formulas.rho_for_reports(facts.tenant_had[claims], facts.tenant_owed[claims]))


def _envy(facts: RunFacts) -> float:
    if facts.tenant_had is None or facts.tenant_weight is None:
        return _NAN
    return largest_envy(facts.tenant_had, facts.tenant_weight)


def _loaded(outcomes: Outcomes, facts: RunFacts, until: float) -> float:
    if facts.runs is None or facts.capacity is None:
        return _NAN
    runs, known = facts.runs, np.isfinite(outcomes.submit)
    held = Steps.of(runs.start, runs.end, runs.gpus)
    demand = Steps.of(outcomes.submit[known], outcomes.ended_or_now[known], outcomes.gpus[known])
    return efficiency.loaded_utilization(held, demand, facts.capacity, until)
