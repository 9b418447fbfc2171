"""Rows of the queue that no policy plans and that hold GPUs of managed nodes: their tenants are charged."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from slurm_fair.config.sections import ScopeSection
from slurm_fair.model import Aside, JobState, JobTable, Placement, pack_keys
from slurm_fair.model.columns import Bools, Ints, find
from slurm_fair.model.ids import NO_TASK
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.scope import by_name
from slurm_fair.slurm_text import hostlist


def holders_aside(
    rows: NDArray[np.void], managed: Ints, queue: Queue, nodes: Collection[str], scope: ScopeSection
) -> tuple[NDArray[np.void], Ints]:
    """The rows and their keys, sorted: those that hold GPUs of these nodes now, or did until they ended.

    `managed` are the keys of managed jobs, sorted. A job of an account that is out of the scope is nobody's here.
    """
    held = (rows["state"] != JobState.WAITING) & (rows["start"] > 0)
    held &= (rows["gpus"] > 0) | (rows["state"] != JobState.DONE)
    if scope.accounts:
        held &= by_name(queue.accounts, set(scope.accounts).__contains__, rows["account"])
    rows = rows[held & (rows["task"] >= NO_TASK)]
    key = pack_keys(rows["base"], rows["task"])
    order = np.lexsort((rows["state"] == JobState.DONE, key))
    order = order[find(managed, key[order]) < 0]
    rows, key = rows[order], key[order]
    first = np.ones(len(key), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    first[first] = _on(rows[first], queue, nodes)
    return rows[first], key[first]


def _on(rows: NDArray[np.void], queue: Queue, nodes: Collection[str]) -> Bools:
    """Rows that lie on one of these nodes at least."""
    lists, row = np.unique(rows["node_list"], return_inverse=True)
    here = frozenset(nodes)
    inside = [not here.isdisjoint(hostlist.expand(queue.node_lists.texts[n])) for n in lists.tolist()]
    return np.array(inside, dtype=bool)[row]


def that_count(
    rows: NDArray[np.void], key: Ints, held: Placement
) -> tuple[NDArray[np.void], Ints, Placement]:
    """The jobs without those that hold CPUs alone and leave all GPUs to others."""
    counts = (np.bincount(held.row, minlength=len(rows)) > 0) | (rows["state"] == JobState.DONE)
    number = np.where(counts, np.cumsum(counts) - 1, -1)
    return rows[counts], key[counts], held.renumber(number)


def aside_of(
    rows: NDArray[np.void], key: Ints, user: Ints, tenant: Ints, held: Placement, queue: Queue
) -> Aside | None:
    """The charged jobs of these rows; `held` is what they hold of managed nodes, by row."""
    if not len(rows):
        return None
    count, over = len(rows), rows["state"] == JobState.DONE
    held_gpus = np.where(over, rows["gpus"], np.bincount(held.row, held.gpus, count).astype(np.int64))
    numbers, nothing = np.zeros(count, dtype=np.int64), np.zeros(count)
    no = np.zeros(count, dtype=bool)
    jobs = JobTable(
        key=key,
        record=rows["record"].astype(np.int64),
        submit=rows["submit"].copy(),
        restarts=rows["restarts"].astype(np.int64),
        tenant=tenant,
        user=user,
        partition=numbers,
        state=rows["state"].copy(),
        blocked=np.zeros(count, dtype=np.int8),
        gated=no,
        gate_until=nothing,
        gate_set=nothing,
        pinned=no,
        gpus=held_gpus,
        usual_gpus=held_gpus,
        nodes=rows["nodes"].astype(np.int64),
        most_nodes=numbers,
        gpus_per_node=numbers,
        gpu_type=numbers - 1,
        cpus=rows["cpus"].astype(np.int64),
        memory_mb=rows["memory_mb"].astype(np.int64),
        start=rows["start"].copy(),
        end=np.where(over, rows["end"], 0.0),
        time_limit_seconds=rows["time_limit"].copy(),
        checkpoints=no,
        requeueable=no,
        acknowledged=np.zeros(count, dtype=np.int8),
        array_limit=numbers,
        weight=np.ones(count),
        restartable=no,
        gpu_weight=np.ones(count),
    )
    return Aside(jobs, held, tuple(queue.reasons.texts[number] for number in rows["reason"].tolist()))
