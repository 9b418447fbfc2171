"""Tell who keeps each waiting job back, and until when: a gate of ours, Slurm after a requeue, or somebody
else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.model.ids import NO_TASK
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import (
    OPENING_SECONDS,
    SLACK_SECONDS,
    Noted,
    WaitState,
    is_noted_gate,
    is_our_hold,
    is_our_list,
    is_slurms_delay,
    may_carry_ours,
    may_have_come_back,
)
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import UNSPLIT, Queue, begins_later, may_take_gpus


@dataclass(frozen=True, slots=True)
class Keepers:
    """The evidence by which the owner of a gate is told."""

    queue: Queue
    details: JobDetails
    marks: Marks
    now: float
    requeue_delay: float
    booted_at: float  # when slurmctld started


@dataclass(frozen=True, slots=True)
class Whose:
    """Per row: whether its hold, its begin time and its node list are ours."""

    hold: Bools
    begin: Bools
    delay: Bools  # its begin time is Slurm's own, after a requeue
    nodes: Bools
    opening: Bools  # a mark says that its gate is open
    gate_set: Floats  # when we set the gate that should stand, or should have until it started; 0 = none
    own_begin: Floats  # its user's begin time that a gate of ours took the place of; 0 = none

    def any(self) -> Bools:
        """Rows that carry anything of ours; Slurm's own delay ends by itself, and is nothing to undo."""
        return self.hold | self.begin | self.nodes


@dataclass(frozen=True, slots=True)
class Gates:
    """The keeper of each row's gate, and the instant at which it opens."""

    ours: Bools
    until: Floats
    held_by_us: Bools
    own_begin: Bools
    pinned: Bools
    gate_set: Floats


def gates_of(raw: NDArray[np.void], key: Ints, seen: Keepers) -> Gates:
    """The gate that keeps each waiting row back: ours by marks or stamp, Slurm's requeue delay, the user's."""
    waiting = raw["state"] == JobState.WAITING
    later = waiting & (raw["eligible"] > seen.now)
    whose = whose_are(raw, key, waiting & (later | (raw["priority"] == 0)), seen)
    ahead = later & (raw["eligible"] > seen.now + np.where(whose.opening, OPENING_SECONDS, 0.0))
    ours, held_by_us = ahead & (whose.begin | whose.delay), waiting & whose.hold
    until = np.where(held_by_us, np.inf, np.where(ahead, raw["eligible"], 0.0))
    own_begin = ahead & (~ours | (whose.own_begin > seen.now))
    return Gates(ours | held_by_us, until, held_by_us, own_begin, whose.nodes, whose.gate_set)


def whose_are(raw: NDArray[np.void], key: Ints, asked: Bools, seen: Keepers) -> Whose:
    """The parts of each row that are ours; the stamps of the `asked` ones alone are looked at."""
    own, array = _marks(raw, key, seen.marks)
    shown, noted = WaitState.of(raw, seen.queue.reasons), Noted.of(own, array)
    begin = np.asarray(is_noted_gate(shown, noted))
    known = np.asarray(noted.known)
    held = asked & np.asarray(shown.held)
    with_hold, by_stamp = np.zeros_like(asked), np.zeros_like(asked)
    scheduled = np.full(len(raw), np.inf)
    for row in np.flatnonzero((held & ~known) | (asked & ~begin)).tolist():
        run = int(raw["record"][row]), int(raw["restarts"][row])
        stamp = seen.details.of(*run).gate_stamp
        with_hold[row], scheduled[row] = stamp.is_hold, seen.details.scheduled.at(*run)
        by_stamp[row] = stamp.is_gate(float(raw["eligible"][row]), float(raw["submit"][row]))
    hold = np.asarray(is_our_hold(shown, noted, with_hold, scheduled))
    mark = np.where(own["known"], own, array)
    return Whose(
        hold,
        begin | by_stamp,
        np.asarray(is_slurms_delay(shown, seen.requeue_delay)),
        _ours_listed(raw, key, mark, seen),
        mark["pinned"],
        _gates_set(raw, mark, seen.now),
        _begins_kept(shown, own, array),
    )


