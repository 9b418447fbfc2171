"""Tell whose the hold, the begin time and the node list of one job are, as a fresh read shows it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Action, Verb
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import (
    Noted,
    WaitState,
    is_noted_gate,
    is_our_hold,
    is_our_list,
    is_slurms_delay,
    may_be_as_submitted,
    may_have_come_back,
    own_request,
)
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import UNSPLIT
from slurm_fair.slurm.reading.reread import FreshRow, Rows
from slurm_fair.slurm.reading.slurmctld import configured, started_at
from slurm_fair.slurm.reading.stamp import Stamp


@dataclass(slots=True)
class OursAfresh:
    """Rules of what is ours, applied to a row that was read afresh."""

    marks: Marks
    details: JobDetails
    requeue_delay: float
    booted_at: float = 0.0  # when slurmctld started, as far as is known

    def learn(self, actions: Collection[Action], rows: Rows) -> str:
        """Ask anew about holds that may be the submission's: since the look somebody may have taken them over.

        Likewise when slurmctld started, where a job carries a list that we took away. A complaint when Slurm does
        not answer well.
        """
        if any(self._may_have_come_back(action, rows) for action in actions):
            said = configured(self.details.commands)
            if not said:
                return "scontrol show config: no answer, so nobody knows when slurmctld started"
            self.booted_at = started_at(said, self.booted_at)
        held = [action for action in actions if self._may_be_as_submitted(action, rows)]
        runs = [(action.record, action.restarts) for action in held]
        return self.details.scheduled.learn(runs) if runs else ""

    def _may_have_come_back(self, action: Action, rows: Rows) -> bool:
        row, mark = rows.get((action.key, action.whole_record)), self.mark_on(action)
        if row is None or mark is None or not row.node_text:
            return False
        return may_have_come_back(mark, row.node_text, self.booted_at)

    def _may_be_as_submitted(self, action: Action, rows: Rows) -> bool:
        row = rows.get((action.key, action.whole_record))
        if row is None or self.mark_on(action) is not None:
            return False
        return bool(may_be_as_submitted(WaitState.of_fresh(row), self.stamp_on(action).is_hold))

    def mark_on(self, action: Action) -> Mark | None:
        """The mark that speaks for the job."""
        return self.marks.covering(action.key, action.whole_record, action.submit, action.restarts)

    def stamp_on(self, action: Action) -> Stamp:
        """The job's stamp, or one that says nothing."""
        return self.details.of(action.record, action.restarts).gate_stamp

    def hold(self, action: Action, row: FreshRow) -> bool:
        """True if the job is held, and the hold is ours."""
        if row.priority > 0:
            return False
        shown, noted, with_hold = WaitState.of_fresh(row), self._noted(action), self.stamp_on(action).is_hold
        scheduled = self.details.scheduled.at(action.record, action.restarts)
        return bool(is_our_hold(shown, noted, with_hold, scheduled))

    def foreign_hold(self, action: Action, row: FreshRow) -> bool:
        """True if the job is held by its user, an admin or Slurm."""
        return row.priority == 0 and not self.hold(action, row)

    def begin(self, action: Action, row: FreshRow) -> bool:
        """True if the job's begin time is ours, or Slurm's after a requeue of ours.

        Slurm's counts only where a mark of ours is known: an act may replace no time that somebody else caused. A
        look (`gates_of`) counts it without a mark too, because whoever requeued the job, nobody set that time.
        """
        noted = self._noted(action)
        ours = bool(is_noted_gate(WaitState.of_fresh(row), noted)) or (bool(noted.known) and self.delay(row))
        return ours or self.stamp_on(action).is_gate(row.eligible, row.submit)

    def own_begin(self, action: Action, row: FreshRow) -> float:
        """The user's own begin time: the one that shows, or the one that our gate took the place of; 0 = none.

        A job whose gate is gone has none: somebody moved it, and that is the later wish.
        """
        if row.eligible <= 0:
            return 0.0
        if not (self.begin(action, row) or self.delay(row)):
            return row.eligible
        marks = self.marks.on(action.key, action.whole_record, action.submit, action.restarts)
        noted = [mark for mark in marks if is_noted_gate(WaitState.of_fresh(row), Noted.of_one((mark,)))]
        return noted[0].user_begin if noted else 0.0

    def delay(self, row: FreshRow) -> bool:
        """True if Slurm itself keeps the job back after a requeue."""
        return bool(is_slurms_delay(WaitState.of_fresh(row), self.requeue_delay))

    def pins(self, action: Action, row: FreshRow) -> Mark | None:
        """The mark whose node list the job carries."""
        mark = self.mark_on(action)
        return mark if mark and is_our_list(mark, row.node_text, self.booted_at) else None

    def own_nodes(self, action: Action, row: FreshRow) -> str:
        """The user's own node list."""
        mark = self.pins(action, row)
        return mark.user_nodes if mark else row.node_text

    def own_request(self, action: Action, row: FreshRow) -> str:
        """The user's own request for GPUs."""
        marks = self.marks.on(action.key, action.whole_record, action.submit, action.restarts)
        return own_request(row.request, marks)

    def resized(self, action: Action, row: FreshRow) -> bool:
        """True if the job carries a request for GPUs that is ours."""
        return self.own_request(action, row) != row.request

    def _noted(self, action: Action) -> Noted:
        return Noted.of_one(self.marks.on(action.key, action.whole_record, action.submit, action.restarts))


def free_action(row: np.void, why: str = "fail open") -> Action:
    whole = bool(row["task"] == UNSPLIT)
    key = pack(int(row["base"]), NO_TASK if whole else int(row["task"]))
    return Action(
        Verb.FREE,
        key,
        int(row["record"]),
        float(row["submit"]),
        int(row["restarts"]),
        whole_record=whole,
        why=why,
    )
