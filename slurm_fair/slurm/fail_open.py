"""Fail open: undo everything of ours, so that the queue flows as plain Slurm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmUnreachable
from slurm_fair.model import Action, JobState, Outcome, Result, label
from slurm_fair.model.apiece import apiece
from slurm_fair.model.columns import Bools
from slurm_fair.model.counted import first_sayings
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting.actuator import Actuator
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.ownership.kept_back import within_reach
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.ours import is_our_list, kept_by_us
from slurm_fair.slurm.ownership.ours_afresh import free_action
from slurm_fair.slurm.ownership.submitted import maybe_held_since
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue, Unreadable
from slurm_fair.slurm.reading.reread import rows_by_job, which

_NAMED = 20  # jobs in one line of the log
_PAUSE_SECONDS = 1.0  # between two tries


Run: TypeAlias = tuple[int, float, int]  # record, submission, restarts


class NoIntents:
    """A log that keeps nothing: undoing twice changes nothing."""

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        return range(len(actions))

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Liberated:
    """The jobs that were freed, and those that could not be."""

    freed: int
    left: tuple[str, ...]  # what could not be freed, in words
    pinned: Mapping[tuple[int, bool], str] = field(default_factory=dict)  # what runs with a node list of ours
    read_at: float = field(default=0.0, compare=False)  # just before the queue was read for the last time
    unfreed: tuple[int, ...] = field(default=(), compare=False)  # records of what could not be freed
    clear: frozenset[Run] = field(default=frozenset(), compare=False)  # of what waits with nothing of ours
    unread: tuple[Unreadable, ...] = field(default=(), compare=False)  # jobs that may wait for us

    @property
    def to_look_at(self) -> tuple[int, ...]:
        """Records of jobs that are still to be freed, or may be."""
        return (*self.unfreed, *(bad.record for bad in self.unread if bad.record >= 0))


NOTHING_FREED = Liberated(0, ())


def pins_left(freed: Liberated) -> list[str]:
    """Lines on node lists of ours that Slurm does not let go of now."""
    if not freed.pinned:
        return []
    named = first_sayings(list(freed.pinned.values()), _NAMED)
    return [
        f"running jobs keep a node list of ours until they end ({named}). One that is requeued waits for "
        "these nodes, an elastic one with the size that it has, until slurm-fair runs again, or until you say: "
        "scontrol update JobId=N ReqNodeList="
    ]


def unread_left(freed: Liberated) -> list[str]:
    """A line on jobs whose rows cannot be read."""
    if not freed.unread:
        return []
    some = apiece(freed.unread, lambda bad: bad.user, _NAMED)
    named = first_sayings(
        [f"job {bad.label} of {bad.user}: {bad.why}" for bad in some], _NAMED, len(freed.unread)
    )
    return [
        f"rows of the queue cannot be read, so these jobs may still wait for us ({named}). While no daemon runs, "
        "each look of the dead-man's timer tries them again, and so does `slurm-fair fail-open`"
    ]


def liberate(
    commands: Commands,
    marks: Sequence[Mark],
    now: Callable[[], float],
    lost: bool = False,
    since: float = -math.inf,
    again: Collection[int] = (),
    before: Liberated = NOTHING_FREED,
) -> Liberated:
    """Free every waiting job with a mark or a gate of ours: the records `again`, and all submitted `since`.

    A job submitted with our gate that the controller never saw is known by its stamp alone; when the journal is
    `lost`, all jobs are. A hold of a run that was clear of ours `before` is another's, and in a lost journal so is
    its begin time; else one that a mark or a stamp names has come late, and is ours.
    """
    queue, details, read_at = Queue(commands), JobDetails(commands), now()
    rows = queue.read()
    if isinstance(rows, str):
        raise SlurmUnreachable(f"the queue cannot be read, so nothing was freed: {rows}")
    unread = _unread(queue, since, again, before)
    rows = rows[(rows["submit"] >= since) | np.isin(rows["record"], list(again))]
    waiting = rows[rows["state"] == JobState.WAITING]
    waiting = waiting[~(_was_clear(waiting, before) & ((waiting["priority"] == 0) | lost))]
    near, known = _marked(waiting, queue, details, Marks(MarksInHand(marks)), lost)
    actuator = Actuator(commands, queue, known, details, NoIntents(), now)
    outcomes = actuator.actuate(_still_ours(near, known, actuator))
    left = [(o.action, o.detail) for o in outcomes if o.result is not Result.DONE]
    for row in rows[rows["state"] == JobState.ENDING]:
        if _mark_of(row, known) is not None:  # requeued, and about to wait on our account
            left.append((free_action(row), "it is still completing"))
    unfreed = tuple(action.record for action, _ in left)
    return Liberated(
        sum(o.result is Result.DONE for o in outcomes),
        tuple(f"job {label(action.key)}: {why}" for action, why in left),
        _still_pinned(rows, queue, known),
        read_at,
        unfreed,
        before.clear | _runs(waiting[~np.isin(waiting["record"], unfreed)]),
        unread,
    )


def _marked(
    waiting: NDArray[np.void], queue: Queue, details: JobDetails, known: Marks, lost: bool
) -> tuple[NDArray[np.void], Marks]:
    """The rows that may carry something of ours, and all marks, made-up ones too."""
    near = waiting[within_reach(waiting, known)]
    complaint = details.learn(
        dict.fromkeys(zip(near["record"].tolist(), near["restarts"].tolist(), strict=True))
    )
    complaint = complaint or details.scheduled.learn(maybe_held_since(near, queue, details, known))
    if complaint:
        raise SlurmUnreachable(f"the jobs' stamps cannot be read, so nothing was freed: {complaint}")
    return near, Marks(MarksInHand([*known.all(), *_stamped(near, queue, details, known, lost)]))


def _still_ours(near: NDArray[np.void], known: Marks, actuator: Actuator) -> list[Action]:
    """The acts that free the marked jobs which still carry something of ours."""
    ours = [free_action(row) for row in near if _mark_of(row, known) is not None]
    shown = rows_by_job(near, actuator.queue, {which(action) for action in ours}, {})
    if actuator.ours.learn(ours, shown):
        return ours  # the fresh read before each act finds out
    return [action for action in ours if not actuator.effects.seen(action, shown[which(action)])]


def _runs(rows: NDArray[np.void]) -> frozenset[Run]:
    return frozenset(zip(*(rows[name].tolist() for name in ("record", "submit", "restarts")), strict=True))


def _was_clear(rows: NDArray[np.void], before: Liberated) -> Bools:
    """Rows of runs that were clear, and of tasks that were split since off an array that was."""
    open_still = frozenset(before.to_look_at)
    bases = zip(*(rows[name].tolist() for name in ("base", "submit", "restarts")), strict=True)
    runs = zip(*(rows[name].tolist() for name in ("record", "submit", "restarts")), strict=True)
    found = [
        run in before.clear or (array in before.clear and run[0] not in open_still)
        for run, array in zip(runs, bases, strict=True)
    ]
    return np.array(found, dtype=bool)


def _unread(queue: Queue, since: float, again: Collection[int], before: Liberated) -> tuple[Unreadable, ...]:
    """Jobs that may wait for us, and that nobody can tell of: their rows cannot be read."""
    clear = {record for record, _, _ in before.clear}
    return tuple(
        bad
        for bad in queue.unreadable
        if bad.may_wait and bad.record not in clear and (bad.submit >= since or bad.record in again)
    )


def _still_pinned(rows: NDArray[np.void], queue: Queue, known: Marks) -> dict[tuple[int, bool], str]:
    """Jobs that run with a node list of ours, and that list (slurm-facts: running-list-stays)."""
    runs = rows[(rows["state"] > JobState.WAITING) & (rows["state"] < JobState.DONE)]
    found = {}
    for row in runs:
        mark, text = _mark_of(row, known), queue.node_lists.texts[int(row["req_nodes"])]
        if mark is not None and is_our_list(mark, text, 0.0):
            found[mark.key, mark.whole_record] = f"job {label(free_action(row).key)}: {text}"
    return found


def liberate_patiently(free: Callable[[Liberated], Liberated], tries: int) -> Liberated:
    """Free again and again while something of ours is left: a job that completes takes its time."""
    done = free(NOTHING_FREED)
    total = done.freed
    for _ in range(tries):
        if not done.left:
            break
        time.sleep(_PAUSE_SECONDS)
        done = free(done)
        total += done.freed
    return replace(done, freed=total)


def _mark_of(row: np.void, known: Marks) -> Mark | None:
    act = free_action(row)
    return known.covering(act.key, act.whole_record, act.submit, act.restarts)


def _stamped(
    waiting: NDArray[np.void], queue: Queue, details: JobDetails, known: Marks, lost: bool
) -> list[Mark]:
    """Marks made up for jobs without one that their stamp shows to be kept back on our account."""
    made_up = []
    for row in waiting:
        run = int(row["record"]), int(row["restarts"])
        stamp, scheduled = details.of(*run).stamp, details.scheduled.at(*run)
        action, reason = free_action(row), queue.reasons.texts[int(row["reason"])]
        if (
            stamp is not None
            and _mark_of(row, known) is None
            and kept_by_us(row, stamp, reason, lost, scheduled)
        ):
            until = math.inf if row["priority"] == 0 else float(row["eligible"])
            made_up.append(Mark(*_identity(action), until, False, 0.0))
    return made_up


def _identity(action: Action) -> tuple[int, int, bool, float, int]:
    return action.key, action.record, action.whole_record, action.submit, action.restarts
