"""What happened to jobs in a window, told as events; only what changed costs anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.charge import Charged
from slurm_fair.ledger.lives import Window
from slurm_fair.model import Event, JobAccounts, Ledger, Snapshot
from slurm_fair.model.columns import Ints

# Of two events at the same instant, the one that must have come first.
ORDER = ("submitted", "stopped", "started", "finished")


def happened(
    ledger: Ledger, snapshot: Snapshot, window: Window, seen: Ints | None, result: Charged
) -> tuple[Event, ...]:
    """Events of one window, in the order of time; `seen` as `window_seen` tells it."""
    names, events = ledger.tenants.names, list[Event]()
    met, count = ledger.jobs.key.size, window.accounts.key.size
    if met < count:
        rows = np.arange(met, count)
        submit = window.accounts.submit[met:].tolist()
        events += _events("submitted", submit, window.accounts, rows, names, [{} for _ in submit])
    if window.fresh.size:
        events += _started(window, snapshot, seen, names)
    if window.over.size:
        events += _stopped(window, result, names)
    if window.ended.size:
        events += _finished(window, result, names)
    if len(events) > 1:
        events.sort(key=lambda e: (e.time, e.key, ORDER.index(e.kind)))
    return tuple(events)


def _started(window: Window, snapshot: Snapshot, seen: Ints | None, names: tuple[str, ...]) -> list[Event]:
    runs, fresh = window.runs, window.fresh
    life = runs.life[fresh]
    nodes = _nodes(snapshot, np.where(runs.open[fresh], life if seen is None else seen[life], -1))
    details: list[dict[str, Any]] = [
        {"nodes": held, "restarts": restarts}
        for held, restarts in zip(nodes, runs.restarts[fresh].tolist(), strict=True)
    ]
    return _events("started", runs.start[fresh].tolist(), window.accounts, life, names, details)


def _nodes(snapshot: Snapshot, rows: Ints) -> list[list[str]]:
    """Names of the nodes that each of these rows of the snapshot holds; none for row -1."""
    held, names = snapshot.held, snapshot.nodes.names
    first, end = held.row.searchsorted(rows).tolist(), held.row.searchsorted(rows, "right").tolist()
    spans = (held.node[a:b].tolist() for a, b in zip(first, end, strict=True))
    return [[names[node] for node in span] for span in spans]


def _stopped(window: Window, result: Charged, names: tuple[str, ...]) -> list[Event]:
    """Runs that are over while their job lives, or that were not its last one."""
    lives, runs, over = window.lives, window.runs, window.over
    life = runs.life[over]
    last = runs.incarnation[over] == lives.incarnation[life]
    rows = over[~(lives.ended[life] & last)]
    if not rows.size:
        return []
    columns = (column[rows].tolist() for column in (runs.start, result.used, runs.restarts))
    details: list[dict[str, Any]] = [
        {"start": start, "had": had, "restarts": restarts}
        for start, had, restarts in zip(*columns, strict=True)
    ]
    return _events("stopped", runs.end[rows].tolist(), window.accounts, runs.life[rows], names, details)


def _finished(window: Window, result: Charged, names: tuple[str, ...]) -> list[Event]:
    rows, lives = window.ended, window.lives
    had, owed, end = result.had[rows], result.owed[rows], lives.active_to[rows]
    columns = {
        "had": had,
        "owed": owed,
        "waited": result.waited[rows],
        "ran": result.ran[rows],
        "rho": metrics.rho_for_reports(had, owed),
        "restarts": lives.restarts[rows],
        "submit": window.accounts.submit[rows],
        "end": end,
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    details = [dict(zip(columns, row, strict=True)) for row in values]
    return _events("finished", end.tolist(), window.accounts, rows, names, details)


def _events(
    kind: str,
    times: list[float],
    accounts: JobAccounts,
    rows: Ints,
    names: tuple[str, ...],
    details: list[dict[str, Any]],
) -> list[Event]:
    columns = (column[rows].tolist() for column in (accounts.key, accounts.tenant, accounts.gpus))
    return [
        Event(time, kind, key, names[tenant], gpus, detail)
        for time, key, tenant, gpus, detail in zip(times, *columns, details, strict=True)
    ]
