"""The board: what a person may want to know about every managed job and tenant after one tick.

The commands draw it from the journal; for users who cannot read the journal the daemon publishes it as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.board.job_rows import job_rows
from slurm_fair.board.progress import known
from slurm_fair.errors import StoreError
from slurm_fair.forecast import Forecast
from slurm_fair.ledger import (
    quotas_now,
    rho_for_reports,
    with_those_left_alone,
)
from slurm_fair.model import (
    LeftAlone,
    Snapshot,
    Standing,
    TickRecord,
)
from slurm_fair.model.gpu_weight import named
from slurm_fair.policy import Policy, View
from slurm_fair.policy.decided import Decided, decided

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Board:
    """Plain rows; times in epoch seconds, lengths in seconds.

    Jobs: those that are about to start, those that run by the end of their leases, then those that wait as they
    deserve it. What has a default was added after the first release: an older daemon does not publish it.
    """

    time: float
    tick: int
    policy: str
    term_seconds: float
    total_gpus: int
    dry_run: bool
    note: str
    tenants: tuple[Mapping[str, Any], ...]
    jobs: tuple[Mapping[str, Any], ...]
    left_alone: tuple[Mapping[str, Any], ...]
    nodes_out: tuple[Mapping[str, str], ...]
    seconds: Mapping[str, float]
    interval_seconds: float = 0.0
    gpus: Mapping[str, int] = field(default_factory=dict)  # used, others, free, out: all GPUs of the nodes
    finished: tuple[Mapping[str, Any], ...] = ()  # jobs that ended in the last day, newest first
    estimates: Mapping[str, Any] = field(default_factory=dict)  # how far expected starts were off
    in_doubt: tuple[Mapping[str, Any], ...] = ()  # node lists that a user or an earlier daemon set
    decided: Mapping[str, Any] = field(default_factory=dict)  # the number's name, and how it decides
    gpu_weights: Mapping[str, float] = field(default_factory=dict)  # what a GPU counts by its type; empty = 1
    plans: Mapping[str, Any] = field(default_factory=dict)  # how many the daemon made, and how many failed

    def document(self) -> dict[str, Any]:
        """The board as one JSON document."""
        return {"v": _VERSION, **{name: getattr(self, name) for name in self.__dataclass_fields__}}

    def find(self, label: str) -> Mapping[str, Any] | None:
        """The row of one job."""
        return next((job for job in self.jobs if job["job"] == label), None)


def draw(
    record: TickRecord,
    standing: Standing,
    ahead: Forecast | None = None,
    *,
    estimates: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    counts_seconds: float = math.inf,
    plans: Mapping[str, Any] | None = None,
) -> Board:
    """The board of one tick, with what was found out beside it; its policy tells what decided.

    A tenant counts in quotas for `counts_seconds` after its last job.
    """
    seen = record.snapshot
    rule = _decided(record, standing, policy, counts_seconds)
    return Board(
        time=record.time,
        tick=record.number,
        policy=record.policy,
        term_seconds=record.terms.term,
        total_gpus=seen.total_gpus,
        dry_run=record.dry_run,
        note=" ".join(part for part in (record.plan.note, record.plan.fault, record.guard) if part),
        tenants=tuple(_tenants(record, standing, counts_seconds)),
        jobs=tuple(job_rows(record, standing, ahead or Forecast(), rule)),
        left_alone=tuple(_alone(each) for each in seen.left_alone),
        nodes_out=tuple(
            {"node": name, "why": why}
            for name, why in zip(seen.nodes.names, seen.nodes.why, strict=True)
            if why
        ),
        seconds=dict(record.seconds),
        interval_seconds=record.terms.interval,
        gpus=_gpus(seen),
        estimates=estimates or {},
        in_doubt=tuple({"job": each.label, "nodes": each.nodes, "user": each.user} for each in seen.in_doubt),
        decided=_in_words(rule),
        gpu_weights=_gpu_weights(seen),
        plans=plans or {},
    )


def _decided(record: TickRecord, standing: Standing, policy: Policy | None, counts_seconds: float) -> Decided:
    if policy is None:
        return Decided()
    view = View(
        record.snapshot,
        standing.ledger,
        standing.leases,
        record.terms,
        record.time,
        record.seed,
        memory=standing.memory,
        counts_seconds=counts_seconds,
    )
    return decided(policy, record.plan, view)


def _in_words(rule: Decided) -> dict[str, Any]:
    """The name and the direction of the deciding number; each job's row has the number itself."""
    if not rule.by:
        return {}
    words = {
        "by": rule.by,
        "of_tenants": rule.of_tenants,
        "highest_first": rule.highest_first,
        "then": rule.then,
    }
    return {**words, "about": rule.about} if rule.about else words


