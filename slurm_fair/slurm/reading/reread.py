"""The fresh read before and after an act: what Slurm says now of just these jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, JobState
from slurm_fair.model.columns import among
from slurm_fair.model.ids import NO_TASK, TASK_BITS, pack
from slurm_fair.slurm.reading.queue import UNSPLIT, Queue
from slurm_fair.slurm_text import hostlist

Which: TypeAlias = tuple[int, bool]  # key, and whether the unsplit array is meant
_MOST_IDS = 200  # squeue itself picks them out of the whole queue


@dataclass(frozen=True, slots=True)
class FreshRow:
    """The row of one job in a fresh read."""

    state: JobState
    submit: float
    restarts: int
    eligible: float
    priority: int
    reason: str
    nodes: frozenset[str]
    node_text: str
    dependency: bool
    record: int
    tasks: str = ""  # of an unsplit array, as Slurm writes them
    objection: str = ""  # why it may not be acted on
    request: str = ""  # a SizeRequest as it is written, or why there is none


Rows: TypeAlias = dict[Which, FreshRow]


def which(action: Action) -> Which:
    """The job, or the whole array, that an act is on."""
    return action.key, action.whole_record


def look(
    queue: Queue,
    wanted: Iterable[Which],
    objections: Callable[[NDArray[np.void]], Mapping[int, str]] = lambda rows: {},
) -> Rows | str:
    """Rows of the wanted jobs that Slurm still lists, or why the answer is not valid.

    `objections` = why records may not be acted on.
    """
    wanted = set(wanted)
    bases = sorted({key >> TASK_BITS for key, _ in wanted})
    rows = queue.read([str(base) for base in bases] if len(bases) <= _MOST_IDS else ())
    if isinstance(rows, str):
        return rows
    rows = rows[among(rows["base"], np.array(bases, dtype=np.int64))]
    try:
        # A read of the whole queue repeats the last good row of a job whose row cannot be read now.
        stale = {bad.record: "its row cannot be read" for bad in queue.unreadable}
        return rows_by_job(rows, queue, wanted, {**objections(rows), **stale})
    except SlurmTextError as wrong:
        return f"squeue: {wrong}"


def rows_by_job(
    rows: NDArray[np.void], queue: Queue, wanted: set[Which], objections: Mapping[int, str]
) -> Rows:
    """The rows of the wanted jobs out of those of a listing; `objections` by record."""
    found: Rows = {}
    texts = queue.node_lists.texts
    nodes = {n: frozenset(hostlist.expand(texts[n])) for n in set(rows["req_nodes"].tolist())}
    for raw in rows:
        base, task = int(raw["base"]), int(raw["task"])
        row = _row(raw, queue, nodes[int(raw["req_nodes"])], objections.get(int(raw["record"]), ""))
        if task == UNSPLIT:
            found[pack(base), True] = row
            mine = _tasks_of(base, wanted)
            inside = queue.task_lists[int(raw["tasks"])].among(mine)
            found |= {(mine[number], False): row for number in inside}
        elif (pack(base, task), False) not in found or row.state != JobState.DONE:
            found[pack(base, task), False] = row
    return found


def _tasks_of(base: int, wanted: set[Which]) -> dict[int, int]:
    """Task number -> key of the wanted tasks of one array."""
    keys = (key for key, whole in wanted if not whole and key >> TASK_BITS == base)
    numbers = {(key & ((1 << TASK_BITS) - 1)) - 1: key for key in keys}
    numbers.pop(NO_TASK, None)
    return numbers


def _row(raw: np.void, queue: Queue, nodes: frozenset[str], objection: str) -> FreshRow:
    return FreshRow(
        JobState(int(raw["state"])),
        float(raw["submit"]),
        int(raw["restarts"]),
        float(raw["eligible"]),
        int(raw["priority"]),
        queue.reasons.texts[int(raw["reason"])],
        nodes,
        queue.node_lists.texts[int(raw["req_nodes"])],
        bool(raw["dependency"]),
        int(raw["record"]),
        queue.task_lists[int(raw["tasks"])].text() if raw["task"] == UNSPLIT else "",
        objection,
        queue.requests.texts[int(raw["request"])] if raw["request"] >= 0 else "",
    )
