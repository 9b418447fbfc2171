"""The rules by which a hold, a begin time and a node list of a waiting job are ours.

Each rule takes the values of one job, or columns of many. We set begin times and node lists, never holds. The one
hold of ours is the one that the submit hook or a template submitted a job with; at the first look a begin time
takes its place. From then on every hold is somebody's own, because Slurm shows nothing of a user's hold that is
put on a held job (slurm-facts: hold-of-a-held-job).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.reading.queue import Names
from slurm_fair.slurm.reading.request import SizeRequest
from slurm_fair.slurm.reading.reread import FreshRow
from slurm_fair.slurm.reading.stamp import Stamp
from slurm_fair.slurm.scope import OTHERS_HOLD, USER_HOLD, by_name
from slurm_fair.slurm_text import hostlist

SLACK_SECONDS = 1.5  # Slurm keeps whole seconds
OPENING_SECONDS = 2.0  # a gate that opens in the next second is open, not somebody's begin time
DELAY_SLACK_SECONDS = 5.0  # seconds between the two instants that Slurm takes, and whole seconds
BOOT_SLACK_SECONDS = 1.0  # slurmctld says whole seconds of its start

_OR = ";"

Flag: TypeAlias = Bools | bool
Count: TypeAlias = Ints | int
Instant: TypeAlias = Floats | float


class WaitState(NamedTuple):
    """Slurm's columns on one waiting job, or on many."""

    held: Flag
    by_user: Flag  # its reason is that of a hold that a user may set
    by_others: Flag  # its reason is that of an admin's hold, or of Slurm's own
    restarts: Count
    submit: Instant
    eligible: Instant

    @classmethod
    def of(cls, rows: NDArray[np.void], reasons: Names) -> Self:
        """The state of rows of the queue."""
        by_user = by_name(reasons, USER_HOLD.__contains__, rows["reason"])
        by_others = by_name(reasons, OTHERS_HOLD.__contains__, rows["reason"])
        held = rows["priority"] == 0
        return cls(held, by_user, by_others, rows["restarts"], rows["submit"], rows["eligible"])

    @classmethod
    def of_one(cls, priority: int, reason: str, restarts: int, submit: float, eligible: float) -> Self:
        """The state of a single row."""
        return cls(priority == 0, reason in USER_HOLD, reason in OTHERS_HOLD, restarts, submit, eligible)

    @classmethod
    def of_fresh(cls, row: FreshRow) -> Self:
        """The state of a row that was read afresh."""
        return cls.of_one(row.priority, row.reason, row.restarts, row.submit, row.eligible)


class Noted(NamedTuple):
    """The marks of the same job, or of the same jobs: zeros where there is no mark."""

    known: Flag
    until: Instant  # of the mark that speaks for it
    before: Instant
    gates: tuple[Instant, ...]  # of its own mark and of its array's, each with the gate before

    @classmethod
    def of(cls, own: NDArray[np.void], array: NDArray[np.void]) -> Self:
        """The notes of rows that marks were joined to."""
        mark = np.where(own["known"], own, array)
        gates = tuple(each[name] for each in (own, array) for name in ("gate_until", "gate_before"))
        return cls(mark["known"], mark["gate_until"], mark["gate_before"], gates)

    @classmethod
    def of_one(cls, marks: tuple[Mark, ...]) -> Self:
        """The notes of one job's marks: its own first, then its array's."""
        if not marks:
            return cls(False, 0.0, 0.0, ())
        gates = tuple(gate for mark in marks for gate in (mark.gate_until, mark.gate_before))
        return cls(True, marks[0].gate_until, marks[0].gate_before, gates)


def is_same_time(gate: Instant, begin: Instant) -> Flag:
    """True if a begin time is this gate; 0 is none, inf is a hold."""
    near: Flag = np.abs(gate - begin) <= SLACK_SECONDS
    return (gate > 0) & near


def is_noted_gate(shown: WaitState, noted: Noted) -> Flag:
    """True if a begin time is the gate of a mark, or the one before when a new gate never came to stand.

    Moving an array's gate moves that of its split tasks too, so either mark may explain a begin time.
    """
    found: Flag = False
    for gate in noted.gates:
        found = found | is_same_time(gate, shown.eligible)
    return found


def is_slurms_delay(shown: WaitState, delay_seconds: float) -> Flag:
    """True if a begin time is the one that Slurm itself gives a requeued job (slurm-facts: requeue-delay).

    An earlier or later one is somebody's wish.
    """
    delay = shown.eligible - shown.submit
    near: Flag = np.abs(delay - delay_seconds) <= DELAY_SLACK_SECONDS
    return (shown.restarts > 0) & near


