"""The board: what a person may want to know about every managed job and tenant after one tick.

The commands draw it from the journal; for users who cannot read the journal the daemon publishes it as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.errors import StoreError
from slurm_fair.ledger import expected_seconds, latency_ratio, quota, rho_for_reports
from slurm_fair.model import Blocked, JobState, LeasePhase, Standing, TickRecord, Verdict, labels
from slurm_fair.model.columns import Floats, Ints, find

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Board:
    """Plain rows, in the order of deservingness; times in epoch seconds, lengths in seconds."""

    time: float
    tick: int
    policy: str
    term_seconds: float
    total_gpus: int
    dry_run: bool
    note: str
    tenants: tuple[Mapping[str, Any], ...]
    jobs: tuple[Mapping[str, Any], ...]
    left_alone: tuple[Mapping[str, str], ...]
    nodes_out: tuple[Mapping[str, str], ...]
    seconds: Mapping[str, float]

    def document(self) -> dict[str, Any]:
        """As one JSON document."""
        return {"v": _VERSION, **{name: getattr(self, name) for name in self.__dataclass_fields__}}

    def find(self, label: str) -> Mapping[str, Any] | None:
        """The row of one job."""
        return next((job for job in self.jobs if job["job"] == label), None)


def draw(record: TickRecord, standing: Standing) -> Board:
    """The board of one tick."""
    return Board(
        time=record.time,
        tick=record.number,
        policy=record.policy,
        term_seconds=record.terms.term,
        total_gpus=record.snapshot.total_gpus,
        dry_run=record.dry_run,
        note=" ".join(part for part in (record.plan.note, record.guard) if part),
        tenants=tuple(_tenants(record, standing)),
        jobs=tuple(_jobs(record, standing)),
        left_alone=tuple(
            {"job": alone.label, "reason": alone.reason} for alone in record.snapshot.left_alone
        ),
        nodes_out=tuple(
            {"node": name, "why": why}
            for name, why in zip(record.snapshot.nodes.names, record.snapshot.nodes.why, strict=True)
            if why
        ),
        seconds=dict(record.seconds),
    )


def _tenants(record: TickRecord, standing: Standing) -> list[dict[str, Any]]:
    ledger, jobs, names = standing.ledger.tenants, record.snapshot.jobs, record.snapshot.tenants.names
    here = {name: row for row, name in enumerate(names)}
    rho = rho_for_reports(ledger.had, ledger.owed_demand)
    running = np.bincount(jobs.tenant, jobs.gpus * jobs.holds_gpus, minlength=len(names))
    demand = np.bincount(jobs.tenant, jobs.gpus * jobs.active, minlength=len(names))
    total = np.full(len(ledger.weight), ledger.weight.sum())
    quotas = quota(record.snapshot.total_gpus, ledger.weight, total)
    rows = []
    for at, name in enumerate(ledger.names):
        row = here.get(name, -1)
        mine = jobs.tenant == row
        rows.append(
            {
                "tenant": name,
                "weight": float(ledger.weight[at]),
                "quota_gpus": float(quotas[at]),
                "gpus": int(running[row]) if row >= 0 else 0,
                "demand_gpus": int(demand[row]) if row >= 0 else 0,
                "running": int((mine & jobs.holds_gpus).sum()),
                "waiting": int((mine & (jobs.state == JobState.WAITING)).sum()),
                "had_gpu_seconds": float(ledger.had[at]),
                "owed_gpu_seconds": float(ledger.owed_demand[at]),
                "rho": float(rho[at]),
            }
        )
    return rows


def _jobs(record: TickRecord, standing: Standing) -> list[dict[str, Any]]:
    """One row per living job: the running ones by lease end, then the waiting ones by rank."""
    jobs = record.snapshot.jobs
    alive = jobs.state != JobState.DONE
    columns = _columns(record, standing)
    running = jobs.state != JobState.WAITING
    rank = np.where(record.plan.rank < 0, np.iinfo(np.int64).max, record.plan.rank)
    order = np.lexsort((jobs.key, rank, ~running))
    return [{name: column[row] for name, column in columns.items()} for row in order.tolist() if alive[row]]


def _columns(record: TickRecord, standing: Standing) -> dict[str, list[Any]]:
    snapshot, plan, jobs = record.snapshot, record.plan, record.snapshot.jobs
    account, lease = find(standing.ledger.jobs.key, jobs.key), find(standing.leases.key, jobs.key)
    ledger, leases = standing.ledger.jobs, standing.leases
    had, owed = _taken(ledger.had, account), _taken(ledger.owed, account)
    waited, ran = _taken(ledger.waited, account), _taken(ledger.ran, account)
    phases = leases.phase.astype(np.int64)
    started = (lease >= 0) & (_taken(phases, lease) != LeasePhase.GRANTED)
    ends = np.where(started, _taken(leases.end, lease), 0.0)
    return {
        "job": labels(jobs.key),
        "tenant": [snapshot.tenants.names[row] for row in jobs.tenant.tolist()],
        "user": [snapshot.users[row] for row in jobs.user.tolist()],
        "gpus": jobs.gpus.tolist(),
        "state": [JobState(code).name.lower() for code in jobs.state.tolist()],
        "verdict": [Verdict(code).name.lower() for code in plan.verdict.tolist()],
        "why": [plan.reasons[row] for row in plan.reason.tolist()],
        "blocked": [Blocked(code).name.lower() if code else "" for code in jobs.blocked.tolist()],
        "slurm_reason": list(snapshot.reasons),
        "qos": list(snapshot.qos or [""] * len(jobs)),
        "rank": plan.rank.tolist(),
        "rho": _known(np.where(owed > 0, rho_for_reports(had, owed), np.nan)),
        "latency_ratio": _known(latency_ratio(waited, _expected_seconds(record))),
        "had_gpu_seconds": had.tolist(),
        "owed_gpu_seconds": owed.tolist(),
        "waited_seconds": waited.tolist(),
        "ran_seconds": ran.tolist(),
        "submit": _taken(ledger.submit, account).tolist(),
        "restarts": jobs.restarts.tolist(),
        "lease_end": [end or None for end in ends.tolist()],
        "leases": (np.where(lease >= 0, _taken(leases.renewals, lease) + 1, 0)).tolist(),
        "nodes": _nodes(record),
        "expected_start": _expected(record, standing),
        "checkpoints": jobs.checkpoints.tolist(),
    }


def _taken(column: Floats | Ints, rows: Ints) -> Floats:
    """Values by row, 0 where there is none."""
    if not len(column):
        return np.zeros(len(rows))
    return np.where(rows >= 0, column[rows], 0)


def _known(values: Floats) -> list[float | None]:
    """None where there is no value yet: nothing owed, no run time to expect."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _expected_seconds(record: TickRecord) -> Floats:
    """How long each job would run without waiting, as far as anybody says."""
    jobs, told = record.snapshot.jobs, record.snapshot.told
    nothing = np.full(len(jobs), np.nan)
    declared = nothing if told is None else told.declared_seconds
    return expected_seconds(nothing, declared, nothing, jobs.time_limit_seconds)


