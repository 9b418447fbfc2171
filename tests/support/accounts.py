"""Ledgers for tests of policies: what tenants and jobs have had and were owed, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slurm_fair.model import JobAccounts, Leases, LeaseTerms, Ledger, Plan, Snapshot, TenantAccounts, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import View


@dataclass(frozen=True, slots=True)
class Account:
    """GPU-seconds of one tenant or job; a job that never ran is new."""

    had: float = 0.0
    owed: float = 0.0
    ran: float = 1.0


def ledger(
    snapshot: Snapshot,
    tenants: Mapping[str, Account] | None = None,
    jobs: Mapping[str, Account] | None = None,
) -> Ledger:
    """Accounts of every tenant and job of the snapshot; those not given have had nothing and never ran."""
    names = snapshot.tenants.names
    of_tenant = [(tenants or {}).get(name, Account()) for name in names]
    of_job = [(jobs or {}).get(label, Account(ran=0.0)) for label in labels(snapshot.jobs.key)]
    had, owed = _floats(a.had for a in of_tenant), _floats(a.owed for a in of_tenant)
    rows = snapshot.jobs
    nothing = np.zeros(len(rows))
    job_accounts = JobAccounts(
        key=rows.key,
        submit=rows.submit,
        incarnation=rows.submit,
        restarts=rows.restarts,
        tenant=rows.tenant,
        gpus=rows.usual_gpus,
        weight=rows.weight,
        had=_floats(a.had for a in of_job),
        owed=_floats(a.owed for a in of_job),
        waited=nothing,
        ran=_floats(a.ran for a in of_job),
        run_start=nothing,
        run_had=nothing,
        active=np.ones(len(rows), dtype=bool),
        waits=np.ones(len(rows), dtype=bool),
        gpu_weight=rows.gpu_weight,
        run_gpus=np.zeros(len(rows), dtype=np.int64),
    )
    weight = snapshot.tenants.weight
    tenant_accounts = TenantAccounts(names, weight, had, owed, owed, np.zeros(len(names)))
    return Ledger(snapshot.time, 0.0, float(snapshot.total_gpus), tenant_accounts, job_accounts)


def view(
    snapshot: Snapshot,
    leases: Leases | None = None,
    tenants: Mapping[str, Account] | None = None,
    jobs: Mapping[str, Account] | None = None,
    term: float = 900.0,
) -> View:
    """The policy's view of it, at the snapshot's instant."""
    books = ledger(snapshot, tenants, jobs)
    return View(snapshot, books, leases or Leases.none(), LeaseTerms(term=term), snapshot.time)


def verdicts(snapshot: Snapshot, plan: Plan) -> dict[str, Verdict]:
    """Verdict of each job by its label."""
    return dict(zip(labels(snapshot.jobs.key), map(Verdict, plan.verdict.tolist()), strict=True))


def reasons(snapshot: Snapshot, plan: Plan) -> dict[str, str]:
    """Reason of each job by its label."""
    told = [plan.explanation.reasons[i] for i in plan.explanation.reason.tolist()]
    return dict(zip(labels(snapshot.jobs.key), told, strict=True))


def places(snapshot: Snapshot, plan: Plan) -> dict[str, dict[str, int]]:
    """GPUs by node name of each granted job."""
    found: dict[str, dict[str, int]] = {}
    names = labels(snapshot.jobs.key)
    table = (plan.places.row.tolist(), plan.places.node.tolist(), plan.places.gpus.tolist())
    for row, node, gpus in zip(*table, strict=True):
        found.setdefault(names[row], {})[snapshot.nodes.names[node]] = gpus
    return found


def _floats(values: Any) -> Any:
    return np.array(list(values), dtype=np.float64)
