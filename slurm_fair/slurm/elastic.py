"""Elastic jobs of a look: their sizes, what their users asked for, and why others that name sizes are rigid.

A user can write anything into a job's comment and its request. What cannot be read costs that job its sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, JobTable, Sizes
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.sizes import Per
from slurm_fair.slurm.ownership.marks import Marks
from slurm_fair.slurm.ownership.ours import own_request
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.request import PER_JOB, PER_NODE, SizeRequest

_CANNOT_SAVE = "it cannot save and be requeued, so it keeps its size"
_WHOLE_NODES = "it takes whole nodes"
_ON_SO_MANY = "it asks for GPUs in all and for a number of nodes: give the GPUs of each node, or no -N"
_SHARED = "what it asks for cannot be read"


@dataclass(frozen=True, slots=True)
class Requests:
    """Per row: its user's own request for GPUs where a look shows another, and the sizes that it names."""

    rows: NDArray[np.void]  # with the gangs that users asked for, of waiting jobs
    resized: Bools  # carries a request of ours
    usual: Ints  # GPUs that its user asks for
    named: Mapping[int, tuple[int, ...]]  # sizes by row
    requests: Mapping[int, SizeRequest]
    rigid: Mapping[int, str]  # rows that name sizes in vain, and why


def requests_of(
    rows: NDArray[np.void], key: Ints, queue: Queue, details: JobDetails, marks: Marks, most: int
) -> Requests:
    """The requests of the users of these rows; a size above `most` is left out."""
    resized, usual, shown = np.zeros(len(rows), dtype=bool), rows["gpus"].astype(np.int64), rows
    named: dict[int, tuple[int, ...]] = {}
    requests: dict[int, SizeRequest] = {}
    rigid: dict[int, str] = {}
    for row, sizes, bad in _naming(rows, details):
        text = _text(queue, rows[row])
        run = float(rows["submit"][row]), int(rows["restarts"][row])
        own = own_request(text, marks.on(key.item(row), False, *run))
        request = SizeRequest.read(own)
        if own != text:
            resized[row] = True
            if request is not None:
                shown = shown.copy() if shown is rows else shown
                usual[row] = request.gpus
                _as_asked(shown, row, request)
        why = bad or _hinders(request, own, sizes)
        if why or request is None:
            rigid[row] = why
            continue
        named[row] = tuple(size for size in sizes if size <= most or size == request.gpus)
        requests[row] = request
    return Requests(shown, resized, usual, named, requests, rigid)


def _naming(rows: NDArray[np.void], details: JobDetails) -> list[tuple[int, tuple[int, ...], str]]:
    """Rows of living jobs whose stamp names sizes: those, or what is wrong with them."""
    if not details.naming:
        return []
    records = np.array([record for record, _ in details.naming], dtype=np.int64)
    some = np.isin(rows["record"], records) & (rows["state"] != JobState.DONE)
    found: list[tuple[int, tuple[int, ...], str]] = []
    for row in np.flatnonzero(some).tolist():
        stamp = details.of(int(rows["record"][row]), int(rows["restarts"][row])).gate_stamp
        if stamp.bad_sizes:
            found.append((row, (), f"its sizes '{stamp.bad_sizes}' cannot be read"))
        elif stamp.sizes:
            found.append((row, stamp.sizes, "" if stamp.checkpoints else _CANNOT_SAVE))
    return found


def _text(queue: Queue, row: np.void) -> str:
    number = int(row["request"])
    return queue.requests.texts[number] if number >= 0 else ""


def _hinders(request: SizeRequest | None, text: str, sizes: tuple[int, ...]) -> str:
    """The reason why a job that names these sizes is rigid all the same; "" = it is not."""
    if request is None:
        return text or _SHARED
    if request.gpus not in sizes:
        return f"it asks for {request.gpus} GPUs, which is none of its sizes"
    return ""


def _as_asked(rows: NDArray[np.void], row: int, request: SizeRequest) -> None:
    """A waiting job is shown as its user asked for it, whatever request of ours it still carries."""
    if rows["state"][row] != JobState.WAITING:
        return
    rows["gpus"][row], rows["cpus"][row] = request.gpus, request.cpus
    rows["nodes"][row] = rows["listed_nodes"][row] = request.nodes
    rows["gpus_per_node"][row] = request.count if request.field == PER_NODE else 0


def elastic_sizes(jobs: JobTable, found: Requests) -> tuple[Sizes | None, dict[int, str]]:
    """The sizes of the elastic jobs, and by key why others that name sizes are rigid."""
    rigid = dict(found.rigid)
    able = jobs.revocable
    rows: list[int] = []
    for row in found.named:
        if not able[row]:
            rigid[row] = _CANNOT_SAVE
        elif jobs.waiting[row] and jobs.gpus[row] != found.usual[row]:
            rigid[row] = _WHOLE_NODES
        elif found.requests[row].field == PER_JOB and jobs.waiting[row] and jobs.most_nodes[row]:
            rigid[row] = _ON_SO_MANY
        elif len(found.named[row]) > 1:
            rows.append(row)
    why = {jobs.key.item(row): text for row, text in rigid.items()}
    if not rows:
        return None, why
    flat = [(row, gpus) for row in sorted(rows) for gpus in found.named[row]]
    at, gpus = (np.array(column, dtype=np.int64) for column in zip(*flat, strict=True))
    in_all = np.array([found.requests[one].field == PER_JOB for one, _ in flat])
    by_gpu = found.rows["memory_per_gpu"][at]
    return Sizes(
        at,
        gpus,
        gpus == found.usual[at],
        np.where(in_all, Per.JOB, Per.NODE).astype(np.int8),
        np.where(by_gpu, Per.GPU, Per.NODE).astype(np.int8),
    ), why


def asked_gpus(jobs: JobTable, found: Requests, sizes: Sizes | None) -> Ints:
    """The gang that each job's user asked for; a job that nobody resizes has that gang."""
    elastic = found.resized.copy()
    if sizes is not None:
        elastic[sizes.row] = True
    return np.where(elastic, found.usual, jobs.gpus)