def _nodes(record: TickRecord) -> list[str]:
    names: list[list[str]] = [[] for _ in range(len(record.snapshot.jobs))]
    for row, node in zip(record.snapshot.held.row.tolist(), record.snapshot.held.node.tolist(), strict=True):
        names[row].append(record.snapshot.nodes.names[node])
    return [",".join(mine) for mine in names]


def _expected(record: TickRecord, standing: Standing) -> list[float | None]:
    """When a waiting job may start, if everybody ahead of it takes whole leases: an estimate, not a promise."""
    plan, terms = record.plan, record.terms
    total = max(record.snapshot.total_gpus, 1)
    running = standing.leases.end[standing.leases.phase == LeasePhase.RUNNING]
    first = float(running.min()) if len(running) else record.time
    ranked = np.flatnonzero((plan.rank >= 0) & (plan.verdict == Verdict.WAIT))
    ranked = ranked[np.argsort(plan.rank[ranked])]
    ahead = np.cumsum(record.snapshot.jobs.gpus[ranked]) - record.snapshot.jobs.gpus[ranked]
    expected: list[float | None] = [None] * len(plan)
    for row, before in zip(ranked.tolist(), ahead.tolist(), strict=True):
        expected[row] = max(first, record.time) + before // total * terms.term
    return expected


def read_board(path: Path) -> Board:
    """A published board."""
    try:
        document = json.loads(path.read_text())
        if document.pop("v") != _VERSION:
            raise ValueError("another version")
        return Board(**document)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(f"{path}: not a board that this version can read ({problem})") from None
