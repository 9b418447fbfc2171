"""The rows of a board: one for each living job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from slurm_fair.board.progress import known, progress_columns
from slurm_fair.board.row import LEASE_WORDS, word
from slurm_fair.forecast import Forecast
from slurm_fair.ledger import (
    expected_seconds,
    latency_ratio,
    rho_for_reports,
)
from slurm_fair.model import (
    Blocked,
    JobState,
    LeasePhase,
    Leases,
    Snapshot,
    Standing,
    TickRecord,
    Verdict,
    labels,
)
from slurm_fair.model.columns import Floats, Ints, find, take_or
from slurm_fair.model.latest_starts import latest_starts
from slurm_fair.model.reservation import reservations
from slurm_fair.policy.decided import Decided
from slurm_fair.reconcile.for_whom import requests
from slurm_fair.reconcile.free import awaited


def job_rows(record: TickRecord, standing: Standing, ahead: Forecast, rule: Decided) -> list[dict[str, Any]]:
    """One row per living job."""
    jobs = record.snapshot.jobs
    alive = ~jobs.done
    columns = _columns(record, standing) | _expected(record, ahead)
    columns["decided"] = known(rule.numbers) if rule.by else [None] * len(jobs)
    order = _order(record, columns)
    return [{name: column[row] for name, column in columns.items()} for row in order.tolist() if alive[row]]


def _sizes(snapshot: Snapshot) -> list[list[int]]:
    """The numbers of GPUs with which each job can run; none for a job that has one size."""
    sizes: list[list[int]] = [[] for _ in range(len(snapshot.jobs))]
    if snapshot.sizes is not None:
        for row, gpus in zip(snapshot.sizes.row.tolist(), snapshot.sizes.gpus.tolist(), strict=True):
            sizes[row].append(gpus)
    return sizes


class _Group(IntEnum):
    """The groups of jobs on a board, from its head on."""

    STARTING = 0
    RUNNING = 1
    WAITING = 2
    OTHER = 3


def _order(record: TickRecord, columns: Mapping[str, list[Any]]) -> Ints:
    """The rows by group; those that run by the end of the lease, those that wait by rank."""
    jobs, rank = record.snapshot.jobs, record.plan.explanation.rank
    waits, ranked = jobs.waiting, rank >= 0
    lease, promise = columns["lease"], LEASE_WORDS[LeasePhase.GRANTED]
    promised = waits & np.array([word == promise for word in lease], dtype=bool)
    group = np.select(
        [promised, ~waits, ranked], [_Group.STARTING, _Group.RUNNING, _Group.WAITING], _Group.OTHER
    )
    ends = np.array([end or math.inf for end in columns["lease_end"]])
    within = np.where(group == _Group.RUNNING, ends, np.where(group == _Group.WAITING, rank, 0))
    return np.lexsort((jobs.key, within, group))


def _columns(record: TickRecord, standing: Standing) -> dict[str, list[Any]]:
    snapshot, plan, jobs = record.snapshot, record.plan, record.snapshot.jobs
    account = find(standing.ledger.jobs.key, jobs.key)
    ledger = standing.ledger.jobs
    had, owed = take_or(ledger.had, account, 0.0), take_or(ledger.owed, account, 0.0)
    waited, ran = take_or(ledger.waited, account, 0.0), take_or(ledger.ran, account, 0.0)
    return {
        "job": labels(jobs.key),
        "tenant": [snapshot.tenants.names[row] for row in jobs.tenant.tolist()],
        "user": [snapshot.users[row] for row in jobs.user.tolist()],
        "gpus": jobs.gpus.tolist(),
        "state": [word(JobState(code)) for code in jobs.state.tolist()],
        "verdict": [word(Verdict(code)) for code in plan.verdict.tolist()],
        "why": [plan.explanation.reasons[row] for row in plan.explanation.reason.tolist()],
        "blocked": [word(Blocked(code)) if code else "" for code in jobs.blocked.tolist()],
        "slurm_reason": list(snapshot.reasons),
        "qos": list(snapshot.qos or [""] * len(jobs)),
        "rank": plan.explanation.rank.tolist(),
        "rho": known(np.where(owed > 0, rho_for_reports(had, owed), np.nan)),
        "latency_ratio": known(latency_ratio(waited, _expected_seconds(record))),
        "had_gpu_seconds": had.tolist(),
        "owed_gpu_seconds": owed.tolist(),
        "waited_seconds": waited.tolist(),
        "ran_seconds": ran.tolist(),
        "submit": take_or(ledger.submit, account, 0.0).tolist(),
        "restarts": jobs.restarts.tolist(),
        "checkpoints": jobs.checkpoints.tolist(),
        "can_be_asked": jobs.revocable.tolist(),
        "start": _instants(jobs.start),
        "ends_by": _instants(np.where(jobs.start > 0, jobs.start + jobs.time_limit_seconds, 0.0)),
        "latest_start": _latest_starts(record),
        "nodes": _nodes(record),
        "pinned": jobs.pinned.tolist(),
        "usual_gpus": jobs.usual_gpus.tolist(),
        "sizes": _sizes(snapshot),
        "rigid": [snapshot.rigid.get(key, "") for key in jobs.key.tolist()],
        "set_aside": _set_aside(record, standing),
        "no_turn": _no_turn(record),
        **progress_columns(snapshot),
        **_leases(record, standing),
    }


def _no_turn(record: TickRecord) -> list[str]:
    """The reason why a job that asks for turns of the profiler gets none; empty for all others."""
    said = record.plan.explanation.no_turn
    reason = {key: text for text, keys in said.items() for key in keys.tolist()}
    return [reason.get(key, "") for key in record.snapshot.jobs.key.tolist()]


def _set_aside(record: TickRecord, standing: Standing) -> list[dict[str, Any] | None]:
    """The nodes that are set aside for each gang, since when, and when they are expected to be had."""
    kept = {
        each.key: {"nodes": list(each.nodes), "since": each.since, "expected": each.due}
        for each in reservations(standing.memory)
    }
    return [kept.get(key) for key in record.snapshot.jobs.key.tolist()]


def _leases(record: TickRecord, standing: Standing) -> dict[str, list[Any]]:
    """The columns of leases: where one stands, its number, when it ends, where it was promised, and what is
    not free there yet."""
    jobs, leases, names = record.snapshot.jobs, standing.leases, standing.leases.node_names
    lease = find(leases.key, jobs.key)
    phases = take_or(leases.phase, lease, -1)
    promised, lacks = phases == LeasePhase.GRANTED, awaited(leases, record.snapshot)
    sites = leases.promises_by(jobs.key, names).sites if promised.any() else {}
    where = [
        [names[node] for node, _ in sites.get(row, ())] if promised[row] else [] for row in range(len(jobs))
    ]
    return {
        "lease": ["" if phase < 0 else LEASE_WORDS[LeasePhase(phase)] for phase in phases.tolist()],
        "lease_end": _instants(np.where(promised, 0.0, take_or(_ends(record, leases), lease, 0.0))),
        "leases": (take_or(leases.renewals, lease, -1) + 1).tolist(),
        "promised_nodes": [",".join(nodes) for nodes in where],
        "awaits": [list(lacks.get(row, ())) for row in range(len(jobs))],
        "asked": _instants(take_or(leases.asked, lease, 0.0)),
        "asked_for": _for_whom(record, standing),
    }


def _ends(record: TickRecord, leases: Leases) -> Floats:
    """The ends of the leases; one that is over goes on to the next beat, unless others get its GPUs."""
    over = leases.running & (leases.end <= record.time)
    return np.where(over, record.terms.renewed_at(leases.end), leases.end)


def _for_whom(record: TickRecord, standing: Standing) -> list[Any]:
    """The jobs that get the GPUs of each job that was asked to give way; a job that only moves gives to nobody."""
    asked = requests(standing, record.snapshot)
    names = labels(record.snapshot.jobs.key)
    return [
        [other for other in asked[key]["for"] if other["job"] != name] if key in asked else []
        for key, name in zip(record.snapshot.jobs.key.tolist(), names, strict=True)
    ]


def _instants(values: Floats) -> list[float | None]:
    """None where there is none: 0, or never."""
    return [value if 0 < value < math.inf else None for value in values.tolist()]


def _expected_seconds(record: TickRecord) -> Floats:
    """Seconds that each job would run without waiting, as far as anybody says."""
    jobs, told = record.snapshot.jobs, record.snapshot.told
    nothing = np.full(len(jobs), np.nan)
    declared = nothing if told is None else told.declared_seconds
    return expected_seconds(nothing, declared, nothing, jobs.time_limit_seconds)


def _latest_starts(record: TickRecord) -> list[float | None]:
    """The latest instant at which Slurm starts each job, since it ends it then; None without a deadline."""
    return known(latest_starts(record.snapshot))


def _nodes(record: TickRecord) -> list[str]:
    names: list[list[str]] = [[] for _ in range(len(record.snapshot.jobs))]
    for row, node in zip(record.snapshot.held.row.tolist(), record.snapshot.held.node.tolist(), strict=True):
        names[row].append(record.snapshot.nodes.names[node])
    return [",".join(mine) for mine in names]


def _expected(record: TickRecord, ahead: Forecast) -> dict[str, list[float | None]]:
    """Expected starts of waiting jobs, or until when they do not start: estimates, no promises.

    The forecast may be some looks old: a start that it saw before this look is expected now. A job that would
    start too late for its deadline never starts: it does not start before the latest instant.
    """
    jobs, now = record.snapshot.jobs, record.time
    waiting, latest = np.where(jobs.waiting, jobs.key, -1).tolist(), latest_starts(record.snapshot).tolist()
    starts: list[float | None] = []
    not_before: list[float | None] = []
    for key, last in zip(waiting, latest, strict=True):
        start, none_until = ahead.starts.get(key), ahead.not_before.get(key)
        if last < max(start or none_until or now, now):
            start, none_until = None, last if last >= now else None
        starts.append(None if start is None else max(start, now))
        not_before.append(none_until)
    return {"expected_start": starts, "not_before": not_before}
