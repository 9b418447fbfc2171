"""Acts on jobs: intent -> fresh read -> act -> re-read -> outcome, in batches, one act in flight per job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, JobState, Outcome, Result, Verb
from slurm_fair.model.mark import Mark
from slurm_fair.ports import IntentLog
from slurm_fair.slurm import gates, priority
from slurm_fair.slurm.command import Answer, Commands
from slurm_fair.slurm.crowded import ask_crowded, is_crowded, with_waiting_tasks
from slurm_fair.slurm.details import DetailsBook
from slurm_fair.slurm.fresh import Row, Rows, Which, look
from slurm_fair.slurm.marks import MarkBook
from slurm_fair.slurm.queue import Queue
from slurm_fair.slurm.verdict import NOT_TRIED, is_for_later, refused_or_unknown, signalled

_AT_ONCE = 400
_SLACK_SECONDS = 1.5
_SIGNAL_SECONDS = 10.0
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
    _fixed: frozenset[int] = frozenset()  # records whose priority an admin has fixed, of this batch
    _dependent: frozenset[int] = frozenset()  # records that wait for others and that we hold, of this batch

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """One outcome per action, in the same order."""
        outcomes: list[Outcome] = []
        for first in range(0, len(actions), _AT_ONCE):
            outcomes.extend(self._batch(actions[first : first + _AT_ONCE]))
        return tuple(outcomes)

    def release_running(self, running: Sequence[str]) -> None:
        """Undo holds of ours that came to stand on jobs after they had started (F2)."""
        if running:
            self.fence()
            self._scontrol([f"release {job}" for job in running])

    def _batch(self, actions: Sequence[Action]) -> list[Outcome]:
        self.fence()
        ids = self.intents.intend(actions, self.now())
        began = self.now()
        done = self._attempt(actions)
        seconds = self.now() - began
        outcomes = [Outcome(a, *done[a], seconds, is_for_later(*done[a])) for a in actions]
        self._remember(outcomes)
        self.intents.conclude(ids, outcomes, self.now())
        return outcomes

    def _attempt(self, actions: Sequence[Action]) -> dict[Action, tuple[Result, str]]:
        before = self._look(actions)
        if isinstance(before, str):
            return dict.fromkeys(actions, (Result.REFUSED, f"{NOT_TRIED}: {before}"))
        self._fixed = self._fixed_priorities(actions, before)
        self._dependent = self._held_dependents(actions, before)
        done = {action: (Result.REFUSED, why) for action in actions if (why := self._hinders(action, before))}
        going = [action for action in actions if action not in done]
        self.marks.set(self._marks_ahead(going, before))
        done |= self._ask([action for action in going if action.verb is Verb.ASK], before)
        done |= self._send([action for action in going if action.verb is not Verb.ASK], before)
        return done

    def _fixed_priorities(self, actions: Sequence[Action], rows: Rows) -> frozenset[int]:
        """Jobs that a hold would cost the priority that an admin gave them."""
        closing = (rows.get(_which(action)) for action in actions if action.verb is Verb.CLOSE)
        records = sorted({row.record for row in closing if row and row.priority > 0})
        return priority.fixed(self.commands, records) if records and self.gate == "hold" else frozenset()

    def _look(self, actions: Iterable[Action]) -> Rows | str:
        return look(self.queue, {_which(action) for action in actions})

    def _hinders(self, action: Action, rows: Rows) -> str:
        """Why the act no longer applies; empty when it does."""
        row = rows.get(_which(action))
        if row is None:
            return "it is no longer listed"
        if row.submit != action.submit or row.restarts != action.restarts:
            return "it was requeued or replaced since it was looked at"
        try:
            self._lines(action, row)
        except SlurmTextError as wrong:
            return str(wrong)
        if action.verb in _KEEPS_WAITING:
            return self._hinders_waiting(action, row)
        return "" if row.state == JobState.RUNNING else f"it is {row.state.name.lower()}"

    def _hinders_waiting(self, action: Action, row: Row) -> str:
        if row.state != JobState.WAITING:
            return f"it is {row.state.name.lower()}"
        foreign = row.priority == 0 and not self._our_hold(action, row)
        if foreign and (action.verb is Verb.OPEN or (action.verb is Verb.CLOSE and self._holds(action, row))):
            return f"it is held ({row.reason})"
        return self._hinders_opening(action, row) if action.verb is Verb.OPEN else ""

    def _hinders_opening(self, action: Action, row: Row) -> str:
        if not action.nodes or action.whole_record:
            return "no nodes are named for it"
        if row.dependency:
            return "it waits for another job"
        if row.eligible <= self.now() + 1 or self._delayed(row):
            return ""
        # A held job keeps the begin time of its user; a gated one has the gate that it was looked at with.
        ours = math.isfinite(action.until) and abs(row.eligible - action.until) <= _SLACK_SECONDS
        return "" if ours else "its begin time was moved by somebody"

    def _delayed(self, row: Row) -> bool:
        """Whether Slurm itself keeps the job back after a requeue."""
        return row.restarts > 0 and 0 <= row.eligible - row.submit <= self.requeue_delay + 5

    def _mark_on(self, action: Action) -> Mark | None:
        return self.marks.covering(action.key, action.whole_record, action.submit, action.restarts)

    def _stamp_gate(self, action: Action) -> str:
        return self.details.of(action.record, action.restarts).gate_stamp.gate

    def _held_dependents(self, actions: Sequence[Action], rows: Rows) -> frozenset[int]:
        """Slurm does not look at the dependency of a held job, so ours get a begin time for a gate instead."""
        closing = ((action, rows.get(_which(action))) for action in actions if action.verb is Verb.CLOSE)
        return frozenset(
            row.record
            for action, row in closing
            if row and row.dependency and row.priority == 0 and self._our_hold(action, row)
        )

    def _holds(self, action: Action, row: Row) -> bool:
        """Whether this job's gate is a hold: only jobs stamped at submission are ever held."""
        if self.gate != "hold" or row.record in self._fixed or len(row.tasks) > gates.MOST_TASK_TEXT:
            return False
        if row.dependency:
            return False
        mark = self._mark_on(action)
        return bool(self._stamp_gate(action)) or bool(mark and mark.gate_until == math.inf)

    def _our_hold(self, action: Action, row: Row) -> bool:
        mark = self._mark_on(action)
        if mark:
            return mark.gate_until == math.inf
        return self._stamp_gate(action) == "hold" and row.restarts == 0 and row.reason == "JobHeldUser"

    # -- signals ------------------------------------------------------------------------------------------

    def _ask(self, actions: list[Action], rows: Rows) -> dict[Action, tuple[Result, str]]:
        by_signal: dict[str, list[Action]] = {}
        for action in actions:
            signal = self.details.of(action.record, action.restarts).gate_stamp.signal
            by_signal.setdefault(signal, []).append(action)
        done: dict[Action, tuple[Result, str]] = {}
        arrays = with_waiting_tasks(rows)
        for signal, everybody in by_signal.items():
            crowd = [action for action in everybody if is_crowded(action, arrays)]
            done |= ask_crowded(self.commands, signal, crowd)
            group = [action for action in everybody if action not in done]
            answer = self._signal(signal, group) if group else Answer((), 0, "", "", 0.0)
            done |= {action: signalled(answer, _ids(action)) for action in group}
            if answer.timed_out:
                done |= self._signal_the_rest(signal, group)
        return done

    def _signal(self, signal: str, actions: list[Action]) -> Answer:
        ids = [gates.job_id(action.key) for action in actions]
        return self.commands.run(
            "scancel", "--batch", f"--signal={signal}", *ids, timeout_seconds=_SIGNAL_SECONDS
        )

    def _signal_the_rest(self, signal: str, actions: list[Action]) -> dict[Action, tuple[Result, str]]:
        """A job that was requeued meanwhile keeps scancel trying for a minute and a half, and no later job of
        the list gets its signal: once more without it."""
        after = self._look(actions)
        if isinstance(after, str):
            return {}
        rows = {action: after.get(_which(action)) for action in actions}
        rest = [action for action, row in rows.items() if row and row.state == JobState.RUNNING]
        if not rest or len(rest) == len(actions):
            return {}
        answer = self._signal(signal, rest)
        left = {a: (Result.REFUSED, "it stopped running first") for a in actions if a not in rest}
        return left | {action: signalled(answer, _ids(action)) for action in rest}

    # -- scontrol -----------------------------------------------------------------------------------------

    def _send(self, actions: list[Action], before: Rows) -> dict[Action, tuple[Result, str]]:
        if not actions:
            return {}
        lines = {action: self._lines(action, before[_which(action)]) for action in actions}
        done: dict[Action, tuple[Result, str]] = {}
        pins = [action for action in actions if lines[action].pin]
        if pins:
            done |= self._pin(pins, lines)
        going = [action for action in actions if action not in done]
        if going:
            answer = self._scontrol([line for action in going for line in lines[action].then])
            after = self._look(going)
            done |= {action: self._judge(action, answer, before[_which(action)], after) for action in going}
        return done

    def _lines(self, action: Action, row: Row) -> gates.Lines:
        """What to send; SlurmTextError when something in it is not what it should be."""
        job = self._job(action, row)
        mark = self._mark_on(action)
        clear = mark.user_nodes if mark and mark.pinned else None
        soon = row.restarts > 0 and int(self.now()) <= int(row.submit)
        if action.verb is Verb.CLOSE:
            if row.record in self._dependent:
                return gates.begin_for_hold_lines(job, action.until, clear)
            return gates.close_lines(job, action.until, clear, self._holds(action, row))
        if action.verb is Verb.OPEN:
            return gates.open_lines(job, action.nodes, soon, row.priority == 0)
        if action.verb is Verb.REQUEUE:
            return gates.requeue_lines(job, self._holds(action, row))
        if action.verb is Verb.ASK:
            return gates.Lines()
        held = row.priority == 0 and self._our_hold(action, row)
        return gates.free_lines(job, clear, self._gated_by_us(action, row), held, soon)

    def _job(self, action: Action, row: Row) -> str:
        """The id to act on; of an unsplit array just its waiting tasks."""
        if action.whole_record and 0 < len(row.tasks) <= gates.MOST_TASK_TEXT:
            return gates.tasks_id(action.key, row.tasks)
        return gates.job_id(action.key)

    def _gated_by_us(self, action: Action, row: Row) -> bool:
        """Whether the begin time that keeps the job waiting is ours, or Slurm's after a requeue of ours."""
        mark = self._mark_on(action)
        either = (mark.gate_until, mark.gate_before) if mark is not None else ()
        ours = any(abs(gate - row.eligible) <= _SLACK_SECONDS for gate in either)
        stamp = self.details.of(action.record, action.restarts).gate_stamp
        return ours or self._delayed(row) or stamp.is_gate(row.eligible, row.submit)

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
                failed[action] = refused_or_unknown(answer, _ids(action), "the node list did not take")
        return failed

    def _scontrol(self, lines: list[str]) -> Answer:
        """One scontrol for all; an act that needs nothing to be sent needs no scontrol."""
        if not lines:
            return Answer(("scontrol",), 0, "", "", 0.0)
        return self.commands.run("scontrol", stdin="\n".join([*lines, "exit", ""]))

    def _judge(self, action: Action, answer: Answer, before: Row, after: Rows | str) -> tuple[Result, str]:
        if isinstance(after, str):
            return Result.UNKNOWN, after
        if answer.timed_out and self._took_effect(action, before):
            return Result.UNKNOWN, answer.complaint  # it stood so already: the act itself may still come
        row = after.get(_which(action))
        if row is None:
            # An array whose tasks have all started has no waiting rest that anybody could keep back.
            freed = action.verb is Verb.FREE and action.whole_record
            return Result.DONE if freed else Result.UNKNOWN, "it is no longer listed"
        if self._took_effect(action, row):
            return Result.DONE, ""
        if action.verb is Verb.REQUEUE and row.state == JobState.DONE:
            return Result.REFUSED, "it ended by itself"
        if action.verb is Verb.CLOSE and row.state != JobState.WAITING:
            self._undo_late_hold(action, row)
            return Result.REFUSED, "it started first"
        return refused_or_unknown(answer, _ids(action), "no effect was seen")

    def _took_effect(self, action: Action, row: Row) -> bool:
        if action.verb is Verb.REQUEUE:
            return row.state == JobState.ENDING or row.restarts > action.restarts
        if action.verb is Verb.CLOSE:
            held = row.priority == 0 and self._holds(action, row)
            gated = abs(row.eligible - int(action.until)) <= _SLACK_SECONDS
            gated &= row.priority > 0 or row.record not in self._dependent
            return row.state == JobState.WAITING and (held or gated)
        if action.verb is Verb.FREE:
            kept = self._gated_by_us(action, row) and row.eligible > self.now() + 2
            return row.state != JobState.WAITING or not (
                kept or (row.priority == 0 and self._our_hold(action, row))
            )
        open_now = row.eligible <= self.now() + 2 and row.priority > 0
        return row.state != JobState.WAITING or open_now

    def _undo_late_hold(self, action: Action, row: Row) -> None:
        """A hold that met a running job would keep it for ever if its node failed later (F2)."""
        if row.priority == 0 and row.state == JobState.RUNNING and self._holds(action, row):
            self._scontrol([f"release {self._job(action, row)}"])

    # -- memory -------------------------------------------------------------------------------------------

    def _marks_ahead(self, actions: list[Action], rows: Rows) -> list[Mark]:
        """Marks of what is about to be imposed, durable before it is: a crash in between is then undone too."""
        ahead = []
        for action in actions:
            row = rows[_which(action)]
            old = self._mark_on(action)
            pinned = bool(old and old.pinned)
            own_nodes = old.user_nodes if old and old.pinned else row.node_text
            if action.verb is Verb.CLOSE:
                until = math.inf if self._holds(action, row) else float(int(action.until))
                before = old.gate_until if old and math.isfinite(old.gate_until) else 0.0
                ahead.append(replace(self._mark(action, until, pinned, own_nodes), gate_before=before))
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
                keep += self._after_failure(outcome, mark)
                continue
            if action.verb is Verb.CLOSE:
                keep.append(self._mark(action, mark.gate_until, False, ""))
            elif action.verb is Verb.OPEN:
                keep.append(self._mark(action, 0.0, True, mark.user_nodes))
            elif action.verb is Verb.FREE:
                drop.append(mark)
        self.marks.set(keep)
        self.marks.drop(drop)

    def _after_failure(self, outcome: Outcome, mark: Mark) -> list[Mark]:
        """A gate that was not set is not remembered as set, and a job that was not requeued not as held."""
        if outcome.action.verb is Verb.CLOSE:
            return [replace(mark, set_at=0.0)]
        refused = outcome.action.verb is Verb.REQUEUE and outcome.result is Result.REFUSED
        return [replace(mark, gate_until=0.0)] if refused and mark.gate_until == math.inf else []


def _which(action: Action) -> Which:
    return action.key, action.whole_record


def _ids(action: Action) -> tuple[str, str]:
    """What Slurm may call the job in an error: the id that we gave, or its record's number."""
    return gates.job_id(action.key), str(action.record)
