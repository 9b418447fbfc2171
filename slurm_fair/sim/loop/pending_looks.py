"""Looks that a ledger has not been brought up to yet, and which of them can be folded into it together.

A look is plain when it shows nothing but arrivals, starts and ends at instants since the look before. The ledger
counts these from their own instants, so it does not matter which look shows them first. The same is true of jobs
that gave their GPUs back at the very instant up to which the ledger has charged everybody. Everything else (other
requeues, holds, weights, gangs, jobs that are gone, late news) counts from the look that shows it. Such a look is
folded alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger.charging.window import HOLDS
from slurm_fair.ledger.charging.window_events import Became, Happened, WindowLooks
from slurm_fair.model import EventKind, JobTable, Snapshot
from slurm_fair.model.columns import NO_ROWS, ZERO, Bools, Ints, all_of, among, any_of

# What makes a job the same job with the same claim; all of its kind have equally wide columns.
_CLAIM = attrgetter("key", "submit", "restarts", "tenant", "gpus", "usual_gpus", "weight", "gpu_weight")
_LASTING = attrgetter(
    "key", "tenant", "gpus", "usual_gpus", "weight", "gpu_weight"
)  # of that, what a requeue leaves as it is
_SHOWN = (
    "key",
    "submit",
    "restarts",
    "tenant",
    "state",
    "blocked",
    "gpus",
    "usual_gpus",
    "start",
    "end",
    "weight",
    "gpu_weight",
)
_COLUMNS = attrgetter(*_SHOWN)
_LONG = 512  # rows of a look that are sooner compared by themselves


class FirstShown(NamedTuple):
    """Jobs with an event of one kind: the first look that shows it, and the row in that look."""

    key: Ints  # sorted; each is there once
    look: Ints
    row: Ints


@dataclass(frozen=True, slots=True)
class Strip(WindowLooks):
    """Several looks that are folded together, and which of them is the first to show each event of a job."""

    first_shown: Mapping[EventKind, FirstShown]

    def first(self, kind: EventKind, keys: Ints) -> tuple[list[int], list[int]]:
        """The look that is the first to show this event of each job, and its row there."""
        there, look, row = self.first_shown[kind]
        at = there.searchsorted(keys)
        return look[at].tolist(), row[at].tolist()


def shown_by(happened: Happened, looks: Sequence[int]) -> tuple[Became, ...]:
    """The events that some of the looks are the first to show."""
    if len(looks) == happened.looks:
        return happened.became
    return tuple(_some(became, set(looks)) for became in happened.became)


def _some(became: Became, looks: set[int]) -> Became:
    rows = [at for at, look in enumerate(became.look) if look in looks]

    def of_these(column: Sequence[Any]) -> Sequence[Any]:
        return [column[at] for at in rows]

    said = {name: of_these(column) for name, column in became.said.items()}
    look, row, time, key, tenant, gpus = map(of_these, became[1:-1])
    return Became(became.kind, look, row, time, key, tenant, gpus, said)


def _jobs(columns: Sequence[NDArray[Any]]) -> JobTable:
    """Jobs with the columns that the ledger asks for, and no others."""
    return JobTable.unchecked(dict(zip(_SHOWN, columns, strict=True)))


class PendingLook:
    """A look that waits to be folded; once it was, the batch that it was folded in, and its number there."""

    __slots__ = ("happened", "highest", "known", "number", "snapshot")

    def __init__(self, snapshot: Snapshot, known: int) -> None:
        keys = snapshot.jobs.key
        self.snapshot = snapshot
        self.known = known  # the highest key of a job that was ever shown before: Slurm uses ids again
        self.highest = max(known, keys.item(-1)) if keys.size else known
        self.happened: Happened | None = None
        self.number = 0


def strips(since: float, before: Snapshot | None, looks: Sequence[PendingLook]) -> Iterator[WindowLooks]:
    """The looks, as many at a time as can be folded together into a ledger that was brought up to an instant."""
    if before is None or len(looks) <= 1:
        yield from (WindowLooks((look.snapshot,), look.snapshot.jobs) for look in looks)
        return
    series, first = _Series(before, looks), 0
    while first < len(looks):
        last = first + 1
        if series.plain(first, since):
            while last < len(looks) and series.plain(last, since):
                last += 1
        yield series.strip(first, last)
        first, since = last, looks[last - 1].snapshot.time


class _Series:
    """Looks in order of time, their jobs stacked in one table: the changes that each look shows since the last."""

    def __init__(self, before: Snapshot, looks: Sequence[PendingLook]) -> None:
        self._snapshots = (before, *(look.snapshot for look in looks))
        tables = [_COLUMNS(snapshot.jobs) for snapshot in self._snapshots]
        columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
        self._jobs = _jobs(columns)
        self._first = np.cumsum([0, *(table[0].size for table in tables)])  # row of each table
        self._known = np.array([look.known for look in looks])
        self._times = np.array([snapshot.time for snapshot in self._snapshots])
        self._odd = np.array([_other_cluster(*both) for both in pairwise(self._snapshots)])
        self._at_once = np.zeros(len(looks), dtype=bool)  # an end at the very instant of the look before
        old, new, look = self._lived()
        self._spans = _spans(old, new, look)
        self._stopped = self._stops(old, new, look)
        self._look, self._row, self._shows = self._changes(old, new, look)

    def plain(self, number: int, since: float) -> bool:
        """True if a look is, for a ledger that was brought up to an instant."""
        if self._odd[number] or (self._at_once[number] and self._times[number] <= since):
            return False
        return number not in self._stopped or self._times[number + 1] == since

    def strip(self, first: int, last: int) -> WindowLooks:
        """The looks from the first up to the last, as one window."""
        shown = self._snapshots[first + 1 : last + 1]
        if last - first == 1:
            return WindowLooks(shown, shown[0].jobs)
        mine = (self._look >= first) & (self._look < last)
        first_shown = {kind: self._first_shown(mine & flags, first) for kind, flags in self._shows.items()}
        before = (mine & self._shows[EventKind.FINISHED] & (self._look < last - 1)).nonzero()[0]
        if not before.size:
            return Strip(shown, shown[-1].jobs, first_shown)
        rows = np.concatenate((self._row[before], np.arange(self._first[last], self._first[last + 1])))
        rows = rows[self._jobs.key[rows].argsort()]
        return Strip(shown, _jobs([column[rows] for column in _COLUMNS(self._jobs)]), first_shown)

    def _first_shown(self, flags: Bools, first: int) -> FirstShown:
        look, row = self._look[flags], self._row[flags]
        key = self._jobs.key[row]
        order = key.argsort()
        return FirstShown(key[order], (look - first)[order], (row - self._first[look + 1])[order])

    def _lived(self) -> tuple[Ints, Ints, Ints]:
        """Rows of those who lived at the look before, theirs at the look, and which look; all are listed first."""
        first, lived = self._first, (~self._jobs.done).nonzero()[0]
        at = lived.searchsorted(first)
        count, old = (at[1:] - at[:-1])[:-1], lived[: at[-2]]
        look = np.arange(count.size).repeat(count)
        new = np.arange(old.size) + (first[1:-1] - at[:-2])[look]
        gone = count > (first[1:] - first[:-1])[1:]
        if not any_of(gone):
            return old, new, look
        self._odd |= gone
        left = (~gone)[look]
        return old[left], new[left], look[left]

    def _differ(self, column: NDArray[Any]) -> Bools:
        """True where those who lived have another value by the next look."""
        parts = [column[before] != column[after] for before, after in self._spans]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _stops(self, old: Ints, new: Ints, look: Ints) -> dict[int, Ints]:
        """Rows of jobs that were requeued at the instant of both looks; what else claims something new is odd."""
        other = np.zeros(old.size, dtype=bool)
        for column in _CLAIM(self._jobs):
            other |= self._differ(column)
        stopped: dict[int, Ints] = {}
        for number in np.unique(look[other]).tolist() if any_of(other) else ():
            rows = _stopped(self._snapshots[number], self._snapshots[number + 1])
            if rows is None:
                self._odd[number] = True
            else:
                stopped[number] = rows + self._first[number + 1]
        return stopped

    def _changes(self, old: Ints, new: Ints, look: Ints) -> tuple[Ints, Ints, Mapping[EventKind, Bools]]:
        """Rows that show something new, by look, and which event of a job each shows."""
        state, start = self._jobs.state, self._jobs.start
        moved = self._differ(start)
        other = moved | self._differ(state)
        stops = np.concatenate((NO_ROWS, *self._stopped.values()))
        if stops.size:
            other &= ~among(new, stops)
        changed = other.nonzero()[0]
        was = old[changed]
        held = HOLDS.take(state[was]) & (start[was] > ZERO)
        # Who was seen to hold GPUs has held them since the same instant.
        self._odd[look[changed[held & moved[changed]]]] = True
        self._note_holds(old, new, look, changed)
        fresh = np.ones(self._jobs.key.size, dtype=bool)
        fresh[: self._first[1]] = fresh[new] = False
        came = fresh.nonzero()[0]
        rows = np.concatenate((new[changed], came, stops))
        by = self._first.searchsorted(rows, side="right") - 2
        had, is_new, is_stop = np.zeros((3, rows.size), dtype=bool)
        had[: changed.size] = held
        is_new[changed.size : changed.size + came.size] = True
        is_stop[changed.size + came.size :] = True
        began, over = self._runs(by, rows, had, is_new, is_stop)
        shows = {
            EventKind.SUBMITTED: is_new,
            EventKind.STARTED: began,
            EventKind.FINISHED: over,
            EventKind.STOPPED: is_stop,
        }
        return by, rows, shows

    def _note_holds(self, old: Ints, new: Ints, look: Ints, changed: Ints) -> None:
        """Note as odd that jobs were held back or let go, and as a change that others hold them back."""
        if np.count_nonzero(self._jobs.blocked):
            claims, waits = self._jobs.active, self._jobs.waits
            other = (claims[new] != claims[old]) | (waits[new] != waits[old])
            other &= ~self._jobs.done[new]
            other[changed] |= ~claims[old[changed]]
            self._odd[look[other]] = True

    def _runs(self, look: Ints, row: Ints, had: Bools, is_new: Bools, is_stop: Bools) -> tuple[Bools, Bools]:
        """Flags of rows that began to run, and flags of rows that are over, if a look shows nothing else."""
        jobs, since, now = self._jobs, self._times[look], self._times[look + 1]
        submit, start, end, over = jobs.submit[row], jobs.start[row], jobs.end[row], jobs.done[row]
        # It holds GPUs now, or it did since it began, and is over.
        ran = (start > ZERO) & np.where(over, end > start, HOLDS.take(jobs.state[row]))
        began = ran & ~had
        odd = is_new & ((submit < since) | (submit > now) | (jobs.key[row] <= self._known[look]))
        # It gave its GPUs back and goes on, or never had them, or changed in some other way.
        odd |= ~(is_new | is_stop | ran) & (had | ~over)
        odd |= began & ((start < since) | (start > now))
        odd |= over & ((end < since) | (end > now))
        self._odd[look[odd]] = True
        self._at_once[look[over & (end <= since)]] = True
        return began, over


def _spans(old: Ints, new: Ints, look: Ints) -> list[tuple[slice | Ints, slice | Ints]]:
    """Rows at a look and at the next one. Long tables come look by look, mostly as slices, which copy nothing."""
    if old.size < _LONG or old.size < _LONG * (look.item(-1) + 1):
        return [(old, new)]
    ends = look.searchsorted(np.arange(look.item(-1) + 2))
    parts = [slice(*both) for both in pairwise(ends.tolist())]
    return [(_as_slice(old[part]), _as_slice(new[part])) for part in parts]


def _as_slice(rows: Ints) -> slice | Ints:
    """Ascending rows as a slice, where none between them is left out."""
    if not rows.size or rows.item(-1) - rows.item(0) != rows.size - 1:
        return rows
    return slice(rows.item(0), rows.item(-1) + 1)


def _other_cluster(before: Snapshot, shown: Snapshot) -> bool:
    """True if its size, its tenants or their weights are others than at the look before."""
    old, new = before.tenants, shown.tenants
    if shown.total_gpus != before.total_gpus or shown.resized or shown.resized_by_weight:
        return True
    return old is not new and (old.names != new.names or any_of(old.weight != new.weight))


def _stopped(before: Snapshot, shown: Snapshot) -> Ints | None:
    """Rows of jobs that were requeued at the instant of both looks; None where more is new.

    Each had its run charged up to that very instant, so that it does not matter from which look on it is over.
    """
    if before.time != shown.time:
        return None
    was, new = before.jobs, shown.jobs
    lived = (~was.done).nonzero()[0]
    count = lived.size
    if not all(
        all_of(one[lived] == other[:count]) for one, other in zip(_LASTING(was), _LASTING(new), strict=True)
    ):
        return None
    again = new.restarts[:count] != was.restarts[lived]
    if any_of((new.submit[:count] != was.submit[lived]) & ~again):
        return None
    rows: Ints = again.nonzero()[0]
    began = was.start[lived[rows]]  # of a run of no length the ledger does not know
    plainly = was.running[lived[rows]] & (began > 0) & (began < shown.time)
    plainly &= (new.restarts[rows] == was.restarts[lived[rows]] + 1) & (new.submit[rows] == shown.time)
    return rows if all_of(plainly & new.waiting[rows]) else None
