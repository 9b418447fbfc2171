"""What happened to jobs in a window, told as events; only what changed costs anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from slurm_fair.ledger import metrics
from slurm_fair.ledger.charge import Charged
from slurm_fair.ledger.lives import Window
from slurm_fair.ledger.looks import BEGAN, CAME, HOLDS, OVER, STOPPED, Strip
from slurm_fair.model import Event, JobState, Ledger, Snapshot

_DONE = int(JobState.DONE)
_SUBMITTED, _STOPPED, _STARTED, _FINISHED = range(4)
_EDGES = (CAME, STOPPED, BEGAN, OVER)  # of these kinds
_KINDS = ("submitted", "stopped", "started", "finished")
_OF_FINISHED = ("had", "owed", "waited", "ran", "rho", "restarts", "submit", "end")
_WHEN = itemgetter(0, 1)  # time and key

# Time, key, kind, row of the lives, and what the ledger has to say of it.
_Said = tuple[float, int, int, int, dict[str, Any]]
_Sight = tuple[float, int, int, int, dict[str, Any], int, int]  # and the look and the row that show it


def happened(ledger: Ledger, strip: Strip, window: Window, result: Charged) -> list[list[Event]]:
    """Events of one window, in the order of time, of each look those that it is the first to show.

    Beginnings and ends name the user, the expected run time and the final state: reports want what the ledger does
    not. A start names the nodes, where the look shows the run.
    """
    told: list[list[Event]] = [[] for _ in strip.looks]
    of_kinds = (
        _submitted(ledger, window), _stopped(window, result), _started(window), _finished(window, result)
    )  # fmt: skip
    said = [one for kind, some in enumerate(of_kinds) if some for one in _with_sights(strip, kind, some)]
    # Of two events at the same instant, the one that must have come first stands first.
    said.sort(key=_WHEN)
    names, tenant, gpus = ledger.tenants.names, window.lives.tenant.item, window.lives.gpus.item
    for time, key, kind, life, detail, number, row in said:
        if row >= 0 and kind != _STOPPED:
            more = _name_nodes if kind == _STARTED else _name_people
            more(detail, strip.looks[number].snapshot, row, time)
        told[number].append(Event(time, _KINDS[kind], key, names[tenant(life)], gpus(life), detail))
    return told


def _with_sights(strip: Strip, kind: int, said: Sequence[_Said]) -> Iterator[_Sight]:
    """And which look first shows it, at which row of its jobs; row -1 where no look does."""
    sights = strip.sights(_EDGES[kind], np.array([key for _, key, *_ in said], dtype=np.int64))
    return ((*one, look, row) for one, look, row in zip(said, *sights, strict=True))


def _name_people(detail: dict[str, Any], snapshot: Snapshot, row: int, time: float) -> None:
    """Whose job it is, how long it was expected to run, as far as anybody says, and how it ended if it did."""
    del time
    jobs, told = snapshot.jobs, snapshot.told
    detail["user"] = snapshot.users[jobs.user.item(row)]
    declared = math.nan if told is None else told.declared_seconds.item(row)
    if math.isfinite(declared):
        detail["declared_seconds"] = declared
    limit = jobs.time_limit_seconds.item(row)
    if math.isfinite(limit):
        detail["limit_seconds"] = limit
    if jobs.state.item(row) == _DONE:
        detail["state"] = snapshot.reasons[row]


def _name_nodes(detail: dict[str, Any], snapshot: Snapshot, row: int, time: float) -> None:
    """The nodes that a run holds which began then; none where it is over."""
    jobs, held = snapshot.jobs, snapshot.held
    if not HOLDS.item(jobs.state.item(row)) or jobs.start.item(row) != time:
        return
    names = snapshot.nodes.names
    detail["nodes"] = [names[node] for node in held.nodes_of(row).tolist()]


def _submitted(ledger: Ledger, window: Window) -> list[_Said]:
    lives, met = window.lives, ledger.jobs.key.size
    keys, submits = lives.key[met:].tolist(), lives.submit[met:].tolist()
    return [(at, key, _SUBMITTED, met + n, {}) for n, (at, key) in enumerate(zip(submits, keys, strict=True))]


def _started(window: Window) -> list[_Said]:
    runs, fresh = window.runs, window.fresh
    if not fresh.size:
        return []
    life = runs.life[fresh]
    columns = (runs.start[fresh], window.lives.key[life], life, runs.restarts[fresh])
    return [
        (start, key, _STARTED, row, {"nodes": [], "restarts": restarts})
        for start, key, row, restarts in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _stopped(window: Window, result: Charged) -> list[_Said]:
    """Runs that are over while their job lives, or that were not its last one."""
    lives, runs, over = window.lives, window.runs, window.over
    if not over.size:
        return []
    life = runs.life[over]
    last = runs.incarnation[over] == lives.incarnation[life]
    rows = over[~(lives.ended[life] & last)]
    if not rows.size:
        return []
    life = runs.life[rows]
    columns = (
        runs.end[rows],
        lives.key[life],
        life,
        runs.start[rows],
        result.used[rows],
        runs.restarts[rows],
    )
    return [
        (end, key, _STOPPED, row, {"start": start, "had": had, "restarts": restarts})
        for end, key, row, start, had, restarts in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _finished(window: Window, result: Charged) -> list[_Said]:
    rows, lives = window.ended, window.lives
    if not rows.size:
        return []
    had, owed, end = result.had[rows], result.owed[rows], lives.active_to[rows].tolist()
    columns = (
        had.tolist(), owed.tolist(), result.waited[rows].tolist(), result.ran[rows].tolist(),
        metrics.rho_for_reports(had, owed).tolist(), lives.restarts[rows].tolist(),
        lives.submit[rows].tolist(), end,
    )  # fmt: skip
    details = (dict(zip(_OF_FINISHED, row, strict=True)) for row in zip(*columns, strict=True))
    ends = zip(end, lives.key[rows].tolist(), rows.tolist(), details, strict=True)
    return [(time, key, _FINISHED, life, detail) for time, key, life, detail in ends]