def _alone(alone: LeftAlone) -> dict[str, Any]:
    row = {"job": alone.label, "reason": alone.reason, "user": alone.user}
    return {**row, "unreadable": alone.unreadable}


def _gpus(seen: Snapshot) -> dict[str, int]:
    """Every GPU of the managed nodes once: of managed jobs, of other jobs, free, or on a node that is out."""
    nodes = seen.nodes
    used = seen.held.per_node(len(nodes))
    others = np.minimum(nodes.gpus_others, np.maximum(nodes.gpus - used, 0))
    left = np.maximum(nodes.gpus - used - others, 0)
    free = int(left[nodes.usable].sum())
    return {
        "used": int(used.sum()),
        "others": int(others.sum()),
        "free": free,
        "out": int(left.sum()) - free,
    }


def _gpu_weights(seen: Snapshot) -> dict[str, float]:
    """The weight of each GPU type among the managed nodes; empty where GPUs are not weighed."""
    if seen.gpu_weights is None:
        return {}
    kinds = np.unique(seen.nodes.gpu_type).tolist()
    return {named(seen.gpu_types[kind]): seen.gpu_weights.item(kind) for kind in kinds}


def _tenants(record: TickRecord, standing: Standing, counts_seconds: float) -> list[dict[str, Any]]:
    ledger, names = standing.ledger.tenants, record.snapshot.tenants.names
    jobs = with_those_left_alone(record.snapshot).jobs  # also what is left alone is charged
    here = {name: row for row, name in enumerate(names)}
    rho = known(rho_for_reports(ledger.had, ledger.owed_demand))
    by_quota = known(rho_for_reports(ledger.had, ledger.owed_quota))
    running = np.bincount(jobs.tenant, jobs.gpus * jobs.holds_gpus, minlength=len(names))
    demand = np.bincount(jobs.tenant, jobs.usual_gpus * jobs.active, minlength=len(names))
    at_home = {name: row for row, name in enumerate(ledger.names)}
    with_jobs = np.array([at_home.get(names[row], -1) for row in np.flatnonzero(demand)], dtype=np.int64)
    total = record.snapshot.weighted_gpus
    quotas = quotas_now(total, ledger, with_jobs, record.time, counts_seconds)
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
                "waiting": int((mine & jobs.waiting).sum()),
                "had_gpu_seconds": float(ledger.had[at]),
                "owed_gpu_seconds": float(ledger.owed_demand[at]),
                "rho": rho[at],
                "rho_quota": by_quota[at],
            }
        )
    return rows


def read_board(path: Path) -> Board:
    """A published board; what an older daemon does not publish is not known."""
    try:
        document = json.loads(path.read_text())
        if not isinstance(document, dict) or document.pop("v", None) != _VERSION:
            raise ValueError("no document, or one of another version")
        return _checked(Board(**document))
    except OSError as problem:
        raise StoreError(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as problem:
        raise StoreError(f"{path}: not a board that this version can read ({problem})") from None


_TABLES = ("tenants", "jobs", "left_alone", "nodes_out", "finished", "in_doubt")
_MAPPINGS = ("seconds", "gpus", "estimates", "decided", "plans")
_ADDED = {
    "can_be_asked": False,
    "start": None,
    "ends_by": None,
    "latest_start": None,
    "lease": "",
    "promised_nodes": "",
    "awaits": (),
    "asked": None,
    "asked_for": (),
    "not_before": None,
    "pinned": False,
    "decided": None,
    "reported": None,
    "left_seconds": None,
    "left_spread": None,
    "job_class": "",
    "no_turn": "",
}


def _checked(board: Board) -> Board:
    """The same with every table made of rows; ValueError where one is not."""
    for name in _TABLES:
        rows = getattr(board, name)
        if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{name} is no table")
    for name in _MAPPINGS:
        if not isinstance(getattr(board, name), dict):
            raise ValueError(f"{name} is no mapping")
    for each in fields(board):
        value = getattr(board, each.name)
        number = isinstance(value, int | float) and math.isfinite(value)
        if each.type in ("float", "int") and not number:
            raise ValueError(f"{each.name} is no number")
    jobs: Any = [{**_ADDED, **row} for row in board.jobs]
    if any(_JOB_KEYS - row.keys() for row in jobs):
        raise ValueError("a job's row lacks a column")
    return replace(board, jobs=jobs)


_JOB_KEYS = {
    "job", "tenant", "user", "gpus", "state", "verdict", "why", "blocked", "slurm_reason", "rank", "rho",
    "latency_ratio", "had_gpu_seconds", "owed_gpu_seconds", "waited_seconds", "ran_seconds", "restarts",
    "lease_end", "leases", "nodes", "expected_start",
}  # fmt: skip
