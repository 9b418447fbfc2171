"""What happened to jobs in a window, told as events; only what changed costs anything."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.charge import Charged
from slurm_fair.ledger.lives import JobLives, Window
from slurm_fair.ledger.settings import DAY
from slurm_fair.model import CAPACITY, Event, Ledger, Snapshot
from slurm_fair.model.columns import Ints, all_of

_WHEN = attrgetter("time", "key")
_ENDS = np.array([0, 1])
_OF_FINISHED = ("had", "owed", "waited", "ran", "rho", "restarts", "submit", "end")


def happened(
    ledger: Ledger, snapshot: Snapshot, window: Window, seen: Ints | None, result: Charged
) -> tuple[Event, ...]:
    """Events of one window, in the order of time; `seen` as `window_seen` tells it."""
    names, lives, events = ledger.tenants.names, window.lives, list[Event]()
    met, count = ledger.jobs.key.size, lives.key.size
    # Of two events at the same instant, the one that must have come first stands first.
    if met < count:
        submit = lives.submit[met:].tolist()
        events += _events("submitted", submit, lives, slice(met, count), names, [{} for _ in submit])
    if window.over.size:
        events += _stopped(window, result, names)
    if window.fresh.size:
        events += _started(window, snapshot, seen, names)
    if window.ended.size:
        events += _finished(window, result, names)
    if len(events) > 1:
        events.sort(key=_WHEN)
    return tuple(events)


def resized(ledger: Ledger, snapshot: Snapshot) -> tuple[Event, ...]:
    """M at first, when it changes, and once a day: reports of a period need to know it at its beginning."""
    total, now, level = snapshot.total_gpus, snapshot.time, ledger.total_gpus
    new_day = now // DAY != ledger.time // DAY
    if total == level and not snapshot.resized and not new_day:
        return ()
    events: list[Event] = []
    for instant, gpus in snapshot.resized or ((now, total),):
        if gpus != level:
            events.append(Event(max(instant, ledger.time), CAPACITY, 0, "", gpus))
            level = gpus
    if new_day and not events:
        events.append(Event(now, CAPACITY, 0, "", total))
    return tuple(events)


def _started(window: Window, snapshot: Snapshot, seen: Ints | None, names: tuple[str, ...]) -> list[Event]:
    runs, fresh = window.runs, window.fresh
    life, is_open = runs.life[fresh], runs.open[fresh]
    rows = life if seen is None else seen[life]
    nodes = _nodes(snapshot, rows if all_of(is_open) else np.where(is_open, rows, -1))
    details: list[dict[str, Any]] = [
        {"nodes": held, "restarts": restarts}
        for held, restarts in zip(nodes, runs.restarts[fresh].tolist(), strict=True)
    ]
    return _events("started", runs.start[fresh].tolist(), window.lives, life, names, details)


def _nodes(snapshot: Snapshot, rows: Ints) -> list[list[str]]:
    """Names of the nodes that each of these rows of the snapshot holds; none for row -1."""
    held, names = snapshot.held, snapshot.nodes.names
    spans = held.row.searchsorted(rows[:, None] + _ENDS).tolist()
    return [[names[node] for node in held.node[first:end].tolist()] for first, end in spans]


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
    return _events("stopped", runs.end[rows].tolist(), window.lives, runs.life[rows], names, details)


def _finished(window: Window, result: Charged, names: tuple[str, ...]) -> list[Event]:
    rows, lives = window.ended, window.lives
    had, owed, end = result.had[rows], result.owed[rows], lives.active_to[rows].tolist()
    columns = (
        had.tolist(), owed.tolist(), result.waited[rows].tolist(), result.ran[rows].tolist(),
        metrics.rho_for_reports(had, owed).tolist(), lives.restarts[rows].tolist(),
        lives.submit[rows].tolist(), end,
    )  # fmt: skip
    details = [dict(zip(_OF_FINISHED, row, strict=True)) for row in zip(*columns, strict=True)]
    return _events("finished", end, lives, rows, names, details)


def _events(
    kind: str,
    times: list[float],
    lives: JobLives,
    rows: Ints | slice,
    names: tuple[str, ...],
    details: list[dict[str, Any]],
) -> list[Event]:
    keys, tenants, gpus = lives.key[rows].tolist(), lives.tenant[rows].tolist(), lives.gpus[rows].tolist()
    return [
        Event(time, kind, key, names[tenant], gang, detail)
        for time, key, tenant, gang, detail in zip(times, keys, tenants, gpus, details, strict=True)
    ]
