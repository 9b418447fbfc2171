"""The end of an act, as a look after it shows the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slurm_fair.model import Action, JobState, Result, Verb
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.acting.act_end import ActEnd, refused_or_unknown
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.ownership.ours import OPENING_SECONDS, is_same_time
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh
from slurm_fair.slurm.reading.reread import FreshRow, Rows, which
from slurm_fair.slurm_text import hostlist


@dataclass(frozen=True, slots=True)
class Effects:
    """Tell by a job's row if an act on it took effect."""

    ours: OursAfresh
    now: Callable[[], float]

    def end_of(self, action: Action, answer: CommandResult, before: FreshRow, after: Rows | str) -> ActEnd:
        """The end of an act, from Slurm's answer and the looks before and after it."""
        if isinstance(after, str):
            return ActEnd(Result.UNKNOWN, after)
        if answer.timed_out and self.seen(action, before):
            return ActEnd(Result.UNKNOWN, answer.complaint)  # it stood so already: the act may still come
        row = after.get(which(action))
        if row is None:
            # An array whose tasks have all started has no waiting rest that anybody could keep back.
            freed = action.verb is Verb.FREE and action.whole_record
            return ActEnd(Result.DONE if freed else Result.UNKNOWN, "it is no longer listed")
        if self.seen(action, row):
            return ActEnd(Result.DONE)
        if action.verb is Verb.REQUEUE and row.state in (JobState.ENDING, JobState.DONE):
            return ActEnd(Result.REFUSED, "it ended by itself")
        if action.verb is Verb.CLOSE and row.state != JobState.WAITING:
            return ActEnd(Result.REFUSED, "it started first")
        return refused_or_unknown(answer, scontrol_lines.ids(action), "no effect was seen")

    def seen(self, action: Action, row: FreshRow) -> bool:
        """True if the job stands as the act would have it."""
        if action.verb is Verb.REQUEUE:
            return row.restarts > action.restarts  # slurm-facts: requeue-counts-at-once
        if action.verb is Verb.CLOSE:
            if row.state != JobState.WAITING or not self.is_tidy(action, row):
                return False
            gated = bool(is_same_time(int(action.until), row.eligible))
            return gated if row.priority > 0 else self.ours.foreign_hold(action, row)
        if action.verb is Verb.FREE:
            if row.state != JobState.WAITING:
                return True
            kept = self.ours.begin(action, row) and row.eligible > self.now() + OPENING_SECONDS
            kept &= not is_same_time(self.ours.own_begin(action, row), row.eligible)
            return self.is_tidy(action, row) and not (kept or self.ours.hold(action, row))
        open_now = row.eligible <= self.now() + OPENING_SECONDS and row.priority > 0
        return row.state != JobState.WAITING or open_now

    def is_tidy(self, action: Action, row: FreshRow) -> bool:
        """True if no node list and no size of ours is left on the job."""
        if self.ours.resized(action, row):
            return False
        mark = self.ours.pins(action, row)
        if mark is None:
            return True
        return row.nodes == frozenset(hostlist.expand(mark.user_nodes))
