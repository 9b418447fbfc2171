"""Looks that a ledger has not been brought up to yet, and which of them can be folded into it together.

A look is plain when it shows nothing but arrivals, starts and ends since the look before, at instants between
the two: the ledger counts all of them from their instants, whichever look showed them first. Everything else
(requeues, holds, weights, gangs, jobs that are gone, late news) counts from a look, and that look is folded alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, JobTable, Ledger, Snapshot, Untold
from slurm_fair.model.columns import ZERO, Bools, Ints, all_of, any_of, code

Column = NDArray[Any]

_DONE, _OVER = code(JobState.DONE), int(JobState.DONE)
HOLDS = np.isin(np.arange(len(JobState)), (JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED))
HOLDS.setflags(write=False)
# What makes a job the same job with the same claim; all of its kind have equally wide columns.
_CLAIM = attrgetter("key", "submit", "restarts", "tenant", "gpus", "weight")
_SHOWN = ("key", "submit", "restarts", "tenant", "state", "blocked", "gpus", "start", "end", "weight")
_COLUMNS = attrgetter(*_SHOWN)


class Edges(NamedTuple):
    """Rows of a look's jobs: those of which it is the first to show that they came, or ran, or ended."""

    came: list[int]
    began: list[int]
    over: list[int]


_NOTHING = Edges([], [], [])


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
    if new.key.size < count or not _same_claims(old, new, lived, count):
        return None
    state, start = old.state, old.start
    if lived is not None:
        state, start = state[lived], start[lived]
    moved = new.start[:count] != start
    changed = (moved | (new.state[:count] != state)).nonzero()[0]
    held = HOLDS.take(state[changed]) & (start[changed] > ZERO)
    # Who was seen to hold GPUs has held them since the same instant.
    if any_of(held & moved[changed]) or not _same_holds(old, new, lived, changed):
        return None
    if new.key.size == count:
        return _edges(base, before.time, shown, changed, held) if changed.size else _NOTHING
    if new.key[count] <= look.known:
        return None
    return _edges(base, before.time, shown, np.concatenate((changed, np.arange(count, new.key.size))), held)


def _same_tenants(before: Snapshot, shown: Snapshot) -> bool:
    old, new = before.tenants, shown.tenants
    return old is new or (old.names == new.names and _alike(old.weight, new.weight))


def _same_claims(old: JobTable, new: JobTable, lived: Ints | None, count: int) -> bool:
    """Whether all who lived are listed first, and claim what they did."""
    for one, other in zip(_CLAIM(old), _CLAIM(new), strict=True):
        if not _alike(one if lived is None else one.take(lived), other[:count]):
            return False
    return True


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
    jobs, now, edges, before = shown.jobs, shown.time, Edges([], [], []), held.tolist()
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
    return JobTable.made_of(zip(_SHOWN, (column[order] for column in columns), strict=True))


def _alike(one: Column, other: Column) -> bool:
    """Whether two columns are the same to the last bit; for few rows their bytes are the quickest to compare."""
    return one is other or one.tobytes() == other.tobytes()
