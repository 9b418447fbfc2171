"""Looks that a ledger has not been brought up to yet, and which of them can be folded into it together.

A look is plain when it shows nothing but arrivals, starts and ends since the look before, at instants between
the two: the ledger counts all of them from their instants, whichever look showed them first. So it does with jobs
that gave their GPUs back at the very instant up to which it has charged everybody. Everything else (other
requeues, holds, weights, gangs, jobs that are gone, late news) counts from a look, and that look is folded alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, JobTable, Ledger, Snapshot, Untold
from slurm_fair.model.columns import ZERO, Bools, Ints, all_of, any_of, code

Column = NDArray[Any]

_DONE, _OVER = code(JobState.DONE), int(JobState.DONE)
_WAITING, _RUNNING = code(JobState.WAITING), code(JobState.RUNNING)
HOLDS = np.isin(np.arange(len(JobState)), (JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED))
HOLDS.setflags(write=False)
# What makes a job the same job with the same claim; all of its kind have equally wide columns.
_CLAIM = attrgetter("key", "submit", "restarts", "tenant", "gpus", "weight")
_LASTING = attrgetter("key", "tenant", "gpus", "weight")  # of that, what a requeue leaves as it is
_OF_RUNS = attrgetter("restarts", "submit", "state", "start")
_SHOWN = ("key", "submit", "restarts", "tenant", "state", "blocked", "gpus", "start", "end", "weight")
_COLUMNS = attrgetter(*_SHOWN)


class Edges(NamedTuple):
    """Rows of a look's jobs: those of which it is the first to show that they came, ran, ended or were stopped."""

    came: list[int]
    began: list[int]
    over: list[int]
    stopped: list[int]


_NOTHING = Edges([], [], [], [])
_NOBODY: Ints = np.zeros(0, dtype=np.int64)


class Look:
    """A look, and what became of jobs since the one before, as soon as the ledger has found out."""

    __slots__ = ("edges", "highest", "known", "snapshot", "told")

    def __init__(self, snapshot: Snapshot, told: Untold, known: int) -> None:
        keys = snapshot.jobs.key
        self.snapshot, self.told = snapshot, told
        self.known = known  # the highest key of a job that was ever shown before: Slurm uses ids again
        self.highest = max(known, keys.item(-1)) if keys.size else known
        self.edges: Edges | None = None  # since the look before, where it is plain and somebody had to know


def edges_between(base: Ledger, before: Snapshot, look: Look) -> Edges | None:
    """What a look shows since the one before, if it is plain; `base` is the ledger that both are folded into."""
    shown = look.snapshot
    if shown.total_gpus != before.total_gpus or shown.resized or not _same_tenants(before, shown):
        return None
    old, new = before.jobs, shown.jobs
    lives = old.state != _DONE
    lived = None if all_of(lives) else lives.nonzero()[0]
    count = old.key.size if lived is None else lived.size
    if new.key.size < count:
        return None
    same = _same_claims(_CLAIM, old, new, lived, count)
    stopped = _NOBODY if same else _stopped(base, before, shown, lived, count)
    if stopped is None:
        return None
    state, start = old.state, old.start
    if lived is not None:
        state, start = state[lived], start[lived]
    moved = new.start[:count] != start
    other = moved | (new.state[:count] != state)
    other[stopped] = False
    changed = other.nonzero()[0]
    held = HOLDS.take(state[changed]) & (start[changed] > ZERO)
    # Who was seen to hold GPUs has held them since the same instant.
    if any_of(held & moved[changed]) or not _same_holds(old, new, lived, changed):
        return None
    if new.key.size > count:
        if new.key[count] <= look.known:
            return None
        changed = np.concatenate((changed, np.arange(count, new.key.size)))
    edges = _edges(base, before.time, shown, changed, held) if changed.size else _NOTHING
    return edges._replace(stopped=stopped.tolist()) if edges is not None and stopped.size else edges


def _same_tenants(before: Snapshot, shown: Snapshot) -> bool:
    old, new = before.tenants, shown.tenants
    return old is new or (old.names == new.names and _alike(old.weight, new.weight))