def may_be_as_submitted(shown: WaitState, with_hold: Flag) -> Flag:
    """True if a hold without a mark may be the submission's; `with_hold` = the job's stamp says that it had one.

    Slurm gives a job that was held from its submission no eligible time before it is released for the first
    time (slurm-facts: held-from-submission). A later hold takes that time away again (slurm-facts:
    hold-forgets-eligible).
    """
    return with_hold & shown.held & shown.by_user & (shown.restarts == 0) & (shown.eligible <= 0)


def is_as_submitted(shown: WaitState, with_hold: Flag, scheduled: Instant) -> Flag:
    """True if such a hold is the submission's. `scheduled` = when Slurm last tried to start it; inf = not known.

    Slurm tries at the submission, and never while a job is held: a job that it tried later was released, and
    somebody holds it since.
    """
    return may_be_as_submitted(shown, with_hold) & (scheduled <= shown.submit + SLACK_SECONDS)


def is_lasting(shown: WaitState, noted: Noted) -> Flag:
    """True if a hold is the one that a mark tells of. Our account sets no hold that shows as somebody else's.

    Marks of releases that did set such holds have no gate before.
    """
    foreign = shown.by_others & (noted.before > 0)
    return (noted.until == math.inf) & np.logical_not(foreign)


def is_our_hold(shown: WaitState, noted: Noted, with_hold: Flag, scheduled: Instant) -> Flag:
    """True if the job is held, and the hold is ours."""
    unknown = np.logical_not(noted.known) & is_as_submitted(shown, with_hold, scheduled)
    return shown.held & ((noted.known & is_lasting(shown, noted)) | unknown)


def may_carry_ours(pinned: Flag, has_pin: Flag, set_at: Instant, booted_at: float) -> Flag:
    """True if a node list may be the one of a mark.

    A slurmctld that was killed comes back with its last saved state, and so with a list that we had taken away
    (slurm-facts: state-goes-back). Lists are compared as sets of nodes (slurm-facts: lists-are-normalised).
    """
    return pinned | (has_pin & (set_at > 0) & (set_at < booted_at + BOOT_SLACK_SECONDS))


def is_our_list(mark: Mark, node_text: str, booted_at: float) -> bool:
    """True if the node list of a job is the one that we set."""
    if not may_carry_ours(mark.pinned, bool(mark.pin), mark.set_at, booted_at):
        return False
    if not mark.pin:  # of an earlier release
        return True
    try:
        here = frozenset(hostlist.expand(node_text))
        return here == frozenset(hostlist.expand(mark.pin)) != frozenset(hostlist.expand(mark.user_nodes))
    except SlurmTextError:
        return False


def may_have_come_back(mark: Mark, node_text: str, booted_at: float) -> bool:
    """True if a list is one that we took away, and ours if slurmctld started later than is known.

    Before anybody believes that it is the user's own, slurmctld is asked anew when it started.
    """
    if may_carry_ours(mark.pinned, bool(mark.pin), mark.set_at, booted_at):
        return False
    return is_our_list(mark, node_text, math.inf)


def is_our_size(mark: Mark, text: str) -> bool:
    """True if the request of a job, as it is written, is the one that we set."""
    here, ours = SizeRequest.read(text), map(SizeRequest.read, own_size_requests(mark))
    return here is not None and any(each is not None and here.is_as_large_as(each) for each in ours)


def own_size_requests(mark: Mark) -> tuple[str, ...]:
    """The requests of ours of which a job carries one, as they are written."""
    return tuple(filter(None, mark.size.split(_OR)))


def either_size(*requests: str) -> str:
    """The size of a mark whose job carries one of these requests of ours."""
    return _OR.join(dict.fromkeys(filter(None, requests)))


def own_request(text: str, marks: Iterable[Mark]) -> str:
    """The user's own request of a job that shows this one; a request that is not ours is the user's own."""
    return next((mark.user_size for mark in marks if is_our_size(mark, text)), text)


def kept_by_us(row: np.void, stamp: Stamp, reason: str, lost: bool, scheduled: float) -> bool:
    """True if a stamped job without a mark waits for us, and not for its user or an admin.

    When the journal is `lost`, each requeued one does that does not wait for the begin time of its owner's own.
    `scheduled` = when Slurm last tried to start it.
    """
    restarts, submit, eligible = int(row["restarts"]), float(row["submit"]), float(row["eligible"])
    shown = WaitState.of_one(int(row["priority"]), reason, restarts, submit, eligible)
    if shown.held:
        return bool(is_as_submitted(shown, stamp.is_hold, scheduled))
    requeued = lost and restarts > 0 and not stamp.is_own_begin(eligible)
    return requeued or stamp.is_gate(eligible, submit)
