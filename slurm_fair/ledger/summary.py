"""All metrics of one run or one period in one row: the keys are those of `slurm-fair simulate --json`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from slurm_fair.ledger import efficiency, finish, metrics
from slurm_fair.ledger.balance import jain
from slurm_fair.ledger.efficiency import Spread
from slurm_fair.ledger.latency import latency_ratio
from slurm_fair.ledger.outcomes import Outcomes
from slurm_fair.ledger.windows import TenantWindows
from slurm_fair.model.columns import Floats

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table of outcomes does not know of the run; what is left out makes its metrics unknown."""

    total_gpus: float  # M; where it changed, its mean over time
    capacity_gpu_seconds: float | None = None  # of the span; None = M * span
    lost_gpu_seconds: float = _NAN  # to checkpoints and restarts
    fragments_mean: float = _NAN
    windows: TenantWindows | None = None
    tenant_had: Floats | None = None  # integral of A_j of each tenant
    tenant_owed: Floats | None = None  # integral of S_j = min(D_j, Q_j)


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

    def to_dict(self) -> dict[str, float | int | None]:
        """For JSON, which knows neither nan nor infinity: None in their place."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


def summarise(outcomes: Outcomes, facts: Facts) -> Summary:
    """Every metric of a run at once."""
    since, until = efficiency.span(outcomes)
    capacity = facts.capacity_gpu_seconds
    held = efficiency.gpu_seconds(outcomes)
    jct = Spread.of(efficiency.completion_seconds(outcomes))
    slow = Spread.of(efficiency.slowdown(outcomes))
    latency = Spread.of(job_latency_ratio(outcomes))
    unfair = facts.windows.unfair if facts.windows is not None else _NAN
    return Summary(
        makespan_s=efficiency.makespan(outcomes),
        jct_mean_s=jct.mean,
        jct_p50_s=jct.p50,
        jct_p95_s=jct.p95,
        jct_p99_s=jct.p99,
        wait_mean_s=Spread.of(efficiency.wait_seconds(outcomes)).mean,
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
        **_finish(outcomes, facts.total_gpus),
        latency_ratio_max=latency.most,
        latency_ratio_mean=latency.mean,
        ltgf_job_loss_fraction=_job_loss(outcomes),
        ltgf_tenant_unfair_fraction=unfair,
        jain_tenants=_jain_tenants(facts),
        jobs_completed=int(outcomes.completed.sum()),
        jobs_total=len(outcomes),
    )


def job_latency_ratio(outcomes: Outcomes) -> Floats:
    """LR of each job that has ended; nan for the others, and where nobody knew how long it would run."""
    return np.where(outcomes.over, latency_ratio(outcomes.waited, outcomes.expected_seconds), np.nan)


def job_finish_rho(outcomes: Outcomes, total_gpus: float) -> dict[str, Floats]:
    """rho of each job by the name of its denominator."""
    return {name: finish.finish_rho(outcomes, name, total_gpus) for name in finish.INDEPENDENT}


def _finish(outcomes: Outcomes, total_gpus: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, values in job_finish_rho(outcomes, total_gpus).items():
        found[f"ftf_{name}_worst"] = finish.worst(values)
        found[f"ftf_{name}_unfair"] = finish.unfair(values)
    return found


def _job_loss(outcomes: Outcomes) -> float:
    """Sharing-loss jobs among those whose end and claim are known."""
    known = outcomes.rho_ltgf[outcomes.over & ~np.isnan(outcomes.rho_ltgf)]
    return metrics.loss_fraction(known) if known.size else _NAN


def _jain_tenants(facts: Facts) -> float:
    """Jain's index over the rho of the tenants that were owed something."""
    if facts.tenant_had is None or facts.tenant_owed is None:
        return _NAN
    claims = facts.tenant_owed > 0
    return jain(metrics.rho_for_reports(facts.tenant_had[claims], facts.tenant_owed[claims]))
