"""Small simulations for tests: say what matters, the rest is quiet.

`simulated([arrival(0, gpus=2, seconds=600)], "astraea", gpus=4, lease=600)` is the result of a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from slurm_fair.ledger import LedgerSettings
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim import (
    Costs,
    Listener,
    Outage,
    Scenario,
    SimulationResult,
    rules_for,
    simulate,
    with_looks_at_changes,
    with_renewal,
    with_reserve_after,
)
from slurm_fair.sim.scenario import Speeds
from slurm_fair.trace import JobRegimes, Machines, Throughputs, Trace, uniform


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job of a trace as a test wants it."""

    at: float = 0.0
    gpus: int = 1
    seconds: float = 600.0
    tenant: str = "a"
    job_id: str = ""  # empty = its place in the trace
    user: str = ""
    gpu_type: str = ""
    model: str = ""
    app: str = ""
    batch_size: int = 0
    nodes: int = 0
    weight: float = 1.0
    sensitivity: float = float("nan")
    declared: float = float("nan")
    epochs: int = 0
    choices: tuple[int, ...] = ()  # numbers of GPUs with which it can run


def arrival(at: float = 0.0, **columns: Any) -> Arrival:
    return Arrival(at, **columns)


def arrivals(latest: int, seconds: tuple[int, int], most: int = 8) -> st.SearchStrategy[list[Arrival]]:
    """A few gangs of two tenants, drawn."""
    one = st.builds(
        arrival,
        st.integers(0, latest).map(float),
        gpus=st.sampled_from((1, 2, 4, 8)),
        seconds=st.integers(*seconds).map(float),
        tenant=st.sampled_from("ab"),
    )
    return st.lists(one, min_size=1, max_size=most)


def _coded(values: Sequence[str]) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
    names = tuple(sorted(set(values) - {""}))
    return np.array([names.index(v) if v else -1 for v in values], dtype=np.int64), names


def trace(arrivals: Iterable[Arrival]) -> Trace:
    """The jobs in order of submission."""
    jobs = sorted(arrivals, key=lambda job: job.at)
    rows = len(jobs)
    tenant, tenants = _coded([job.tenant for job in jobs])
    user, users = _coded([job.user or job.tenant for job in jobs])
    gpu_type, gpu_types = _coded([job.gpu_type for job in jobs])
    model, models = _coded([job.model for job in jobs])
    app, apps = _coded([job.app for job in jobs])
    choice_sets = tuple(sorted({job.choices for job in jobs if job.choices}))
    choice_set = np.array(
        [choice_sets.index(job.choices) if job.choices else -1 for job in jobs], dtype=np.int64
    )

    def column(name: str, dtype: type = np.float64) -> Any:
        return np.array([getattr(job, name) for job in jobs], dtype=dtype)

    zeros = np.zeros(rows, dtype=np.int64)
    return Trace(
        job_id=np.array([job.job_id or str(number) for number, job in enumerate(jobs)], dtype=np.object_),
        submit_s=column("at"), gpus=column("gpus"), duration_s=column("seconds"), tenant=tenant, user=user,
        gpu_type=gpu_type, model=model, app=app, choice_set=choice_set, status=zeros.astype(np.int8),
        mode=zeros.astype(np.int8), weight=column("weight"), batch_size=column("batch_size", np.int64),
        epochs=column("epochs", np.int64), samples=zeros, total_steps=zeros,
        node_count=column("nodes", np.int64), sensitivity=column("sensitivity"), declared_s=column("declared"),
        epoch_seconds=np.full(rows, np.nan), tenants=tenants, users=users, gpu_types=gpu_types, models=models,
        apps=apps, choice_sets=choice_sets,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rules by which a simulated controller gives its leases."""

    lease: float | None = 600.0
    interval: float = 10.0
    interval_min: float = 0.0
    aligned: bool = True
    reserve_after: float | None = None
    renewal: float | None = None
    half_life: float = 0.0
    rounds: Literal["conserving", "gavel"] = "conserving"
    costs: Costs = field(default_factory=Costs)
    everyone: bool = False  # counts in quotas from the beginning

    @property
    def ledger(self) -> LedgerSettings:
        """The settings by which shares are counted."""
        return LedgerSettings(everyone_counts=self.everyone)


def simulated(
    jobs: Trace | Iterable[Arrival],
    policy: str = "astraea",
    *,
    gpus: int = 8,
    gpus_per_node: int = 8,
    machines: Machines | None = None,
    how: Rounds | None = None,
    weights: Mapping[str, float] | None = None,
    settings: dict[str, object] | None = None,
    regimes: Mapping[str, JobRegimes] | None = None,
    throughputs: Throughputs | None = None,
    outages: tuple[Outage, ...] = (),
    until: float = float("inf"),
    elastic_exponent: float = USUAL_EXPONENT,
    speeds: Speeds = "known",
    listen: Listener | None = None,
    wants: Collection[Want] = EVERYTHING,
) -> SimulationResult:
    how = how or Rounds()
    scenario = Scenario(
        trace=jobs if isinstance(jobs, Trace) else trace(jobs),
        machines=machines or uniform(gpus, gpus_per_node),
        costs=how.costs,
        weights=weights or {},
        regimes=regimes or {},
        throughputs=throughputs,
        outages=outages,
        rounds=how.rounds,
        until_s=until,
        elastic_exponent=elastic_exponent,
        speeds=speeds,
    )
    rules = rules_for(
        policy,
        settings or {},
        lease=how.lease,
        interval=how.interval,
        aligned=how.aligned,
        gavel_rounds=how.rounds == "gavel",
        checkpoint_cost=how.costs.checkpoint,
        ledger=how.ledger,
    )
    rules = with_renewal(with_reserve_after(rules, how.reserve_after), how.renewal)
    rules = with_looks_at_changes(rules, how.interval_min)
    rules = replace(rules, ledger=replace(rules.ledger, half_life_seconds=how.half_life))
    return simulate(scenario, rules, listen=listen, wants=wants)
