"""Fail open: undo everything of ours, so that the queue flows as plain Slurm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.errors import SlurmUnreachable
from slurm_fair.model import Action, JobState, Outcome, Result, Verb
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.model.mark import Mark
from slurm_fair.ports import IntentLog
from slurm_fair.slurm.actuator import Actuator
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.details import DetailsBook
from slurm_fair.slurm.marks import MarkBook, MarksInHand, is_of
from slurm_fair.slurm.queue import UNSPLIT, Queue


class NoIntents:
    """Where nothing needs to be remembered: undoing twice changes nothing."""

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        """Nothing is written."""
        return range(len(actions))

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None:
        """Nothing is written."""


@dataclass(frozen=True, slots=True)
class Liberated:
    """How it went."""

    freed: int
    left: tuple[str, ...]  # what could not be freed, in words


def liberate(
    commands: Commands,
    marks: Sequence[Mark],
    now: Callable[[], float],
    gate: str,
    stamped_too: bool = False,
    intents: IntentLog | None = None,
) -> Liberated:
    """Free every waiting job that carries a mark of ours; with `stamped_too` also jobs known by their stamp."""
    queue, details = Queue(commands), DetailsBook(commands)
    rows = queue.read()
    if isinstance(rows, str):
        raise SlurmUnreachable(f"the queue cannot be read, so nothing was freed: {rows}")
    waiting = rows[(rows["state"] == JobState.WAITING) & (rows["gpus"] > 0)]
    complaint = details.learn(
        dict.fromkeys(zip(waiting["record"].tolist(), waiting["restarts"].tolist(), strict=True))
    )
    if complaint and stamped_too:
        raise SlurmUnreachable(f"the jobs' stamps cannot be read, so nothing was freed: {complaint}")
    known = {(mark.key, mark.whole_record): mark for mark in marks}
    if stamped_too:
        known |= _stamped(waiting, details, known)
    actions, book = [], []
    for row in waiting:
        mark = _mark_of(row, known)
        if mark is not None:
            action = _free(row)
            actions.append(action)
            book.append(replace(mark, key=action.key, whole_record=action.whole_record))
    actuator = Actuator(
        commands, queue, MarkBook(MarksInHand(book)), details, intents or NoIntents(), now, gate
    )
    outcomes = actuator.actuate(actions)
    left = tuple(f"job {o.action.record}: {o.detail}" for o in outcomes if o.result is not Result.DONE)
    return Liberated(len(outcomes) - len(left), left)


def _mark_of(row: np.void, known: dict[tuple[int, bool], Mark]) -> Mark | None:
    whole = row["task"] == UNSPLIT
    base, task = int(row["base"]), NO_TASK if whole else int(row["task"])
    either = (known.get((pack(base, task), bool(whole))), known.get((pack(base), True)))
    submit, restarts = float(row["submit"]), int(row["restarts"])
    return next((mark for mark in either if mark and is_of(mark, submit, restarts)), None)


def _free(row: np.void) -> Action:
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


def _stamped(
    waiting: np.ndarray[tuple[int], np.dtype[np.void]],
    details: DetailsBook,
    known: dict[tuple[int, bool], Mark],
) -> dict[tuple[int, bool], Mark]:
    """Marks made up for jobs that say in their comment that we gated them, for when the journal is lost."""
    made_up = {}
    for row in waiting:
        stamp = details.of(int(row["record"]), int(row["restarts"])).stamp
        action = _free(row)
        which = (action.key, action.whole_record)
        if stamp is None or not (stamp.gate or row["restarts"] > 0) or which in known:
            continue
        until = math.inf if row["priority"] == 0 else float(row["eligible"])
        made_up[which] = Mark(
            *which[:1], action.record, which[1], action.submit, action.restarts, until, False, 0.0
        )
    return made_up
