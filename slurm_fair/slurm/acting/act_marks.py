"""Marks on jobs: set before an act imposes anything, and corrected by what was seen to happen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slurm_fair.model import Action, Outcome, Result, Verb
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting import resizing
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh
from slurm_fair.slurm.reading.reread import FreshRow, Rows, which
from slurm_fair.slurm_text import hostlist


@dataclass(frozen=True, slots=True)
class ActMarks:
    """The marks of what acts impose on jobs."""

    marks: Marks
    ours: OursAfresh
    now: Callable[[], float]

    def set_ahead(self, actions: Sequence[Action], rows: Rows) -> None:
        """Marks of what is about to be imposed, durable before it is: a crash in between is then undone too."""
        each = [self._ahead(action, rows[which(action)]) for action in actions]
        self.marks.set([mark for mark in each if mark is not None])

    def _ahead(self, action: Action, row: FreshRow) -> Mark | None:
        if action.verb is Verb.CLOSE:
            return self._closing(action, row)
        if action.verb is Verb.OPEN:
            mark = self._mark(action, row)
            before = self.now() if math.isinf(mark.gate_until) else 0.0
            mark = replace(mark, pinned=True, pin=hostlist.join(action.nodes), gate_before=before)
            return resizing.with_size(mark, self.ours, action, row)
        if action.verb is Verb.REQUEUE:
            # Slurm's own requeue delay keeps it back on our account, so it is ours to undo.
            return replace(self._mark(action, row), gate_until=self.now() + self.ours.requeue_delay)
        return None

    def _closing(self, action: Action, row: FreshRow) -> Mark:
        old, mark = self.ours.mark_on(action), self._mark(action, row)
        if self.ours.foreign_hold(action, row):
            return replace(mark, gate_until=old.gate_until if old else 0.0)
        before = old.gate_until if old and math.isfinite(old.gate_until) else 0.0
        until = float(int(action.until))
        # A hold that is to give way to a begin time is ours until it is seen lifted.
        held = self.ours.hold(action, row)
        until, before = (math.inf, until) if held else (until, before)
        return replace(mark, gate_until=until, gate_before=before, blameless=True)  # until it stands

    def _mark(self, action: Action, row: FreshRow) -> Mark:
        """The mark on the job as it stands, seen now."""
        old, pinned = self.ours.mark_on(action), self.ours.pins(action, row) is not None
        own_begin = self.ours.own_begin(action, row)
        mark = Mark(
            action.key,
            action.record,
            action.whole_record,
            action.submit,
            action.restarts,
            old.gate_until if old else action.until,
            pinned,
            self.now(),
            self.ours.own_nodes(action, row),
            pin=old.pin if old else "",
            user_begin=own_begin if own_begin > self.now() else 0.0,
        )
        if old is not None and self.ours.resized(action, row):
            return replace(mark, size=old.size, user_size=old.user_size)
        return mark

    def correct(self, outcomes: Sequence[Outcome]) -> None:
        """Marks after what was seen to happen."""
        keep: list[Mark] = []
        drop: list[Mark] = []
        for outcome in outcomes:
            action = outcome.action
            mark = self.marks.get(action.key, action.whole_record)
            if mark is None:
                continue
            if outcome.result is not Result.DONE:
                # Nobody is blamed for a gate that was not seen to stand.
                tried = action.verb is Verb.CLOSE and outcome.untried is None
                keep += [replace(mark, blameless=True)] if tried else []
            elif action.verb is Verb.CLOSE:
                keep.append(_closed(mark, self.now()))
            elif action.verb is Verb.OPEN:
                keep.append(replace(mark, gate_until=0.0, gate_before=0.0, user_begin=0.0))
            elif action.verb is Verb.FREE:
                drop.append(mark)
        self.marks.set(keep)
        self.marks.drop(drop)


def _closed(mark: Mark, now: float) -> Mark:
    """The mark of a job that was seen behind its gate, without a node list of ours."""
    until = mark.gate_before if math.isinf(mark.gate_until) else mark.gate_until
    seen = replace(mark, gate_until=until, gate_before=0.0, pinned=False, set_at=now, blameless=False)
    return replace(seen, size="", user_size="")