def any_came_back(rows: NDArray[np.void], queue: Queue, marks: Marks, booted_at: float) -> bool:
    """True if a waiting job carries a list that is ours if slurmctld started later than is known."""
    listed = (rows["state"] == JobState.WAITING) & (rows["req_nodes"] != queue.node_lists.known(""))
    listed = rows[listed & (rows["task"] != UNSPLIT)]
    if not len(listed):
        return False
    key = pack_keys(listed["base"], listed["task"])
    noted, _ = _marks(listed, key, marks)
    for row in np.flatnonzero(noted["has_pin"] & ~noted["pinned"]).tolist():
        mark, text = marks.get(int(key[row]), False), queue.node_lists.texts[listed["req_nodes"][row]]
        if mark is not None and may_have_come_back(mark, text, booted_at):
            return True
    return False


def within_reach(rows: NDArray[np.void], marks: Marks) -> Bools:
    """Rows on which something of ours may be: of jobs that may take GPUs or wait for a begin time, or have a mark.

    A marked job may ask for no GPU any more. The submit hook, or a template, may have gated one that takes none.
    """
    own, array = _marks(rows, record_keys(rows), marks)
    found: Bools = may_take_gpus(rows) | begins_later(rows) | own["known"] | array["known"]
    return found


def record_keys(rows: NDArray[np.void]) -> Ints:
    """The key of each row: an unsplit array has that of the whole array."""
    return pack_keys(rows["base"], np.where(rows["task"] == UNSPLIT, NO_TASK, rows["task"]))


def _marks(raw: NDArray[np.void], key: Ints, marks: Marks) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Each row's own mark, and its array's: a task that was split off has that until it gets its own."""
    arrays = pack_keys(raw["base"], np.full(len(raw), NO_TASK))
    own = marks.join(key, False, raw["submit"], raw["restarts"])
    return own, marks.join(arrays, True, raw["submit"], raw["restarts"])


def _gates_set(raw: NDArray[np.void], mark: NDArray[np.void], now: float) -> Floats:
    """Instants at which we set the gates that only somebody else can have moved; 0 where there is none.

    A gate that we opened, that had its time, or that a requeue took away was moved by nobody, and so was one that
    never came to stand or went while nobody looked. The mark of a requeue is younger than the run that it ends.
    """
    waiting = raw["state"] == JobState.WAITING
    until = np.where(waiting, now, raw["start"])
    stands = (mark["gate_until"] > until + SLACK_SECONDS) & ~mark["pinned"]
    stands &= ~mark["blameless"]
    stands &= mark["restarts"] == raw["restarts"]
    stands &= waiting | (mark["set_at"] <= raw["start"] + OPENING_SECONDS)
    gates: Floats = np.where(stands, mark["set_at"], 0.0)
    return gates


def _begins_kept(shown: WaitState, own: NDArray[np.void], array: NDArray[np.void]) -> Floats:
    """The users' begin times in whose place our gates stand, by the mark that explains each gate; 0 = none."""
    marks = own, array
    explain = [np.asarray(is_noted_gate(shown, Noted.of(each, each))) for each in marks]
    kept: Floats = np.select(explain, [each["user_begin"] for each in marks], 0.0)
    return kept


def _ours_listed(raw: NDArray[np.void], key: Ints, mark: NDArray[np.void], seen: Keepers) -> Bools:
    """Rows that carry a node list of ours."""
    listed = mark["known"] & (raw["req_nodes"] != seen.queue.node_lists.known(""))
    found = np.zeros(len(raw), dtype=bool)
    may = np.asarray(may_carry_ours(mark["pinned"], mark["has_pin"], mark["set_at"], seen.booted_at))
    for row in np.flatnonzero(listed & may).tolist():
        run = float(raw["submit"][row]), int(raw["restarts"][row])
        speaks = seen.marks.covering(int(key[row]), False, *run)
        text = seen.queue.node_lists.texts[raw["req_nodes"][row]]
        found[row] = speaks is not None and is_our_list(speaks, text, seen.booted_at)
    return found
