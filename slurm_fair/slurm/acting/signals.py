"""Requests to running jobs to checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slurm_fair.model import Action, JobState, Result
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.acting.act_end import ActEnd, signalled
from slurm_fair.slurm.acting.signal_array_tasks import ask_crowded, is_crowded, with_waiting_tasks
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.reading.reread import Rows, which

_STOPPED_FIRST = ActEnd(Result.REFUSED, "it stopped running first")
_SIGNAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Signals:
    """scancel, and a second look where it does not say what came of it."""

    commands: Commands
    look: Callable[[Sequence[Action]], Rows | str]

    def ask(self, by_signal: dict[str, list[Action]], rows: Rows) -> dict[Action, ActEnd]:
        """Send each group its signal; `rows` is the look just before."""
        done: dict[Action, ActEnd] = {}
        arrays = with_waiting_tasks(rows)
        for signal, everybody in by_signal.items():
            crowd = [action for action in everybody if is_crowded(action, arrays)]
            done |= ask_crowded(self.commands, signal, crowd)
            group = [action for action in everybody if action not in done]
            answer = self._signal(signal, group) if group else CommandResult((), 0, "", "", 0.0)
            done |= {action: signalled(answer, scontrol_lines.ids(action)) for action in group}
            if answer.timed_out:
                done |= self._signal_the_rest(signal, group)
            elif answer.code != 0 and not answer.err.strip():
                done |= self._those_still_running(group)
        return done

    def _signal(self, signal: str, actions: Sequence[Action]) -> CommandResult:
        ids = [scontrol_lines.job_id(action.key) for action in actions]
        return self.commands.run(
            "scancel", "--batch", f"--signal={signal}", *ids, timeout_seconds=_SIGNAL_SECONDS
        )

    def _signal_the_rest(self, signal: str, actions: Sequence[Action]) -> dict[Action, ActEnd]:
        """A job that was requeued meanwhile keeps scancel trying for a minute and a half, and no later job of
        the list gets its signal: once more without it."""
        rest = self._running(actions)
        if not rest or len(rest) == len(actions):
            return {}
        answer = self._signal(signal, rest)
        left = {action: _STOPPED_FIRST for action in actions if action not in rest}
        return left | {action: signalled(answer, scontrol_lines.ids(action)) for action in rest}

    def _those_still_running(self, actions: Sequence[Action]) -> dict[Action, ActEnd]:
        """scancel fails without a word when a job ends after it was found and before its signal is sent; every
        other failure has a line. The others of its list have their signal."""
        rest = self._running(actions)
        if not rest or len(rest) == len(actions):
            return {}
        return {action: ActEnd(Result.DONE) if action in rest else _STOPPED_FIRST for action in actions}

    def _running(self, actions: Sequence[Action]) -> list[Action]:
        """Find out whose jobs run now; none do where the queue does not say."""
        after = self.look(actions)
        if isinstance(after, str):
            return []
        rows = {action: after.get(which(action)) for action in actions}
        return [action for action, row in rows.items() if row and row.state == JobState.RUNNING]
