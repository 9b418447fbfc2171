"""Find marks that have outlived their job."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.columns import Bools, Floats, Ints, find
from slurm_fair.model.ids import NO_TASK, TASK_BITS, pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import Marks, is_of
from slurm_fair.slurm.ownership.ours import (
    Noted,
    WaitState,
    is_noted_gate,
    is_our_list,
    is_our_size,
)
from slurm_fair.slurm.reading.queue import UNSPLIT, Queue, by_key, with_tasks
from slurm_fair.slurm.reading.reread import Which

_CARRIED_OUT_SECONDS = 30.0  # by then what was sent has been done, or never will be
_LOOKS = 3  # a job that one answer leaves out may be in the next: that it is gone must be seen several times


def without_lifted_holds(marks: Marks, rows: NDArray[np.void], queue: Queue) -> list[Mark]:
    """Marks without the holds that are seen lifted: a later hold on such a job is not ours.

    A task that was split off its array since then has a record of its own, and from now on a mark.
    """
    ours = [mark for mark in marks.all() if math.isinf(mark.gate_until) and mark.gate_before > 0]
    if not ours:
        return []
    free = rows[(rows["state"] < JobState.DONE) & (rows["priority"] > 0)]
    row, base, task = with_tasks(free, queue.task_lists)
    at = dict(zip(pack_keys(base, task).tolist(), row.tolist(), strict=True))
    records = {record: at for at, record in enumerate(free["record"].tolist())}
    found: list[Mark] = []
    for mark in ours:
        seen = records.get(mark.record) if mark.whole_record else at.get(mark.key)
        if seen is not None:
            found += _spent([(mark, seen)], free)
        elif mark.whole_record:
            array = np.unique(row[base == mark.key >> TASK_BITS]).tolist()
            split = [(_of_task(mark, free[at]), at) for at in array]
            found += _spent([each for each in split if marks.get(each[0].key, False) is None], free)
    return found


def _of_task(mark: Mark, row: np.void) -> Mark:
    """The mark of an array as that of a task that was split off it."""
    key = pack(int(row["base"]), int(row["task"]))
    return replace(mark, key=key, record=int(row["record"]), whole_record=False)


def _spent(marks: Iterable[tuple[Mark, int]], rows: NDArray[np.void]) -> list[Mark]:
    """The marks without their holds, where the rows are those of their jobs."""
    return [
        replace(mark, gate_until=mark.gate_before, gate_before=0.0)
        for mark, at in marks
        if is_of(mark, float(rows["submit"][at]), int(rows["restarts"][at]))
    ]


def without_taken_lists(
    marks: Marks, rows: NDArray[np.void], queue: Queue, booted_at: float, now: float
) -> list[Mark]:
    """Marks without the node lists and sizes that are seen gone.

    Where a user sets the same list or size later, it is the user's own. An act of unknown outcome may be carried
    out a while after it was sent.
    """
    carried_out = [mark for mark in marks.all() if now - mark.set_at > _CARRIED_OUT_SECONDS]
    ours = [mark for mark in carried_out if (mark.pinned and mark.pin) or mark.size]
    if not ours:
        return []
    waiting = rows[(rows["state"] == JobState.WAITING) & (rows["task"] != UNSPLIT)]
    keys = pack_keys(waiting["base"].astype(np.int64), waiting["task"].astype(np.int64))
    order = keys.argsort()
    found = find(keys[order], np.array([mark.key for mark in ours], dtype=np.int64))
    here = [(mark, order[place]) for mark, place in zip(ours, found.tolist(), strict=True) if place >= 0]
    after = [
        (mark, _less_what_is_gone(mark, waiting[at], queue, booted_at))
        for mark, at in here
        if is_of(mark, float(waiting["submit"][at]), int(waiting["restarts"][at]))
    ]
    return [less for mark, less in after if less != mark]


def _less_what_is_gone(mark: Mark, row: np.void, queue: Queue, booted_at: float) -> Mark:
    """The mark without a node list, or a size, that its job does not carry any more."""
    request = queue.requests.texts[row["request"]] if row["request"] >= 0 else ""
    if mark.size and not is_our_size(mark, request):
        mark = replace(mark, size="", user_size="")
    if (
        mark.pinned
        and mark.pin
        and not is_our_list(mark, queue.node_lists.texts[row["req_nodes"]], booted_at)
    ):
        mark = replace(mark, pinned=False)
    return mark


def with_gates_unset(marks: Marks, rows: NDArray[np.void], queue: Queue) -> list[Mark]:
    """Marks of gates that went while nobody of ours looked and acted: from now on nobody is to be blamed for them.

    Nobody knows whose hand it was: a dead-man or an admin may have freed the jobs, or slurmctld was killed and
    came back with its last saved state. A node list that came back with that is told by the time of the mark.
    """
    if not any(mark.gate_until and not mark.pinned and not mark.blameless for mark in marks.all()):
        return []
    listed, key = by_key(rows[rows["state"] < JobState.DONE], queue.task_lists)
    run = listed["submit"], listed["restarts"]
    arrays = pack_keys(key >> TASK_BITS, np.full(len(key), NO_TASK))
    own, array = marks.join(key, False, *run), marks.join(arrays, True, *run)
    gone = ~np.asarray(is_noted_gate(WaitState.of(listed, queue.reasons), Noted.of(own, array)))
    mark = np.where(own["known"], own, array)
    gone &= mark["known"] & ~mark["blameless"] & (mark["gate_until"] > 0) & ~mark["pinned"]
    alone = own["known"]
    speaks = {(job, False) for job in key[gone & alone].tolist()}
    speaks |= {(base, True) for base in arrays[gone & ~alone].tolist()}
    found = [marks.get(*which) for which in sorted(speaks)]
    return [replace(each, blameless=True) for each in found if each is not None]


@dataclass(slots=True)
class Absences:
    """Counts, for each mark, the valid looks in a row that did not show its job."""

    _missing: dict[Which, int] = field(default_factory=dict)

    def spent(self, marks: Iterable[Mark], rows: NDArray[np.void], queue: Queue) -> list[Mark]:
        """Marks to be dropped: of finished jobs at once, of unseen ones after some looks.

        `rows` is the whole queue: a job that left the managed scope still has our gate on it. A job whose row
        cannot be read is there.
        """
        listed, unread = _Listed.of(rows, queue), _Unread.of(queue)
        missing: dict[Which, int] = {}
        over = []
        for mark in marks:
            which = (mark.key, mark.whole_record)
            alive = listed.array_waits(mark) if mark.whole_record else listed.lives(mark)
            if alive is None and not unread.may_be_of(mark):
                missing[which] = self._missing.get(which, 0) + 1
            if alive is False or missing.get(which, 0) >= _LOOKS:
                over.append(mark)
        self._missing = missing
        return over


@dataclass(frozen=True, slots=True)
class _Unread:
    """The jobs whose rows cannot be read and that are not known to be over."""

    records: frozenset[int]
    bases: frozenset[str]  # ids of jobs and arrays

    @classmethod
    def of(cls, queue: Queue) -> _Unread:
        living = [bad for bad in queue.unreadable if not bad.over]
        return cls(
            frozenset(bad.record for bad in living),
            frozenset(bad.label.partition("_")[0] for bad in living),
        )

    def may_be_of(self, mark: Mark) -> bool:
        """True if one of them may be the marked job; a row without even an id may be anybody's."""
        base = str(mark.key >> TASK_BITS)
        return mark.record in self.records or base in self.bases or -1 in self.records


