"""Tell our own hold, begin time and node list of a waiting job from others', by marks and stamps.

We set begin times and node lists, never holds. The one hold of ours is the one that the submit hook or a template
submitted a job with; at the first look a begin time takes its place. From then on every hold is somebody's own,
because Slurm shows nothing of a user's hold that is put on a held job (slurm-facts: hold-of-a-held-job).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, Verb
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import MarkBook
from slurm_fair.slurm.reading import hostlist
from slurm_fair.slurm.reading.details import DetailsBook
from slurm_fair.slurm.reading.queue import UNSPLIT
from slurm_fair.slurm.reading.reread import FreshRow
from slurm_fair.slurm.reading.stamp import Stamp
from slurm_fair.slurm.scope import ADMIN_HOLD, REQUEUE_HOLD, USER_HOLD

SLACK_SECONDS = 1.5  # Slurm keeps whole seconds
DELAY_SLACK_SECONDS = 5.0


def is_as_submitted(stamp_gate: str, reason: str, restarts: int, eligible: float) -> bool:
    """Whether a hold without a mark is the one that the job was submitted with.

    Slurm gives a job that was held from its submission no eligible time before it is released for the first
    time (slurm-facts: held-from-submission).
    """
    return stamp_gate == "hold" and restarts == 0 and reason in USER_HOLD and eligible <= 0


def is_foreign(reason: str, gate_before: float) -> bool:
    """Whether a hold is not ours although a mark tells of one: our account sets no hold that shows so.

    Marks of releases that did set such holds have no gate before.
    """
    return reason in ADMIN_HOLD | REQUEUE_HOLD and gate_before > 0


def is_slurms_delay(restarts: int, eligible: float, submit: float, delay_seconds: float) -> bool:
    """Whether a begin time is the one that Slurm itself gives a requeued job (slurm-facts: requeue-delay)."""
    return restarts > 0 and 0 <= eligible - submit <= delay_seconds + DELAY_SLACK_SECONDS


def is_our_list(mark: Mark, node_text: str, booted_at: float) -> bool:
    """Whether the node list of a job is the one that we set.

    A slurmctld that was killed comes back with its last saved state, and so with a list that we had taken away
    (slurm-facts: state-goes-back). Lists are compared as sets of nodes (slurm-facts: lists-are-normalised).
    """
    if not mark.pinned and not (mark.pin and 0 < mark.set_at < booted_at + 1):  # it says whole seconds
        return False
    if not mark.pin:  # of an earlier release
        return True
    try:
        here = frozenset(hostlist.expand(node_text))
        return here == frozenset(hostlist.expand(mark.pin)) != frozenset(hostlist.expand(mark.user_nodes))
    except SlurmTextError:
        return False


@dataclass(slots=True)
class Claims:
    """Tells whether the hold, begin time and node list of a fresh row are ours."""

    marks: MarkBook
    details: DetailsBook
    requeue_delay: float
    booted_at: float = 0.0  # when slurmctld started, as far as is known

    def mark_on(self, action: Action) -> Mark | None:
        """The mark that speaks for the job."""
        return self.marks.covering(action.key, action.whole_record, action.submit, action.restarts)

    def stamp_on(self, action: Action) -> Stamp:
        """The job's stamp, or one that says nothing."""
        return self.details.of(action.record, action.restarts).gate_stamp

    def hold(self, action: Action, row: FreshRow) -> bool:
        """Whether it is held, and the hold is ours."""
        if row.priority > 0:
            return False
        mark = self.mark_on(action)
        if mark is not None:
            return math.isinf(mark.gate_until) and not is_foreign(row.reason, mark.gate_before)
        gate = self.stamp_on(action).gate
        return is_as_submitted(gate, row.reason, row.restarts, row.eligible)

    def foreign_hold(self, action: Action, row: FreshRow) -> bool:
        """Whether it is held by its user, an admin or Slurm."""
        return row.priority == 0 and not self.hold(action, row)

    def begin(self, action: Action, row: FreshRow) -> bool:
        """Whether the begin time that keeps it waiting is ours, or Slurm's after a requeue of ours."""
        mark = self.mark_on(action)
        if mark is None:
            return self.stamp_on(action).is_gate(row.eligible, row.submit)
        ours = any(abs(gate - row.eligible) <= SLACK_SECONDS for gate in (mark.gate_until, mark.gate_before))
        return ours or self.delay(row) or self.stamp_on(action).is_gate(row.eligible, row.submit)

    def delay(self, row: FreshRow) -> bool:
        """Whether Slurm itself keeps it back after a requeue."""
        return is_slurms_delay(row.restarts, row.eligible, row.submit, self.requeue_delay)

    def pins(self, action: Action, row: FreshRow) -> Mark | None:
        """The mark whose node list the job carries."""
        mark = self.mark_on(action)
        return mark if mark and is_our_list(mark, row.node_text, self.booted_at) else None

    def own_nodes(self, action: Action, row: FreshRow) -> str:
        """The user's own node list."""
        mark = self.pins(action, row)
        return mark.user_nodes if mark else row.node_text


def kept_by_us(row: np.void, stamp: Stamp, reason: str, lost: bool) -> bool:
    """Whether a stamped job waits for us, and not for its user or an admin."""
    restarts, eligible, submit = int(row["restarts"]), float(row["eligible"]), float(row["submit"])
    if row["priority"] == 0:
        return is_as_submitted(stamp.gate, reason, restarts, eligible)
    if lost and restarts > 0:
        return True
    return stamp.is_gate(eligible, submit)


def free_action(row: np.void) -> Action:
    whole = bool(row["task"] == UNSPLIT)
    key = pack(int(row["base"]), NO_TASK if whole else int(row["task"]))
    return Action(
        Verb.FREE,
        key,
        int(row["record"]),
        float(row["submit"]),
        int(row["restarts"]),
        whole_record=whole,
        why="fail open",
    )
