"""Tasks of arrays that have no record of their own, as Slurm writes them: `0-5,9,10-20:2%3`.

How many there are is known from the text; they are listed one by one only where somebody asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.ids import MOST_TASKS

OF_A_USER = 200_000  # tasks that are looked at one by one; each is a job in every table
_MOST_RUNS = 500  # that are written: a command line has an end
_TASKS = re.compile(r"\[?([0-9,:\-]+)(?:%([0-9]{1,9}))?\]?")
_SPAN = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?(?::([0-9]{1,8}))?")


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks of one row, by their spans."""

    spans: tuple[range, ...]
    count: int
    limit: int  # how many may run at once, 0 = not said

    def numbers(self) -> Ints:
        spans = [np.arange(span.start, span.stop, span.step, dtype=np.int64) for span in self.spans]
        return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)

    def among(self, wanted: Iterable[int]) -> set[int]:
        """The wanted tasks that it has."""
        return {task for task in wanted if any(task in span for span in self.spans)}

    def text(self) -> str:
        """The list as commands take it; empty where that is too long for a command line."""
        runs = sum(1 if span.step == 1 else len(span) for span in self.spans)
        if runs > _MOST_RUNS:
            return ""
        parts = (
            part
            for span in self.spans
            for part in ((span,) if span.step == 1 else (range(task, task + 1) for task in span))
        )
        return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in parts if run)


def read_tasks(text: str) -> TaskList:
    """The tasks and the %limit of an array's row."""
    match = _TASKS.fullmatch(text)
    spans: list[range] = []
    total = 0
    for piece in match[1].split(",") if match else [""]:
        span = _SPAN.fullmatch(piece)
        first, last, step = (int(span[1]), int(span[2] or span[1]), int(span[3] or 1)) if span else (1, 0, 1)
        if not first <= last < MOST_TASKS or step == 0:
            raise SlurmTextError(f"'{text[:60]}' is no list of array tasks")
        spans.append(range(first, last + 1, step))
        total += len(spans[-1])
        if total > MOST_TASKS:
            raise SlurmTextError(f"'{text[:60]}' lists more tasks than an array can have")
    return TaskList(tuple(spans), total, int((match and match[2]) or 0))


def beyond_a_user(user: Ints, order: Ints, lists: Sequence[TaskList]) -> Bools:
    """Rows whose tasks are too many beside those of the same user's rows before them."""
    count = np.array([listed.count for listed in lists], dtype=np.int64)
    beyond = np.zeros(len(count), dtype=bool)
    who, row = np.unique(user, return_inverse=True)
    for crowd in np.flatnonzero(np.bincount(row, count, minlength=len(who)) > OF_A_USER).tolist():
        left = OF_A_USER
        mine = np.flatnonzero(row == crowd)
        for at in mine[np.argsort(order[mine], kind="stable")].tolist():
            beyond[at] = count[at] > left
            left -= 0 if beyond[at] else int(count[at])
    return beyond
