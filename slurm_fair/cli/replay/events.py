"""The recorded past as events of the kind that a simulation writes, so that every report can read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.one_run import FinishedRun
from slurm_fair.ledger.charging.advance import BY_WEIGHT
from slurm_fair.ledger.charging.window_events import GPU_WEIGHT
from slurm_fair.ledger.metrics.windows import Steps
from slurm_fair.ledger.outcomes.outcomes import Outcomes
from slurm_fair.model import Event, EventKind
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.sim.past import Jobs
from slurm_fair.sim.result import SimulationResult
from slurm_fair.trace.files import write_with
from slurm_fair_accounting.source.export import account_line, event_line

_HOUR = 3600.0
_WHY = "requeued, by whom accounting does not say"
_TRUTH = ("exclusive_seconds", "declared_seconds", "expected_seconds", "spread_seconds")


class _Run(NamedTuple):
    """One run of a job; no nodes where accounting names none."""

    start: float
    end: float
    gpus: int
    nodes: list[str]
    gpu_weight: float

    @property
    def said(self) -> dict[str, float]:
        """The weight of each of its GPUs, where that is not 1."""
        return {} if self.gpu_weight == 1.0 else {GPU_WEIGHT: self.gpu_weight}


def write_recorded(path: Path, case: Case, jobs: Jobs, really: FinishedRun) -> None:
    """Events and tenants' accounts, in the order of time."""
    total, shared = case.scenario.machines.total_gpus, float(really.result.shared.level[0])
    by_weight = {BY_WEIGHT: shared} if case.scenario.gpu_weights else {}
    first = Event(really.result.epoch, EventKind.CAPACITY, 0, "", total, by_weight)
    lines = [(moment.time, account_line(moment)) for moment in _moments(really)]
    lines += [(event.time, event_line(event)) for event in (first, *_events(case, jobs, really))]
    lines.sort(key=lambda line: line[0])  # what happened to one job at one instant stays in its order
    write_with(path, lambda text: text.writelines(line for _, line in lines))


# -- jobs -----------------------------------------------------------------------------------------------------


def _events(case: Case, jobs: Jobs, really: FinishedRun) -> Iterator[Event]:
    """Job after job, each in the order in which it lived."""
    result = really.result
    nodes = {(grant.key, grant.time): list(grant.nodes) for grant in really.grants}
    first = np.searchsorted(result.runs.job, np.arange(len(result.outcomes) + 1)).tolist()
    for job, name in enumerate(case.scenario.trace.job_id[result.trace_row].tolist()):
        runs = _runs(result, job, slice(*first[job : job + 2]), nodes)
        yield from _life(result.outcomes, job, name, jobs.state[jobs.row_of[name]], runs)


def _runs(
    result: SimulationResult, job: int, rows: slice, nodes: Mapping[tuple[int, float], list[str]]
) -> list[_Run]:
    key, runs = int(result.outcomes.key[job]), result.runs
    columns = (column[rows].tolist() for column in (runs.start, runs.end, runs.gpus, runs.gpu_weight))
    return [
        _Run(start, end, gpus, nodes.get((key, start), []), weight)
        for start, end, gpus, weight in zip(*columns, strict=True)
    ]


def _life(outcomes: Outcomes, job: int, name: str, state: str, runs: Sequence[_Run]) -> Iterator[Event]:
    """The events of a job. Accounting does not tell which of its requeues were pre-emptions."""
    whose = int(outcomes.key[job]), outcomes.tenants[int(outcomes.tenant[job])]
    user = {"user": outcomes.users[outcomes.user[job]]} if outcomes.user[job] >= 0 else {}
    who = {"name": name} | user
    end, gang, requeued = float(outcomes.end[job]), int(outcomes.gpus[job]), int(outcomes.preemptions[job])
    asked = float(outcomes.gpu_weight[job])
    came = who if asked == 1.0 else {**who, GPU_WEIGHT: asked}
    yield Event(float(outcomes.submit[job]), EventKind.SUBMITTED, *whose, gang, came)
    for at, run in enumerate(runs):
        begun = {"nodes": run.nodes, "restarts": at, **run.said}
        yield Event(run.start, EventKind.STARTED, *whose, run.gpus, begun)
        if at < requeued:
            held = {"why": _WHY, "held_seconds": run.end - run.start}
            yield Event(run.end, EventKind.REVOKED, *whose, run.gpus, held)
        if at < requeued or at + 1 < len(runs) or run.end != end:
            seconds = (run.end - run.start) * run.gpus * run.gpu_weight
            had = {"start": run.start, "had": seconds, "restarts": at, **run.said}
            yield Event(run.end, EventKind.STOPPED, *whose, run.gpus, had)
    account = _account(outcomes, job) | ({"state": state} if state else {}) | who
    yield Event(end, EventKind.FINISHED, *whose, gang, account)


def _account(outcomes: Outcomes, job: int) -> dict[str, Any]:
    """The detail of a job's `finished` event."""
    numbers = {name: float(getattr(outcomes, name)[job]) for name in ("had", "owed", "waited", "ran")}
    truth = {name: float(getattr(outcomes, name)[job]) for name in _TRUTH}
    return {
        **numbers,
        "rho": float(outcomes.rho_ltgf[job]),
        "restarts": int(outcomes.restarts[job]),
        "submit": float(outcomes.submit[job]),
        "end": float(outcomes.end[job]),
        **{name: seconds for name, seconds in truth.items() if math.isfinite(seconds)},
    }


# -- tenants --------------------------------------------------------------------------------------------------


def _moments(really: FinishedRun) -> Iterator[TenantMoment]:
    """Accounts at the beginning, each full hour, and the end."""
    result, outcomes, runs = really.result, really.result.outcomes, really.result.runs
    last = float(outcomes.ended_or_now.max())
    hours = np.arange(result.epoch // _HOUR + 1, math.ceil(last / _HOUR)) * _HOUR
    times = np.concatenate([[result.epoch], hours, [last]])
    since, quotas = np.full(len(times), result.epoch), result.quotas()
    for tenant, name in enumerate(outcomes.tenants):
        jobs, mine = outcomes.tenant == tenant, outcomes.tenant[runs.job] == tenant
        asked = outcomes.gpus[jobs] * outcomes.gpu_weight[jobs]
        demand = Steps.of(outcomes.submit[jobs], outcomes.ended_or_now[jobs], asked)
        held = Steps.of(runs.start[mine], runs.end[mine], runs.weighed_gpus[mine])
        weight, quota = float(result.weight[tenant]), quotas[tenant]
        columns = (
            held.integral(since, times),
            quota.integral(since, times),
            demand.least(quota).integral(since, times),
            held.at(times),
            demand.at(times),
        )
        for time, *account in zip(times.tolist(), *(column.tolist() for column in columns), strict=True):
            yield TenantMoment(time, name, weight, *account)
