"""Reports on jobs: one row per job, and how long each tenant's jobs waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from slurm_fair.ledger import Distribution, rho_for_reports
from slurm_fair.model import EventKind, label
from slurm_fair_accounting.reports.history import Live, history_of
from slurm_fair_accounting.reports.weighed import marked
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report, Row
from slurm_fair_accounting.timelines import Story

JOB_COLUMNS = (
    Column("job", "JobID", Kind.TEXT),
    Column("tenant", "Tenant", Kind.TEXT),
    Column("user", "User", Kind.TEXT),
    Column("state", "State", Kind.TEXT),
    Column("gpus", "GPUs", Kind.COUNT),
    Column("submit", "Submit", Kind.INSTANT),
    Column("start", "Start", Kind.INSTANT),
    Column("end", "End", Kind.INSTANT),
    Column("run_seconds", "Run", Kind.SECONDS),
    Column("wait_seconds", "Wait", Kind.SECONDS),
    Column("leases", "Leases", Kind.COUNT),
    Column("restarts", "Restarts", Kind.COUNT),
    Column("had_gpu_seconds", "Had(GPUh)", Kind.GPU_HOURS),
    Column("owed_gpu_seconds", "Owed(GPUh)", Kind.GPU_HOURS),
    Column("rho", "rho", Kind.RATIO),
)
WAIT_COLUMNS = (
    Column("tenant", "Tenant", Kind.TEXT),
    Column("jobs", "Jobs", Kind.COUNT),
    Column("wait_mean_seconds", "MeanWait", Kind.SECONDS),
    Column("wait_p50_seconds", "MedianWait", Kind.SECONDS),
    Column("wait_p95_seconds", "P95Wait", Kind.SECONDS),
    Column("wait_p99_seconds", "P99Wait", Kind.SECONDS),
    Column("wait_max_seconds", "MaxWait", Kind.SECONDS),
    Column("run_mean_seconds", "MeanRun", Kind.SECONDS),
)


def jobs(source: JournalReader, period: Period, choice: Choice) -> Report:
    """Jobs that ended in the period, and those that live if it reaches the present; accounts of whole lives."""
    history = history_of(source, period)
    rows = [
        _job(story, history.live.get(story.key))
        for story in history.stories
        if choice.takes(story.tenant, story.user)
    ]
    rows.sort(key=lambda row: (row["submit"] or 0.0, row["job"]))
    return marked(Report("jobs", "Jobs", JOB_COLUMNS, tuple(with_rho(rows)), period, period), source)


def waits(source: JournalReader, period: Period, choice: Choice) -> Report:
    """Time that the jobs that ended in the period had waited in all, pre-empted time too."""
    waited: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in source.events(period.start, period.end, kinds=(EventKind.FINISHED,), tenant=choice.tenant):
        if choice.takes(event.tenant, str(event.detail.get("user", ""))):
            waited[event.tenant].append((float(event.detail["waited"]), float(event.detail["ran"])))
    rows = [_waits(tenant, np.array(waited[tenant])) for tenant in sorted(waited)]
    samples = {tenant: [seconds for seconds, _ in waited[tenant]] for tenant in sorted(waited)}
    return Report("waits", "Waits of ended jobs", WAIT_COLUMNS, tuple(rows), period, period, samples=samples)


def with_rho(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows with their fairness, where both accounts are known."""
    known = [
        row for row in rows if row["had_gpu_seconds"] is not None and row["owed_gpu_seconds"] is not None
    ]
    had = np.array([row["had_gpu_seconds"] for row in known], dtype=np.float64)
    owed = np.array([row["owed_gpu_seconds"] for row in known], dtype=np.float64)
    for row, rho in zip(known, rho_for_reports(had, owed).tolist(), strict=True):
        row["rho"] = rho
    return [{"rho": None, **row} for row in rows]


def _job(story: Story, live: Live | None) -> dict[str, Any]:
    row = {
        "job": label(story.key),
        "tenant": story.tenant,
        "user": story.user,
        "gpus": story.gpus,
        "submit": story.submit,
        "start": story.runs[0][0] if story.runs else None,
        "leases": len([lease for lease in story.leases if lease.start is not None]),
        "restarts": story.restarts,
    }
    if story.finished is not None:
        return row | _finished(story.finished)
    if live is not None:
        return row | _live(live)
    running = bool(story.runs) and story.runs[-1][1] is None
    return row | _accounts("RUNNING" if running else "WAITING", None, None, None, None, None)


def _finished(detail: Any) -> dict[str, Any]:
    accounts = (detail.get(name) for name in ("ran", "waited", "had", "owed"))
    return _accounts(str(detail.get("state", "ENDED")), detail["end"], *accounts)


def _live(live: Live) -> dict[str, Any]:
    state = "RUNNING" if live.run_start else "WAITING" if live.active else "HELD"
    accounts = _accounts(state, None, live.ran, live.waited, live.had, live.owed)
    return accounts | {"submit": live.submit, "restarts": live.restarts}


def _accounts(
    state: str,
    end: float | None,
    ran: float | None,
    waited: float | None,
    had: float | None,
    owed: float | None,
) -> dict[str, Any]:
    return {
        "state": state,
        "end": end,
        "run_seconds": ran,
        "wait_seconds": waited,
        "had_gpu_seconds": had,
        "owed_gpu_seconds": owed,
    }


def _waits(tenant: str, seconds: Any) -> Row:
    waited, ran = Distribution.of(seconds[:, 0]), Distribution.of(seconds[:, 1])
    return {
        "tenant": tenant,
        "jobs": waited.count,
        "wait_mean_seconds": waited.mean,
        "wait_p50_seconds": waited.p50,
        "wait_p95_seconds": waited.p95,
        "wait_p99_seconds": waited.p99,
        "wait_max_seconds": waited.most,
        "run_mean_seconds": ran.mean,
    }
