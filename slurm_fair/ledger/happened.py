"""What happened to jobs in a window, told as events; only what changed costs anything."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.charge import Totals, gpu_seconds
from slurm_fair.ledger.lives import JobLives, JobRuns
from slurm_fair.model import Event, Ledger, Snapshot
from slurm_fair.model.columns import Ints

# Of two events at the same instant, the one that must have come first.
ORDER = ("submitted", "stopped", "started", "finished")


def happened(
    ledger: Ledger, snapshot: Snapshot, lives: JobLives, runs: JobRuns, result: Totals
) -> tuple[Event, ...]:
    """Events of one window, in the order of time."""
    names = ledger.tenants.names
    events = [
        *_submitted(lives, names),
        *_started(lives, runs, snapshot, names),
        *_stopped(ledger, lives, runs, names),
        *_finished(lives, result, names),
    ]
    events.sort(key=lambda e: (e.time, e.key, ORDER.index(e.kind)))
    return tuple(events)


def _submitted(lives: JobLives, names: tuple[str, ...]) -> list[Event]:
    some = lives.take(np.flatnonzero(lives.news))
    return _events("submitted", some.submit.tolist(), some, names, [{} for _ in range(len(some))])


def _started(lives: JobLives, runs: JobRuns, snapshot: Snapshot, names: tuple[str, ...]) -> list[Event]:
    fresh = runs.take(np.flatnonzero(runs.news))
    some = lives.take(fresh.life)
    nodes = _nodes(snapshot, some.seen[fresh.open])
    details: list[dict[str, Any]] = [
        {"nodes": nodes.get(row, []), "restarts": restarts}
        for row, restarts in zip(some.seen.tolist(), fresh.restarts.tolist(), strict=True)
    ]
    return _events("started", fresh.start.tolist(), some, names, details)


def _nodes(snapshot: Snapshot, rows: Ints) -> dict[int, list[str]]:
    held = snapshot.held.only(rows)
    nodes: dict[int, list[str]] = defaultdict(list)
    for row, node in zip(held.row.tolist(), held.node.tolist(), strict=True):
        nodes[row].append(snapshot.nodes.names[node])
    return nodes


def _stopped(ledger: Ledger, lives: JobLives, runs: JobRuns, names: tuple[str, ...]) -> list[Event]:
    """Runs that are over while their job lives, or that were not its last one."""
    last = runs.incarnation == lives.incarnation[runs.life]
    over = runs.take(np.flatnonzero(~runs.open & ~(lives.ended[runs.life] & last)))
    used = gpu_seconds(over, ledger.began).tolist()
    details: list[dict[str, Any]] = [
        {"start": start, "had": had, "restarts": restarts}
        for start, had, restarts in zip(over.start.tolist(), used, over.restarts.tolist(), strict=True)
    ]
    return _events("stopped", over.end.tolist(), lives.take(over.life), names, details)


def _finished(lives: JobLives, result: Totals, names: tuple[str, ...]) -> list[Event]:
    rows = np.flatnonzero(lives.ended)
    some = lives.take(rows)
    had, owed = result.had[rows], result.owed[rows]
    columns = {
        "had": had,
        "owed": owed,
        "waited": result.waited[rows],
        "ran": result.ran[rows],
        "rho": metrics.rho_for_reports(had, owed),
        "restarts": some.restarts,
        "submit": some.submit,
        "end": some.active_to,
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    details = [dict(zip(columns, row, strict=True)) for row in values]
    return _events("finished", some.active_to.tolist(), some, names, details)


def _events(
    kind: str, times: list[float], lives: JobLives, names: tuple[str, ...], details: list[dict[str, Any]]
) -> list[Event]:
    rows = zip(times, lives.key.tolist(), lives.tenant.tolist(), lives.gpus.tolist(), details, strict=True)
    return [Event(time, kind, key, names[tenant], gpus, detail) for time, key, tenant, gpus, detail in rows]