def _same_claims(
    claim: Callable[[JobTable], tuple[Column, ...]],
    old: JobTable,
    new: JobTable,
    lived: Ints | None,
    count: int,
) -> bool:
    """Whether all who lived are listed first, and claim what they did."""
    for one, other in zip(claim(old), claim(new), strict=True):
        if not _alike(one if lived is None else one.take(lived), other[:count]):
            return False
    return True


def _stopped(base: Ledger, before: Snapshot, shown: Snapshot, lived: Ints | None, count: int) -> Ints | None:
    """Rows of jobs that were requeued at the instant of both looks and of the ledger; None where more is new.

    Each had its run charged up to that very instant, so that it does not matter from which look on it is over.
    """
    if not base.time == before.time == shown.time:
        return None
    if not _same_claims(_LASTING, before.jobs, shown.jobs, lived, count):
        return None
    columns, new = _OF_RUNS(before.jobs), shown.jobs
    restarts, submit, state, start = columns if lived is None else (column[lived] for column in columns)
    again = new.restarts[:count] != restarts
    if any_of((new.submit[:count] != submit) & ~again):
        return None
    rows: Ints = again.nonzero()[0]
    began = start[rows]  # of a run of no length the ledger does not know
    plainly = (state[rows] == _RUNNING) & (began > 0) & (began < shown.time) & (new.state[rows] == _WAITING)
    plainly &= (new.restarts[rows] == restarts[rows] + 1) & (new.submit[rows] == shown.time)
    return rows if all_of(plainly) else None


def _same_holds(old: JobTable, new: JobTable, lived: Ints | None, changed: Ints) -> bool:
    """Whether nobody was held back or let go, and nobody changed who was held back."""
    if not np.count_nonzero(old.blocked) and not np.count_nonzero(new.blocked):
        return True
    claimed, claims = old.active, new.active
    if lived is not None:
        claimed = claimed[lived]
    other = (claims[: claimed.size] != claimed) & (new.state[: claimed.size] != _DONE)
    return not any_of(other) and all_of(claimed[changed])


def _edges(base: Ledger, since: float, shown: Snapshot, rows: Ints, held: Bools) -> Edges | None:
    """These rows show something new; `held` tells of those that are not new whether they held GPUs before."""
    jobs, now, edges, before = shown.jobs, shown.time, Edges([], [], [], []), held.tolist()
    columns = (column[rows].tolist() for column in (jobs.state, jobs.submit, jobs.start, jobs.end))
    for number, (row, state, submit, start, end) in enumerate(zip(rows.tolist(), *columns, strict=True)):
        is_new, over = number >= len(before), state == _OVER
        had = not is_new and before[number]
        # It holds GPUs now, or it did since it began, and is over.
        ran = start > 0 and (end > start if over else HOLDS.item(state))
        if is_new:
            if not since <= submit <= now:
                return None
            edges.came.append(row)
        elif not ran and (had or not over):
            return None  # it gave its GPUs back and goes on, or never had them, or changed in some other way
        if ran and not had:
            if not since <= start <= now:
                return None
            edges.began.append(row)
        if over:
            if not since <= end <= now or end <= base.time:
                return None
            edges.over.append(row)
    return edges


def shown_by(looks: Sequence[Look]) -> JobTable:
    """All jobs that any of the looks shows, as the last one that does: also those who were over before."""
    tables = [_COLUMNS(looks[-1].snapshot.jobs)]
    for look in looks[:-1]:
        over = look.edges.over if look.edges is not None else []
        if over:
            tables.append(tuple(column[over] for column in _COLUMNS(look.snapshot.jobs)))
    if len(tables) == 1:
        return looks[-1].snapshot.jobs
    columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
    order = columns[0].argsort()
    return JobTable.made_of({name: column[order] for name, column in zip(_SHOWN, columns, strict=True)})


def _alike(one: Column, other: Column) -> bool:
    """Whether two columns are the same to the last bit; for few rows their bytes are the quickest to compare."""
    return one is other or one.tobytes() == other.tobytes()
