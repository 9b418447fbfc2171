"""Requests to running tasks of an array that has waiting tasks too.

Slurm (22.05 to 26.05) sends such a task its signal and then answers that the array is in transition, because its
waiting tasks cannot be signalled; scancel believes it and sends the signal again every few seconds, for minutes.
So it is ended as soon as it has heard that answer once for each task (slurm-facts: scancel-transitional).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from slurm_fair.model import Action, JobState, Result
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.acting.act_end import ActEnd, signalled
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.reading.reread import Rows

_AT_ONCE = 10  # scancel's own threads: a later job waits until one of them gives up
_TOGETHER = 8
_LIMIT_SECONDS = 4.0  # before scancel sends the signal again
_SENT = "transitional state"


def with_waiting_tasks(rows: Rows) -> frozenset[int]:
    """Arrays whose own record still waits, as the same look saw it."""
    bases = ((key >> TASK_BITS, row) for (key, _), row in rows.items())
    return frozenset(base for base, row in bases if row.state == JobState.WAITING and row.record == base)


def is_crowded(action: Action, arrays: frozenset[int]) -> bool:
    """True if the task's array is one of these."""
    return action.key >> TASK_BITS in arrays


def ask_crowded(commands: Commands, signal: str, actions: Sequence[Action]) -> dict[Action, ActEnd]:
    """Signal the batch scripts of array tasks, those of each array for themselves.

    Slurm says of each task of an array that the array is in transition, or of none when only one task waits. So
    nobody waits for an answer that never comes for somebody else.
    """
    parts = [
        array[first : first + _AT_ONCE]
        for array in _by_array(actions)
        for first in range(0, len(array), _AT_ONCE)
    ]
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="ask") as threads:
        answers = list(threads.map(lambda part: _ask(commands, signal, part), parts))
    return {
        action: _result(answer, action, len(part))
        for part, answer in zip(parts, answers, strict=True)
        for action in part
    }


def _by_array(actions: Sequence[Action]) -> list[list[Action]]:
    arrays: dict[int, list[Action]] = {}
    for action in actions:
        arrays.setdefault(action.key >> TASK_BITS, []).append(action)
    return list(arrays.values())


def _ask(commands: Commands, signal: str, actions: Sequence[Action]) -> CommandResult:
    ids = [scontrol_lines.job_id(action.key) for action in actions]

    def sent_to_all(heard: str) -> bool:
        return heard.count(_SENT) >= len(ids)

    argv = ("scancel", "-v", "--batch", f"--signal={signal}", *ids)
    return commands.run_until(sent_to_all, *argv, timeout_seconds=_LIMIT_SECONDS)


def _result(answer: CommandResult, action: Action, count: int) -> ActEnd:
    if answer.code == 0 or answer.err.count(_SENT) >= count:
        return ActEnd(Result.DONE)
    return signalled(answer, (scontrol_lines.job_id(action.key),))
