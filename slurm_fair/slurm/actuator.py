"""Acts on jobs: intent -> fresh read -> act -> re-read -> outcome, in batches, one act in flight per job."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from slurm_fair.model import Action, JobState, Outcome, Result, Verb
from slurm_fair.model.mark import Mark
from slurm_fair.ports import IntentLog
from slurm_fair.slurm import gates
from slurm_fair.slurm.command import Answer, Commands
from slurm_fair.slurm.details import DetailsBook
from slurm_fair.slurm.fresh import Row, Rows, look
from slurm_fair.slurm.marks import MarkBook
from slurm_fair.slurm.queue import Queue
from slurm_fair.slurm.refusals import Class, classify

_AT_ONCE = 400
_SLACK_SECONDS = 1.5
_KEEPS_WAITING = (Verb.CLOSE, Verb.OPEN, Verb.FREE)


@dataclass(slots=True)
class Actuator:
    """The only writer to Slurm."""

    commands: Commands
    queue: Queue
    marks: MarkBook
    details: DetailsBook
    intents: IntentLog
    now: Callable[[], float]
    gate: str = "begin"
    requeue_delay: float = 121.0
    fence: Callable[[], None] = lambda: None
    errors: list[str] = field(default_factory=list)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """One outcome per action, in the same order."""
        outcomes: list[Outcome] = []
        for first in range(0, len(actions), _AT_ONCE):
            outcomes.extend(self._batch(actions[first : first + _AT_ONCE]))
        return tuple(outcomes)

    def _batch(self, actions: Sequence[Action]) -> list[Outcome]:
        self.fence()
        ids = self.intents.intend(actions, self.now())
        began = self.now()
        done = self._attempt(actions)
        seconds = self.now() - began
        outcomes = [Outcome(a, *done[a], seconds) for a in actions]
        self._remember(outcomes)
        self.intents.conclude(ids, outcomes, self.now())
        return outcomes

    def _attempt(self, actions: Sequence[Action]) -> dict[Action, tuple[Result, str]]:
        before = self._look(actions)
        if isinstance(before, str):
            return dict.fromkeys(actions, (Result.REFUSED, f"not tried: {before}"))
        done = {action: (Result.REFUSED, why) for action in actions if (why := self._hinders(action, before))}
        going = [action for action in actions if action not in done]
        self.marks.set(self._marks_ahead(going, before))
        done |= self._ask([action for action in going if action.verb is Verb.ASK])
        done |= self._send([action for action in going if action.verb is not Verb.ASK], before)
        return done

    def _look(self, actions: Iterable[Action]) -> Rows | str:
        return look(self.queue, {(action.key, action.whole_record) for action in actions})

    def _hinders(self, action: Action, rows: Rows) -> str:
        """Why the act no longer applies; empty when it does."""
        row = rows.get((action.key, action.whole_record))
        if row is None:
            return "it is no longer listed"
        if row.submit != action.submit or row.restarts != action.restarts:
            return "it was requeued or replaced since it was looked at"
        if action.verb in _KEEPS_WAITING:
            return self._hinders_waiting(action, row)
        return "" if row.state == JobState.RUNNING else f"it is {row.state.name.lower()}"

    def _hinders_waiting(self, action: Action, row: Row) -> str:
        if row.state != JobState.WAITING:
            return f"it is {row.state.name.lower()}"
        if row.priority == 0 and not self._our_hold(action, row):
            return (
                f"it is held ({row.reason})"
                if action.verb is not Verb.CLOSE or self._holds(action, row)
                else ""
            )
        if action.verb is not Verb.OPEN:
            return ""
        if row.dependency:
            return "it waits for another job"
        moved = row.eligible > self.now() + 1 and abs(row.eligible - action.until) > _SLACK_SECONDS
        return "its begin time was moved by somebody" if moved and math.isfinite(action.until) else ""

    def _stamp_gate(self, action: Action) -> str:
        stamp = self.details.of(action.record, action.restarts).stamp
        return stamp.gate if stamp else ""

    def _holds(self, action: Action, row: Row) -> bool:
        """Whether this job's gate is a hold: only jobs stamped at submission are ever held."""
        if self.gate != "hold":
            return False
        mark = self.marks.get(action.key, action.whole_record)
        return bool(self._stamp_gate(action)) or bool(mark and mark.gate_until == math.inf)

    def _our_hold(self, action: Action, row: Row) -> bool:
        mark = self.marks.get(action.key, action.whole_record)
        if mark and mark.gate_until == math.inf:
            return True
        return self._stamp_gate(action) == "hold" and row.restarts == 0 and row.reason == "JobHeldUser"

    # -- signals ------------------------------------------------------------------------------------------

    def _ask(self, actions: list[Action]) -> dict[Action, tuple[Result, str]]:
        by_signal: dict[str, list[Action]] = {}
        for action in actions:
            signal = self.details.of(action.record, action.restarts).gate_stamp.signal
            by_signal.setdefault(signal, []).append(action)
        done: dict[Action, tuple[Result, str]] = {}
        for signal, group in by_signal.items():
            ids = [gates.job_id(action.key) for action in group]
            answer = self.commands.run("scancel", "--batch", f"--signal={signal}", *ids)
            done |= {action: _signalled(answer, gates.job_id(action.key)) for action in group}
        return done

    # -- scontrol -----------------------------------------------------------------------------------------

    def _send(self, actions: list[Action], before: Rows) -> dict[Action, tuple[Result, str]]:
        if not actions:
            return {}
        lines = {action: self._lines(action, before[action.key, action.whole_record]) for action in actions}
        done: dict[Action, tuple[Result, str]] = {}
        pins = [action for action in actions if lines[action].pin]
        if pins:
            done |= self._pin(pins, lines)
        going = [action for action in actions if action not in done]
        if going:
            answer = self._scontrol([line for action in going for line in lines[action].then])
            after = self._look(going)
            done |= {action: self._judge(action, answer, after) for action in going}
        return done

    def _lines(self, action: Action, row: Row) -> gates.Lines:
        mark = self.marks.get(action.key, action.whole_record)
        clear = mark.user_nodes if mark and mark.pinned else None
        soon = row.restarts > 0 and int(self.now()) <= int(row.submit)
        if action.verb is Verb.CLOSE:
            return gates.close_lines(action.key, action.until, clear, self._holds(action, row))
        if action.verb is Verb.OPEN:
            return gates.open_lines(action.key, ",".join(action.nodes), soon, row.priority == 0)
        if action.verb is Verb.REQUEUE:
            return gates.requeue_lines(action.key, self._holds(action, row))
        return gates.free_lines(action.key, clear, row.priority == 0, soon)

    def _pin(
        self, actions: list[Action], lines: dict[Action, gates.Lines]
    ) -> dict[Action, tuple[Result, str]]:
        """Pin, look, and give up those whose pin is not seen: a gate is never opened after a failed pin."""
        answer = self._scontrol([line for action in actions for line in lines[action].pin])
        after = self._look(actions)
        if isinstance(after, str):
            return dict.fromkeys(actions, (Result.UNKNOWN, after))
        failed: dict[Action, tuple[Result, str]] = {}
        for action in actions:
            row = after.get((action.key, False))
            if row is None or row.nodes != frozenset(action.nodes):
                failed[action] = _refused_or_unknown(
                    answer, gates.job_id(action.key), "the node list did not take"
                )
        return failed

    def _scontrol(self, lines: list[str]) -> Answer:
        return self.commands.run("scontrol", stdin="\n".join([*lines, "exit", ""]))

    def _judge(self, action: Action, answer: Answer, after: Rows | str) -> tuple[Result, str]:
        if isinstance(after, str):
            return Result.UNKNOWN, after
        row = after.get((action.key, action.whole_record))
        if row is None:
            return Result.UNKNOWN, "it is no longer listed"
        if self._took_effect(action, row):
            return Result.DONE, ""
        if action.verb is Verb.REQUEUE and row.state == JobState.DONE:
            return Result.REFUSED, "it ended by itself"
        if action.verb is Verb.CLOSE and row.state != JobState.WAITING:
            self._undo_late_hold(action, row)
            return Result.REFUSED, "it started first"
        return _refused_or_unknown(answer, gates.job_id(action.key), "no effect was seen")

    def _took_effect(self, action: Action, row: Row) -> bool:
        if action.verb is Verb.REQUEUE:
            return row.state == JobState.ENDING or row.restarts > action.restarts
        if action.verb is Verb.CLOSE:
            held = row.priority == 0 and self._holds(action, row)
            gated = abs(row.eligible - int(action.until)) <= _SLACK_SECONDS
            return row.state == JobState.WAITING and (held or gated)
        open_now = row.eligible <= self.now() + 2 and row.priority > 0
        return row.state != JobState.WAITING or open_now

    def _undo_late_hold(self, action: Action, row: Row) -> None:
        """A hold that met a running job would keep it for ever if its node failed later (F2)."""
        if row.priority == 0 and row.state == JobState.RUNNING and self._holds(action, row):
            self._scontrol([f"release {gates.job_id(action.key)}"])

    # -- memory -------------------------------------------------------------------------------------------

    def _marks_ahead(self, actions: list[Action], rows: Rows) -> list[Mark]:
        """Marks of what is about to be imposed, durable before it is: a crash in between is then undone too."""
        ahead = []
        for action in actions:
            row = rows[action.key, action.whole_record]
            old = self.marks.get(action.key, action.whole_record)
            pinned = bool(old and old.pinned)
            own_nodes = old.user_nodes if old and old.pinned else row.node_text
            if action.verb is Verb.CLOSE:
                until = math.inf if self._holds(action, row) else float(int(action.until))
                ahead.append(self._mark(action, until, pinned, own_nodes))
            elif action.verb is Verb.OPEN:
                ahead.append(self._mark(action, old.gate_until if old else action.until, True, own_nodes))
            elif action.verb is Verb.REQUEUE:
                # Slurm's own requeue delay keeps it back on our account, so it is ours to undo.
                until = math.inf if self._holds(action, row) else self.now() + self.requeue_delay
                ahead.append(self._mark(action, until, pinned, own_nodes))
        return ahead

    def _mark(self, action: Action, until: float, pinned: bool, user_nodes: str) -> Mark:
        return Mark(
            action.key, action.record, action.whole_record, action.submit, action.restarts, until, pinned,
            self.now(), user_nodes,
        )  # fmt: skip

    def _remember(self, outcomes: list[Outcome]) -> None:
        """Marks after what was seen to happen."""
        keep: list[Mark] = []
        drop: list[Mark] = []
        for outcome in outcomes:
            action = outcome.action
            mark = self.marks.get(action.key, action.whole_record)
            if mark is None:
                continue
            if outcome.result is not Result.DONE:
                keep += [replace(mark, set_at=0.0)] if action.verb is Verb.CLOSE else []
                continue
            if action.verb is Verb.CLOSE:
                keep.append(self._mark(action, mark.gate_until, False, ""))
            elif action.verb is Verb.OPEN:
                keep.append(self._mark(action, 0.0, True, mark.user_nodes))
            elif action.verb is Verb.FREE:
                drop.append(mark)
        self.marks.set(keep)
        self.marks.drop(drop)


def _line_about(text: str, job: str) -> str:
    """The error line that names this job, or the first one when none names any."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.search(rf"(?<![\d_]){re.escape(job)}(?![\d_])", line)]
    return (named or lines or [""])[0]


def _refused_or_unknown(answer: Answer, job: str, otherwise: str) -> tuple[Result, str]:
    if answer.timed_out:
        return Result.UNKNOWN, answer.complaint
    line = _line_about(answer.err, job)
    known = classify(line) if line else Class.UNKNOWN
    return (Result.UNKNOWN if known is Class.UNKNOWN else Result.REFUSED), line[:200] or otherwise


def _signalled(answer: Answer, job: str) -> tuple[Result, str]:
    if answer.code == 0 and not answer.timed_out:
        return Result.DONE, ""
    named = [
        line for line in answer.err.splitlines() if re.search(rf"(?<![\d_]){re.escape(job)}(?![\d_])", line)
    ]
    if answer.err.strip() and not named and not answer.timed_out and answer.code == 1:
        return Result.DONE, ""  # others were refused, this one was not named
    return _refused_or_unknown(answer, job, "the signal may not have arrived")
