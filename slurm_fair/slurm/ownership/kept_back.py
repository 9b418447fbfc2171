"""Tell who keeps each waiting job back, and until when: a gate of ours, Slurm after a requeue, or somebody
else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.slurm.ownership.marks import MarkBook
from slurm_fair.slurm.ownership.ours import DELAY_SLACK_SECONDS, SLACK_SECONDS, is_as_submitted, is_our_list
from slurm_fair.slurm.reading.details import DetailsBook
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.scope import ADMIN_HOLD, REQUEUE_HOLD, by_name

_OPENING_SECONDS = 2.0  # a gate that we open in the next second is open, not somebody's begin time


@dataclass(frozen=True, slots=True)
class Keepers:
    """The evidence by which the owner of a gate is told."""

    queue: Queue
    details: DetailsBook
    marks: MarkBook
    now: float
    requeue_delay: float
    booted_at: float  # when slurmctld started


@dataclass(frozen=True, slots=True)
class Gates:
    """For each row, the keeper of its gate and the instant at which it opens."""

    ours: Bools
    until: Floats
    held_by_us: Bools
    own_begin: Bools
    pinned: Bools
    set_at: Floats


def gates_of(raw: NDArray[np.void], key: Ints, seen: Keepers) -> Gates:
    """Whose gate keeps each waiting row back: ours by marks or stamp, Slurm's requeue delay, the user's."""
    by_job, by_array = _marks(raw, key, seen)
    # A task split off an array has its array's mark until it gets its own.
    mark = np.where(by_job["known"], by_job, by_array)
    waiting = raw["state"] == JobState.WAITING
    opening = np.where(mark["pinned"], _OPENING_SECONDS, 0.0)
    ahead = waiting & (raw["eligible"] > seen.now + opening)
    # Moving an array's gate moves that of its split tasks too, so either mark may explain a begin time.
    marked = _same_time(by_job, raw) | _same_time(by_array, raw)
    delay = raw["eligible"] - raw["submit"]
    requeued = (raw["restarts"] > 0) & (delay >= 0) & (delay <= seen.requeue_delay + DELAY_SLACK_SECONDS)
    ours = ahead & (marked | requeued)
    stamped = _by_stamp(raw, ahead & ~ours, seen)
    held = waiting & (raw["priority"] == 0)
    foreign = by_name(seen.queue.reasons, (ADMIN_HOLD | REQUEUE_HOLD).__contains__, raw["reason"])
    foreign &= mark["gate_before"] > 0
    lasting = (mark["gate_until"] == np.inf) & ~foreign
    held_by_us = held & (lasting | _stamped_holds(raw, held & ~mark["known"], seen))
    ours |= stamped
    until = np.where(held_by_us, np.inf, np.where(ahead, raw["eligible"], 0.0))
    own_begin = ahead & ~ours
    pinned, set_at = _pinned(raw, key, mark, seen), np.maximum(by_job["set_at"], by_array["set_at"])
    return Gates(ours | held_by_us, until, held_by_us, own_begin, pinned, set_at)


def _marks(raw: NDArray[np.void], key: Ints, seen: Keepers) -> tuple[NDArray[np.void], NDArray[np.void]]:
    arrays = pack_keys(raw["base"], np.full(len(raw), -1))
    by_job = seen.marks.join(key, False, raw["submit"], raw["restarts"])
    return by_job, seen.marks.join(arrays, True, raw["submit"], raw["restarts"])


def _same_time(mark: NDArray[np.void], raw: NDArray[np.void]) -> Bools:
    """Whether a begin time is the gate of a mark, or the one before when a new gate never came to stand."""
    same = np.zeros(len(raw), dtype=bool)
    for gate in (mark["gate_until"], mark["gate_before"]):
        same |= np.isfinite(gate) & (np.abs(gate - raw["eligible"]) <= SLACK_SECONDS)
    return same


def _by_stamp(raw: NDArray[np.void], candidates: Bools, seen: Keepers) -> Bools:
    """Rows whose begin time is the one that their template or the submit hook set."""
    result = np.zeros(len(raw), dtype=bool)
    for row in np.flatnonzero(candidates).tolist():
        stamp = seen.details.of(int(raw["record"][row]), int(raw["restarts"][row])).gate_stamp
        result[row] = stamp.is_gate(float(raw["eligible"][row]), float(raw["submit"][row]))
    return result


def _stamped_holds(raw: NDArray[np.void], held: Bools, seen: Keepers) -> Bools:
    """Holds with which jobs were submitted as our gate."""
    result = np.zeros(len(raw), dtype=bool)
    for row in np.flatnonzero(held & (raw["restarts"] == 0)).tolist():
        stamp = seen.details.of(int(raw["record"][row]), 0).gate_stamp
        reason = seen.queue.reasons.texts[raw["reason"][row]]
        result[row] = is_as_submitted(stamp.gate, reason, 0, float(raw["eligible"][row]))
    return result


def _pinned(raw: NDArray[np.void], key: Ints, mark: NDArray[np.void], seen: Keepers) -> Bools:
    """Rows that carry a node list of ours."""
    listed = raw["req_nodes"] != seen.queue.node_lists.known("")
    pinned: Bools = mark["pinned"] & listed
    doubtful = listed & mark["known"] & (pinned | (mark["set_at"] < seen.booted_at + 1))
    for row in np.flatnonzero(doubtful).tolist():
        found = seen.marks.get(int(key[row]), whole_record=False)
        text = seen.queue.node_lists.texts[raw["req_nodes"][row]]
        if found is not None:
            pinned[row] = is_our_list(found, text, seen.booted_at)
    return pinned
