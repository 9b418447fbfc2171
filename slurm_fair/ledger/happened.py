"""What happened to jobs in a window, told as events; only what changed costs anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.charge import Totals, gpu_seconds
from slurm_fair.ledger.lives import JobLives, JobRuns
from slurm_fair.model import Event, Ledger, Snapshot
from slurm_fair.model.columns import Ints, all_of, any_of

# Of two events at the same instant, the one that must have come first.
ORDER = ("submitted", "stopped", "started", "finished")


def happened(
    ledger: Ledger, snapshot: Snapshot, lives: JobLives, runs: JobRuns, result: Totals
) -> tuple[Event, ...]:
    """Events of one window, in the order of time."""
    names, events = ledger.tenants.names, list[Event]()
    if any_of(lives.news):
        events += _submitted(lives, names)
    if any_of(runs.news):
        events += _started(lives, runs, snapshot, names)
    if not all_of(runs.open):
        events += _stopped(ledger, lives, runs, names)
    if any_of(lives.ended):
        events += _finished(lives, result, names)
    if len(events) > 1:
        events.sort(key=lambda e: (e.time, e.key, ORDER.index(e.kind)))
    return tuple(events)


def _submitted(lives: JobLives, names: tuple[str, ...]) -> list[Event]:
    rows = lives.news.nonzero()[0]
    return _events("submitted", lives.submit[rows].tolist(), lives, rows, names, [{} for _ in rows])


def _started(lives: JobLives, runs: JobRuns, snapshot: Snapshot, names: tuple[str, ...]) -> list[Event]:
    fresh = runs.news.nonzero()[0]
    life = runs.life[fresh]
    nodes = _nodes(snapshot, np.where(runs.open[fresh], lives.seen[life], -1))
    details: list[dict[str, Any]] = [
        {"nodes": held, "restarts": restarts}
        for held, restarts in zip(nodes, runs.restarts[fresh].tolist(), strict=True)
    ]
    return _events("started", runs.start[fresh].tolist(), lives, life, names, details)


def _nodes(snapshot: Snapshot, rows: Ints) -> list[list[str]]:
    """Names of the nodes that each of these rows of the snapshot holds; none for row -1."""
    held, names = snapshot.held, snapshot.nodes.names
    first, end = held.row.searchsorted(rows).tolist(), held.row.searchsorted(rows, "right").tolist()
    spans = (held.node[a:b].tolist() for a, b in zip(first, end, strict=True))
    return [[names[node] for node in span] for span in spans]


def _stopped(ledger: Ledger, lives: JobLives, runs: JobRuns, names: tuple[str, ...]) -> list[Event]:
    """Runs that are over while their job lives, or that were not its last one."""
    over = (~runs.open).nonzero()[0]
    life = runs.life[over]
    last = runs.incarnation[over] == lives.incarnation[life]
    rows = over[~(lives.ended[life] & last)]
    if not len(rows):
        return []
    some = runs.take(rows)
    used = gpu_seconds(some, ledger.began).tolist()
    details: list[dict[str, Any]] = [
        {"start": start, "had": had, "restarts": restarts}
        for start, had, restarts in zip(some.start.tolist(), used, some.restarts.tolist(), strict=True)
    ]
    return _events("stopped", some.end.tolist(), lives, some.life, names, details)


def _finished(lives: JobLives, result: Totals, names: tuple[str, ...]) -> list[Event]:
    rows = lives.ended.nonzero()[0]
    had, owed, end = result.had[rows], result.owed[rows], lives.active_to[rows]
    columns = {
        "had": had,
        "owed": owed,
        "waited": result.waited[rows],
        "ran": result.ran[rows],
        "rho": metrics.rho_for_reports(had, owed),
        "restarts": lives.restarts[rows],
        "submit": lives.submit[rows],
        "end": end,
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    details = [dict(zip(columns, row, strict=True)) for row in values]
    return _events("finished", end.tolist(), lives, rows, names, details)


def _events(
    kind: str,
    times: list[float],
    lives: JobLives,
    rows: Ints,
    names: tuple[str, ...],
    details: list[dict[str, Any]],
) -> list[Event]:
    who = zip(lives.key[rows].tolist(), lives.tenant[rows].tolist(), lives.gpus[rows].tolist(), strict=True)
    return [
        Event(time, kind, key, names[tenant], gpus, detail)
        for time, (key, tenant, gpus), detail in zip(times, who, details, strict=True)
    ]
