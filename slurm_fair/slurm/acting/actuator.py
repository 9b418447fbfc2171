"""Acts on jobs: intent -> fresh read -> act -> re-read -> outcome, one act in flight per job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, JobState, Outcome, Result, Untried, Verb
from slurm_fair.ports import IntentLog
from slurm_fair.slurm.acting import resizing, scontrol_lines
from slurm_fair.slurm.acting.act_end import ActEnd, refused_or_unknown
from slurm_fair.slurm.acting.act_marks import ActMarks
from slurm_fair.slurm.acting.effects import Effects
from slurm_fair.slurm.acting.rounds import ROUND, Rounds
from slurm_fair.slurm.acting.sending import send_lines
from slurm_fair.slurm.acting.signals import Signals
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import is_same_time
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.reread import FreshRow, Rows, look, which

_KEEPS_WAITING = (Verb.CLOSE, Verb.OPEN, Verb.FREE)
_SENT_LAST = (Verb.CLOSE, Verb.FREE)  # in this order: what starts and stops jobs goes first
_NOT_LOOKED = "nobody has looked at the cluster yet"


@dataclass(slots=True)
class Actuator:
    """The only writer to Slurm."""

    commands: Commands
    queue: Queue
    marks: Marks
    details: JobDetails
    intents: IntentLog
    now: Callable[[], float]
    requeue_delay: InitVar[float] = 121.0  # of Slurm; `ours` keeps it
    fence: Callable[[], None] = lambda: None
    remit: Remit | None = None  # without one, jobs are only freed
    rounds: Rounds = field(default_factory=Rounds)
    ours: OursAfresh = field(init=False)
    effects: Effects = field(init=False)
    act_marks: ActMarks = field(init=False)

    def __post_init__(self, requeue_delay: float) -> None:
        self.ours = OursAfresh(self.marks, self.details, requeue_delay)
        self.effects = Effects(self.ours, self.now)
        self.act_marks = ActMarks(self.marks, self.ours, self.now)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """One outcome per action, in the same order."""
        first = [action for action in actions if action.verb not in _SENT_LAST]
        last = [[action for action in actions if action.verb is verb] for verb in _SENT_LAST]
        done: dict[Action, Outcome] = {}
        for batch in (first, *last):
            done |= {outcome.action: outcome for outcome in self._batch(batch)} if batch else {}
        return tuple(done[action] for action in actions)

    def _batch(self, actions: Sequence[Action]) -> list[Outcome]:
        self.fence()
        ids = self.intents.intend(actions, self.now())
        began = self.now()
        done = self._attempt(actions)
        seconds = self.now() - began
        outcomes = [self._outcome(action, done[action], seconds) for action in actions]
        self.act_marks.correct(outcomes)
        self.intents.conclude(ids, outcomes, self.now())
        return outcomes

    def _outcome(self, action: Action, end: ActEnd, seconds: float) -> Outcome:
        return Outcome(action, end.result, end.detail, seconds, end.later, end.untried)

    def _attempt(self, actions: Sequence[Action]) -> dict[Action, ActEnd]:
        before = self._look(actions)
        if not isinstance(before, str):
            before = self.ours.learn(actions, before) or before
        if isinstance(before, str):
            why = f"{Untried.UNSEEN.value}: {before}"
            return dict.fromkeys(actions, ActEnd(Result.REFUSED, why, later=True, untried=Untried.UNSEEN))
        done: dict[Action, ActEnd] = {}
        lines: dict[Action, scontrol_lines.ScontrolLines] = {}
        for action in actions:
            try:
                if why := self._hinders(action, before):
                    done[action] = ActEnd(Result.REFUSED, why)
                else:
                    lines[action] = self._lines(action, before[which(action)])
            except SlurmTextError as wrong:
                done[action] = ActEnd(Result.REFUSED, str(wrong))
        if any(action.verb in _SENT_LAST for action in lines):
            return done | self._send_in_rounds(lines, before)
        self.act_marks.set_ahead(list(lines), before)
        done |= self._ask([action for action in lines if action.verb is Verb.ASK], before)
        done |= self._send({a: lines[a] for a in lines if a.verb is not Verb.ASK}, before)
        return done

    def _look(self, actions: Iterable[Action]) -> Rows | str:
        return look(self.queue, {which(action) for action in actions}, self._objections)

    def _objections(self, rows: NDArray[np.void]) -> Mapping[int, str]:
        if self.remit is None:
            return dict.fromkeys(rows["record"].tolist(), _NOT_LOOKED)
        return self.remit.objections(rows, self.queue, self.details)

    def _hinders(self, action: Action, rows: Rows) -> str:
        """The reason why the act no longer applies; empty when it does."""
        row = rows.get(which(action))
        if row is None:
            return "it is no longer listed"
        if (row.record, row.submit, row.restarts) != (action.record, action.submit, action.restarts):
            return "it was requeued or replaced since it was looked at"
        if row.objection and action.verb is not Verb.FREE:  # what is ours is taken back from anybody
            return row.objection
        if action.verb in _KEEPS_WAITING:
            return self._hinders_waiting(action, row)
        return "" if row.state == JobState.RUNNING else f"it is {row.state.name.lower()}"

    def _hinders_waiting(self, action: Action, row: FreshRow) -> str:
        if row.state != JobState.WAITING:
            return f"it is {row.state.name.lower()}"
        if action.verb is not Verb.FREE and self.ours.foreign_hold(action, row):
            tidies = action.verb is Verb.CLOSE and not self.effects.is_tidy(action, row)
            return "" if tidies else f"it is held ({row.reason})"
        return self._hinders_opening(action, row) if action.verb is Verb.OPEN else ""

    def _hinders_opening(self, action: Action, row: FreshRow) -> str:
        if not action.nodes or action.whole_record:
            return "no nodes are named for it"
        if row.dependency:
            return "it waits for another job"
        if row.eligible <= self.now() + 1 or self.ours.delay(row):
            return ""
        # A held job keeps the begin time of its user; a gated one has the gate that it was looked at with.
        return "" if is_same_time(action.until, row.eligible) else "its begin time was moved by somebody"

    def _ask(self, actions: list[Action], rows: Rows) -> dict[Action, ActEnd]:
        by_signal: dict[str, list[Action]] = {}
        for action in actions:
            by_signal.setdefault(self.ours.stamp_on(action).signal, []).append(action)
        return Signals(self.commands, self._look).ask(by_signal, rows)

    def _send(
        self, lines: Mapping[Action, scontrol_lines.ScontrolLines], before: Rows
    ) -> dict[Action, ActEnd]:
        done: dict[Action, ActEnd] = {}
        pins = [action for action in lines if lines[action].pin]
        if pins:
            done |= self._pin(pins, lines)
        going = [action for action in lines if action not in done]
        if going:
            answers = send_lines(self.commands, {action: lines[action].then for action in going})
            after = self._look(going)
            done |= {a: self.effects.end_of(a, answers[a], before[which(a)], after) for a in going}
        return done

    def _lines(self, action: Action, row: FreshRow) -> scontrol_lines.ScontrolLines:
        """The scontrol lines of an act; SlurmTextError when something in it is not what it should be."""
        job, pinned = self._job(action, row), self.ours.pins(action, row)
        users_list = pinned.user_nodes if pinned else None
        next_second = row.restarts > 0 and int(self.now()) <= int(row.submit)
        if action.verb is Verb.CLOSE:
            if self.ours.foreign_hold(action, row):
                lines = scontrol_lines.free_lines(job, users_list, gated=False, held=False, next_second=False)
            else:
                lines = scontrol_lines.close_lines(job, action.until, users_list, self.ours.hold(action, row))
            return replace(lines, then=resizing.own_size(job, self.ours, action, row) + lines.then)
        if action.verb is Verb.OPEN:
            lines = scontrol_lines.open_lines(job, action.nodes, next_second, row.priority == 0)
            return resizing.opening(lines, job, self.ours, action, row)
        if action.verb is Verb.REQUEUE:
            return scontrol_lines.requeue_lines(job)
        if action.verb is Verb.ASK:
            return scontrol_lines.ScontrolLines()
        gated, held = self.ours.begin(action, row), self.ours.hold(action, row)
        begin = self.ours.own_begin(action, row)
        again = begin if begin > self.now() + 1 else 0.0
        lines = scontrol_lines.free_lines(job, users_list, gated, held, next_second, again)
        return replace(lines, then=resizing.own_size(job, self.ours, action, row) + lines.then)

    def _job(self, action: Action, row: FreshRow) -> str:
        """The id to act on; for an unsplit array the ids of its waiting tasks alone."""
        if action.whole_record and 0 < len(row.tasks) <= scontrol_lines.MOST_TASK_TEXT:
            return scontrol_lines.tasks_id(action.key, row.tasks)
        return scontrol_lines.job_id(action.key)

    def _pin(
        self, actions: list[Action], lines: Mapping[Action, scontrol_lines.ScontrolLines]
    ) -> dict[Action, ActEnd]:
        """Pin, look, and give up those whose nodes or size are not seen: a gate is never opened after that."""
        answers = send_lines(self.commands, {action: lines[action].pin for action in actions})
        after = self._look(actions)
        if isinstance(after, str):
            return dict.fromkeys(actions, ActEnd(Result.UNKNOWN, after))
        failed: dict[Action, ActEnd] = {}
        for action in actions:
            row = after.get((action.key, False))
            if row is None or row.nodes != frozenset(action.nodes):
                what = "the node list did not take"
            elif not resizing.asks_for(row, lines[action].request):
                what = f"its size did not become {action.gpus} GPUs"
            else:
                continue
            failed[action] = refused_or_unknown(answers[action], scontrol_lines.ids(action), what)
        return failed | self._put_back(failed, {a: after.get((a.key, False)) for a in failed}, lines)

    def _put_back(
        self,
        failed: Mapping[Action, ActEnd],
        rows: Mapping[Action, FreshRow | None],
        lines: Mapping[Action, scontrol_lines.ScontrolLines],
    ) -> dict[Action, ActEnd]:
        """Give jobs that were not opened their users' own requests back: none is ever left half changed.

        The act is refused where that is seen, and unknown where it is not.
        """
        half = {a: row for a, row in rows.items() if row is not None and lines[a].request}
        undo = {a: resizing.words_to_undo(self.ours, a, row) for a, row in half.items()}
        undo = {action: words for action, words in undo.items() if words}
        if not undo:
            return {}
        back = {a: scontrol_lines.resize(self._job(a, half[a]), undo[a]) for a in undo}
        answers, after = send_lines(self.commands, back), self._look(undo)
        done: dict[Action, ActEnd] = {}
        for action, answer in answers.items():
            row = None if isinstance(after, str) else after.get((action.key, False))
            left = row is None or resizing.words_to_undo(self.ours, action, row)
            detail = f"{failed[action].detail}, and its own request was not seen to be back" if left else ""
            unsure = left or answer.timed_out
            result = Result.UNKNOWN if unsure else Result.REFUSED
            done[action] = ActEnd(
                result, detail or failed[action].detail, failed[action].later and not unsure
            )
        return done

    def _send_in_rounds(
        self, lines: Mapping[Action, scontrol_lines.ScontrolLines], before: Rows
    ) -> dict[Action, ActEnd]:
        """Many gates after one look, and one look after all of them."""
        everybody, answers = list(lines), dict[Action, CommandResult]()
        self.rounds.begin(self.now())
        for at in range(0, len(everybody), ROUND):
            part = everybody[at : at + ROUND]
            if at:
                self.fence()
            began = self.now()
            if at and part[0].verb is Verb.CLOSE and not self.rounds.fits_another(began):
                break
            self.act_marks.set_ahead(part, before)
            answers |= send_lines(self.commands, {action: lines[action].then for action in part})
            self.rounds.took(self.now() - began)
        after = self._look(answers) if answers else {}
        done = {a: self.effects.end_of(a, answers[a], before[which(a)], after) for a in answers}
        late = ActEnd(Result.REFUSED, Untried.TOO_LATE.value, later=True, untried=Untried.TOO_LATE)
        return dict.fromkeys(everybody, late) | done