@dataclass(frozen=True, slots=True)
class _Listed:
    """The queue by job key."""

    key: Ints
    base: Ints
    waiting: Bools
    done: Bools
    submit: Floats
    restarts: Ints

    @classmethod
    def of(cls, rows: NDArray[np.void], queue: Queue) -> _Listed:
        listed, key = by_key(rows, queue.task_lists)
        waiting, done = listed["state"] == JobState.WAITING, listed["state"] == JobState.DONE
        return cls(key, key >> TASK_BITS, waiting, done, listed["submit"], listed["restarts"])

    def lives(self, mark: Mark) -> bool | None:
        """True where the marked job is not over; None where it is not listed. A later job of its id is another."""
        at = int(find(self.key, np.array([mark.key], dtype=np.int64))[0])
        if at < 0:
            return None
        return not self.done[at] and is_of(mark, float(self.submit[at]), int(self.restarts[at]))

    def array_waits(self, mark: Mark) -> bool | None:
        """True if tasks of the array wait still."""
        first, last = np.searchsorted(self.base, [mark.key >> TASK_BITS, (mark.key >> TASK_BITS) + 1])
        mine = (at for at in range(first, last) if self.waiting[at])
        found = any(is_of(mark, float(self.submit[at]), int(self.restarts[at])) for at in mine)
        return True if found else None
