"""Acts on jobs: intent -> fresh read -> act -> re-read -> outcome, one act in flight per job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, JobState, Outcome, Result, Verb
from slurm_fair.model.mark import Mark
from slurm_fair.ports import IntentLog
from slurm_fair.slurm.acting import resizing, scontrol_lines
from slurm_fair.slurm.acting.act_result import NOT_TRIED, is_for_later, refused_or_unknown, signalled
from slurm_fair.slurm.acting.rounds import ROUND, TOO_LATE, Rounds
from slurm_fair.slurm.acting.signal_array_tasks import ask_crowded, is_crowded, with_waiting_tasks
from slurm_fair.slurm.acting.telling import tell
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.ownership.claims import Claims
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import OPENING_SECONDS, is_same_time
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.reread import FreshRow, Rows, Which, look
from slurm_fair.slurm_text import hostlist

_STOPPED_FIRST = "it stopped running first"
_SIGNAL_SECONDS = 10.0
_KEEPS_WAITING = (Verb.CLOSE, Verb.OPEN, Verb.FREE)
_LAST = (Verb.CLOSE, Verb.FREE)  # in this order: what starts and stops jobs goes first
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
    requeue_delay: float = 121.0
    fence: Callable[[], None] = lambda: None
    remit: Remit | None = None  # without one, jobs are only freed
    rounds: Rounds = field(default_factory=Rounds)
    claims: Claims = field(init=False)

    def __post_init__(self) -> None:
        self.claims = Claims(self.marks, self.details, self.requeue_delay)

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """One outcome per action, in the same order."""
        first = [action for action in actions if action.verb not in _LAST]
        last = [[action for action in actions if action.verb is verb] for verb in _LAST]
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
        outcomes = [Outcome(a, *done[a], seconds, is_for_later(*done[a])) for a in actions]
        self._remember(outcomes)
        self.intents.conclude(ids, outcomes, self.now())
        return outcomes

    def _attempt(self, actions: Sequence[Action]) -> dict[Action, tuple[Result, str]]:
        before = self._look(actions)
        if not isinstance(before, str):
            before = self.claims.learn(actions, before) or before
        if isinstance(before, str):
            return dict.fromkeys(actions, (Result.REFUSED, f"{NOT_TRIED}: {before}"))
        done: dict[Action, tuple[Result, str]] = {}
        lines: dict[Action, scontrol_lines.ScontrolLines] = {}
        for action in actions:
            try:
                if why := self._hinders(action, before):
                    done[action] = Result.REFUSED, why
                else:
                    lines[action] = self._lines(action, before[_which(action)])
            except SlurmTextError as wrong:
                done[action] = Result.REFUSED, str(wrong)
        if any(action.verb in _LAST for action in lines):
            return done | self._send_in_rounds(lines, before)
        self.marks.set(self._marks_ahead(list(lines), before))
        done |= self._ask([action for action in lines if action.verb is Verb.ASK], before)
        done |= self._send({a: lines[a] for a in lines if a.verb is not Verb.ASK}, before)
        return done

    def _look(self, actions: Iterable[Action]) -> Rows | str:
        return look(self.queue, {_which(action) for action in actions}, self._objections)

    def _objections(self, rows: NDArray[np.void]) -> Mapping[int, str]:
        if self.remit is None:
            return dict.fromkeys(rows["record"].tolist(), _NOT_LOOKED)
        return self.remit.objections(rows, self.queue, self.details)

    def _hinders(self, action: Action, rows: Rows) -> str:
        """The reason why the act no longer applies; empty when it does."""
        row = rows.get(_which(action))
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
        if action.verb is not Verb.FREE and self.claims.foreign_hold(action, row):
            tidies = action.verb is Verb.CLOSE and not self._is_tidy(action, row)
            return "" if tidies else f"it is held ({row.reason})"
        return self._hinders_opening(action, row) if action.verb is Verb.OPEN else ""

    def _hinders_opening(self, action: Action, row: FreshRow) -> str:
        if not action.nodes or action.whole_record:
            return "no nodes are named for it"
        if row.dependency:
            return "it waits for another job"
        if row.eligible <= self.now() + 1 or self.claims.delay(row):
            return ""
        # A held job keeps the begin time of its user; a gated one has the gate that it was looked at with.
        return "" if is_same_time(action.until, row.eligible) else "its begin time was moved by somebody"

    # -- signals ------------------------------------------------------------------------------------------

    def _ask(self, actions: list[Action], rows: Rows) -> dict[Action, tuple[Result, str]]:
        by_signal: dict[str, list[Action]] = {}
        for action in actions:
            by_signal.setdefault(self.claims.stamp_on(action).signal, []).append(action)
        done: dict[Action, tuple[Result, str]] = {}
        arrays = with_waiting_tasks(rows)
        for signal, everybody in by_signal.items():
            crowd = [action for action in everybody if is_crowded(action, arrays)]
            done |= ask_crowded(self.commands, signal, crowd)
            group = [action for action in everybody if action not in done]
            answer = self._signal(signal, group) if group else CommandResult((), 0, "", "", 0.0)
            done |= {action: signalled(answer, _ids(action)) for action in group}
            if answer.timed_out:
                done |= self._signal_the_rest(signal, group)
            elif answer.code != 0 and not answer.err.strip():
                done |= self._those_still_running(group)
        return done

    def _signal(self, signal: str, actions: list[Action]) -> CommandResult:
        ids = [scontrol_lines.job_id(action.key) for action in actions]
        return self.commands.run(
            "scancel", "--batch", f"--signal={signal}", *ids, timeout_seconds=_SIGNAL_SECONDS
        )

    def _signal_the_rest(self, signal: str, actions: list[Action]) -> dict[Action, tuple[Result, str]]:
        """A job that was requeued meanwhile keeps scancel trying for a minute and a half, and no later job of
        the list gets its signal: once more without it."""
        rest = self._running(actions)
        if not rest or len(rest) == len(actions):
            return {}
        answer = self._signal(signal, rest)
        left = {a: (Result.REFUSED, _STOPPED_FIRST) for a in actions if a not in rest}
        return left | {action: signalled(answer, _ids(action)) for action in rest}

    def _those_still_running(self, actions: list[Action]) -> dict[Action, tuple[Result, str]]:
        """scancel fails without a word when a job ends after it was found and before its signal is sent; every
        other failure has a line. The others of its list have their signal."""
        rest = self._running(actions)
        if not rest or len(rest) == len(actions):
            return {}
        return {a: (Result.DONE, "") if a in rest else (Result.REFUSED, _STOPPED_FIRST) for a in actions}

    def _running(self, actions: list[Action]) -> list[Action]:
        """Find out whose jobs run now; none do where the queue does not say."""
        after = self._look(actions)
        if isinstance(after, str):
            return []
        rows = {action: after.get(_which(action)) for action in actions}
        return [action for action, row in rows.items() if row and row.state == JobState.RUNNING]

    # -- scontrol -----------------------------------------------------------------------------------------

    def _send(
        self, lines: Mapping[Action, scontrol_lines.ScontrolLines], before: Rows
    ) -> dict[Action, tuple[Result, str]]:
        done: dict[Action, tuple[Result, str]] = {}
        pins = [action for action in lines if lines[action].pin]
        if pins:
            done |= self._pin(pins, lines)
        going = [action for action in lines if action not in done]
        if going:
            answers = tell(self.commands, {action: lines[action].then for action in going})
            after = self._look(going)
            done |= {a: self._judge(a, answers[a], before[_which(a)], after) for a in going}
        return done

    def _lines(self, action: Action, row: FreshRow) -> scontrol_lines.ScontrolLines:
        """The scontrol lines of an act; SlurmTextError when something in it is not what it should be."""
        job, pinned = self._job(action, row), self.claims.pins(action, row)
        clear = pinned.user_nodes if pinned else None
        soon = row.restarts > 0 and int(self.now()) <= int(row.submit)
        if action.verb is Verb.CLOSE:
            if self.claims.foreign_hold(action, row):
                lines = scontrol_lines.free_lines(job, clear, gated=False, held=False, next_second=False)
            else:
                lines = scontrol_lines.close_lines(job, action.until, clear, self.claims.hold(action, row))
            return replace(lines, then=resizing.own_size(job, self.claims, action, row) + lines.then)
        if action.verb is Verb.OPEN:
            lines = scontrol_lines.open_lines(job, action.nodes, soon, row.priority == 0)
            return resizing.opening(lines, job, self.claims, action, row)
        if action.verb is Verb.REQUEUE:
            return scontrol_lines.requeue_lines(job)
        if action.verb is Verb.ASK:
            return scontrol_lines.ScontrolLines()
        gated, held = self.claims.begin(action, row), self.claims.hold(action, row)
        lines = scontrol_lines.free_lines(job, clear, gated, held, soon)
        return replace(lines, then=resizing.own_size(job, self.claims, action, row) + lines.then)

    def _job(self, action: Action, row: FreshRow) -> str:
        """The id to act on; of an unsplit array just its waiting tasks."""
        if action.whole_record and 0 < len(row.tasks) <= scontrol_lines.MOST_TASK_TEXT:
            return scontrol_lines.tasks_id(action.key, row.tasks)
        return scontrol_lines.job_id(action.key)

    def _pin(
        self, actions: list[Action], lines: Mapping[Action, scontrol_lines.ScontrolLines]
    ) -> dict[Action, tuple[Result, str]]:
        """Pin, look, and give up those whose nodes or size are not seen: a gate is never opened after that."""
        answers = tell(self.commands, {action: lines[action].pin for action in actions})
        after = self._look(actions)
        if isinstance(after, str):
            return dict.fromkeys(actions, (Result.UNKNOWN, after))
        failed: dict[Action, tuple[Result, str]] = {}
        for action in actions:
            row = after.get((action.key, False))
            if row is None or row.nodes != frozenset(action.nodes):
                what = "the node list did not take"
            elif not resizing.asks_for(row, lines[action].request):
                what = f"its size did not become {action.gpus} GPUs"
            else:
                continue
            failed[action] = refused_or_unknown(answers[action], _ids(action), what)
        return failed | self._put_back(failed, {a: after.get((a.key, False)) for a in failed}, lines)

    def _put_back(
        self,
        failed: Mapping[Action, tuple[Result, str]],
        rows: Mapping[Action, FreshRow | None],
        lines: Mapping[Action, scontrol_lines.ScontrolLines],
    ) -> dict[Action, tuple[Result, str]]:
        """Give jobs that were not opened their users' own requests back: none is ever left half changed.

        The act is refused where that is seen, and unknown where it is not.
        """
        half = {a: row for a, row in rows.items() if row is not None and lines[a].request}
        undo = {a: resizing.words_to_undo(self.claims, a, row) for a, row in half.items()}
        undo = {action: words for action, words in undo.items() if words}
        if not undo:
            return {}
        back = {a: scontrol_lines.resize(self._job(a, half[a]), undo[a]) for a in undo}
        answers, after = tell(self.commands, back), self._look(undo)
        done: dict[Action, tuple[Result, str]] = {}
        for action, answer in answers.items():
            row = None if isinstance(after, str) else after.get((action.key, False))
            left = row is None or resizing.words_to_undo(self.claims, action, row)
            detail = f"{failed[action][1]}, and its own request was not seen to be back" if left else ""
            unsure = left or answer.timed_out
            done[action] = (Result.UNKNOWN if unsure else Result.REFUSED), detail or failed[action][1]
        return done

    def _send_in_rounds(
        self, lines: Mapping[Action, scontrol_lines.ScontrolLines], before: Rows
    ) -> dict[Action, tuple[Result, str]]:
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
            self.marks.set(self._marks_ahead(part, before))
            answers |= tell(self.commands, {action: lines[action].then for action in part})
            self.rounds.took(self.now() - began)
        after = self._look(answers) if answers else {}
        done = {a: self._judge(a, answers[a], before[_which(a)], after) for a in answers}
        return dict.fromkeys(everybody, (Result.REFUSED, TOO_LATE)) | done

    def _judge(
        self, action: Action, answer: CommandResult, before: FreshRow, after: Rows | str
    ) -> tuple[Result, str]:
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
            return Result.REFUSED, "it started first"
        return refused_or_unknown(answer, _ids(action), "no effect was seen")

    def _took_effect(self, action: Action, row: FreshRow) -> bool:
        if action.verb is Verb.REQUEUE:
            return row.state == JobState.ENDING or row.restarts > action.restarts
        if action.verb is Verb.CLOSE:
            if row.state != JobState.WAITING or not self._is_tidy(action, row):
                return False
            gated = bool(is_same_time(int(action.until), row.eligible))
            return gated if row.priority > 0 else self.claims.foreign_hold(action, row)
        if action.verb is Verb.FREE:
            if row.state != JobState.WAITING:
                return True
            kept = self.claims.begin(action, row) and row.eligible > self.now() + OPENING_SECONDS
            return self._is_tidy(action, row) and not (kept or self.claims.hold(action, row))
        open_now = row.eligible <= self.now() + OPENING_SECONDS and row.priority > 0
        return row.state != JobState.WAITING or open_now

    def _is_tidy(self, action: Action, row: FreshRow) -> bool:
        """True if no node list and no size of ours is left on the job."""
        if self.claims.resized(action, row):
            return False
        mark = self.claims.pins(action, row)
        if mark is None:
            return True
        return row.nodes == frozenset(hostlist.expand(mark.user_nodes))

    # -- memory -------------------------------------------------------------------------------------------

    def _marks_ahead(self, actions: list[Action], rows: Rows) -> list[Mark]:
        """Marks of what is about to be imposed, durable before it is: a crash in between is then undone too."""
        ahead = []
        for action in actions:
            row = rows[_which(action)]
            old, own_nodes = self.claims.mark_on(action), self.claims.own_nodes(action, row)
            pinned, pin = self.claims.pins(action, row) is not None, old.pin if old else ""
            mark = self._mark(action, old.gate_until if old else action.until, pinned, own_nodes, pin)
            if old is not None and self.claims.resized(action, row):
                mark = replace(mark, size=old.size, user_size=old.user_size)
            if action.verb is Verb.CLOSE and not self.claims.foreign_hold(action, row):
                before = old.gate_until if old and math.isfinite(old.gate_until) else 0.0
                until = float(int(action.until))
                # A hold that is to give way to a begin time is ours until it is seen lifted.
                held = self.claims.hold(action, row)
                until, before = (math.inf, until) if held else (until, before)
                set_at = 0.0 if held else mark.set_at
                mark = replace(mark, gate_until=until, gate_before=before, set_at=set_at)
            elif action.verb is Verb.CLOSE:
                mark = replace(mark, gate_until=old.gate_until if old else 0.0)
            elif action.verb is Verb.OPEN:
                before = self.now() if math.isinf(mark.gate_until) else 0.0
                mark = replace(mark, pinned=True, pin=hostlist.join(action.nodes), gate_before=before)
                mark = resizing.with_size(mark, self.claims, action, row)
            elif action.verb is Verb.REQUEUE:
                # Slurm's own requeue delay keeps it back on our account, so it is ours to undo.
                mark = replace(mark, gate_until=self.now() + self.requeue_delay)
            else:
                continue
            ahead.append(mark)
        return ahead

    def _mark(self, action: Action, until: float, pinned: bool, user_nodes: str, pin: str) -> Mark:
        return Mark(
            action.key,
            action.record,
            action.whole_record,
            action.submit,
            action.restarts,
            until,
            pinned,
            self.now(),
            user_nodes,
            pin=pin,
        )

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
                # A gate that was not set is not remembered as set.
                tried = action.verb is Verb.CLOSE and not outcome.detail.startswith(NOT_TRIED)
                keep += [replace(mark, set_at=0.0)] if tried else []
            elif action.verb is Verb.CLOSE:
                keep.append(_closed(mark, self.now()))
            elif action.verb is Verb.OPEN:
                keep.append(replace(mark, gate_until=0.0, gate_before=0.0))
            elif action.verb is Verb.FREE:
                drop.append(mark)
        self.marks.set(keep)
        self.marks.drop(drop)


def _closed(mark: Mark, now: float) -> Mark:
    """The mark of a job that was seen behind its gate, without a node list of ours."""
    until = mark.gate_before if math.isinf(mark.gate_until) else mark.gate_until
    return replace(mark, gate_until=until, gate_before=0.0, pinned=False, set_at=now, size="", user_size="")


def _which(action: Action) -> Which:
    return action.key, action.whole_record


def _ids(action: Action) -> tuple[str, str]:
    """The names by which an error of Slurm may call the job: the id that we gave, or its record's number."""
    return scontrol_lines.job_id(action.key), str(action.record)
