"""Events of jobs and of leases: whose they are is looked up here."""

from __future__ import annotations

from slurm_fair.model import Event, EventKind, Leases, Snapshot

# In the detail of a promise that was taken back: true if the job's gate had been opened.
GATE_WAS_OPENED = "opened"


def job_event(now: float, kind: EventKind, snapshot: Snapshot, row: int, **detail: object) -> Event:
    """An event of the job in this row of the snapshot."""
    jobs = snapshot.jobs
    return Event(now, kind, jobs.key.item(row), _tenant(snapshot, row), jobs.gpus.item(row), detail)


def lease_event(
    kind: EventKind, leases: Leases, lease: int, snapshot: Snapshot, row: int, **detail: object
) -> Event:
    """An event of a lease, as the snapshot shows it; `row` is that of its job, -1 where the job is gone."""
    tenant = _tenant(snapshot, row) if row >= 0 else ""
    return Event(snapshot.time, kind, leases.key.item(lease), tenant, leases.gpus.item(lease), detail)


def _tenant(snapshot: Snapshot, row: int) -> str:
    return snapshot.tenants.names[snapshot.jobs.tenant.item(row)]
