"""GPUs that nobody else can use beside a job, because it takes all CPUs or memory of its node, or the node itself.

They count as the job's own: it is planned where they are free, and charged for them. A job that shares its nodes
with jobs of its user alone (`--exclusive=user`) takes them like any exclusive one. Whoever else is to use a GPU
needs a CPU of the node, and an eighth of a GPU's even part of its memory.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobState, NodeTable, PartitionTable, Placement
from slurm_fair.model.columns import Ints
from slurm_fair.slurm.reading.nodes import NodeListing
from slurm_fair.slurm.reading.queue import may_take_gpus

_LEAST_PART = 8  # of a GPU's even part of the memory


class _Has(NamedTuple):
    """The resources of nodes, a column each."""

    gpus: Ints
    cpus: Ints
    memory_mb: Ints

    @classmethod
    def of(cls, names: tuple[str, ...], machines: NodeListing) -> Self:
        listed = [machines.nodes[name] for name in names]
        columns = ([n.gpus for n in listed], [n.cpus for n in listed], [n.memory_mb for n in listed])
        return cls(*(np.array(column, dtype=np.int64) for column in columns))

    def beside(self, cpus: Ints, memory_mb: Ints) -> Ints:
        """GPUs that others can use at most beside a job that takes so much of a node."""
        least = np.maximum(self.memory_mb // np.maximum(_LEAST_PART * self.gpus, 1), 1)
        by_memory = np.where(self.memory_mb > 0, (self.memory_mb - memory_mb) // least, self.gpus)
        by_cpus = np.where(self.cpus > 0, self.cpus - cpus, self.gpus)
        return np.clip(np.minimum(by_cpus, by_memory), 0, self.gpus)


def with_what_lies_idle(
    held: Placement, raw: NDArray[np.void], names: tuple[str, ...], machines: NodeListing
) -> Placement:
    """Holdings of rows, with the GPUs of their nodes that nobody else can use; no node gives more than it has."""
    if not len(held):
        return held.take(held.gpus > 0)
    has, parts = _Has.of(names, machines), np.maximum(raw["nodes"][held.row], 1)
    here = _Has(*(column[held.node] for column in has))
    beside = here.beside(-(-raw["cpus"][held.row] // parts), -(-raw["memory_mb"][held.row] // parts))
    beside[raw["exclusive"][held.row]] = 0
    idle = np.maximum(here.gpus - held.gpus - beside, 0)
    left = has.gpus - np.bincount(held.node, held.gpus, len(names)).astype(np.int64)
    for at in idle.nonzero()[0].tolist():
        node = held.node.item(at)
        idle[at] = max(min(idle.item(at), left.item(node)), 0)
        left[node] -= idle[at]
    more = held.with_columns(gpus=held.gpus + idle)
    return more.take(more.gpus > 0)


def as_it_must_lie(
    raw: NDArray[np.void], partition: Ints, partitions: PartitionTable, nodes: NodeTable
) -> NDArray[np.void]:
    """The rows as the planner is to see them: on as many nodes as they need, with what they leave to nobody."""
    return _with_idle_gpus(
        as_wide_as_it_needs(raw, partition, partitions, nodes), partition, partitions, nodes
    )


def as_wide_as_it_needs(
    raw: NDArray[np.void], partition: Ints, partitions: PartitionTable, nodes: NodeTable
) -> NDArray[np.void]:
    """The rows, in which waiting ones have the nodes that their pieces need at least, where Slurm lists so many.

    No node of the partition holds more pieces than the largest one. A request tells less after its requeue than
    before its first start, and Slurm then lists the nodes of the last run, which may be more than are needed.
    """
    rows = np.flatnonzero((raw["state"] == JobState.WAITING) & (raw["listed_nodes"] > raw["nodes"]))
    if not rows.size:
        return raw
    some = raw[rows]
    pieces, need = np.maximum(some["pieces"], 1), some["nodes"]
    for wants, column in ((some["cpus"], nodes.cpus), (some["memory_mb"], nodes.memory_mb)):
        there = np.array([_largest(members, column, nodes) for members in partitions.members], dtype=np.int64)
        has = there[partition[rows]]
        on_each = np.maximum(has // np.maximum(wants // pieces, 1), 1)
        need = np.maximum(need, np.where(has > 0, -(-pieces // on_each), 1))
    count, each = np.minimum(some["listed_nodes"], need), some["gpus_per_node"]
    raw = raw.copy()
    raw["nodes"][rows], raw["gpus"][rows] = count, np.where(each > 0, each * count, some["gpus"])
    return raw


def _largest(members: NDArray[np.bool_], column: Ints, nodes: NodeTable) -> int:
    """The most that a node with GPUs has of something."""
    return int(column[members & (nodes.gpus > 0)].max(initial=0))


def _with_idle_gpus(
    raw: NDArray[np.void], partition: Ints, partitions: PartitionTable, nodes: NodeTable
) -> NDArray[np.void]:
    """The rows, in which waiting ones ask for all GPUs that nobody else could use beside them.

    What a node has is what most of the nodes have on which the job may lie: those with the same number of GPUs. A
    job that asks for more nodes than there are is left as it is: it lies nowhere.
    """
    rows = np.flatnonzero((raw["state"] == JobState.WAITING) & may_take_gpus(raw))
    if not rows.size:
        return raw
    usual = np.array([_usual(members, nodes) for members in partitions.members], dtype=np.int64).reshape(
        -1, 3
    )
    here = _Has(*(column[partition[rows]] for column in usual.T))
    some, size = raw[rows], np.maximum(here.gpus, 1)
    per_node = some["gpus_per_node"]
    count = np.where(per_node > 0, some["gpus"] // np.maximum(per_node, 1), -(-some["gpus"] // size))
    count = np.maximum(np.maximum(count, some["nodes"]), 1)
    beside = here.beside(-(-some["cpus"] // count), -(-some["memory_mb"] // count))
    whole = np.where(some["exclusive"], here.gpus, here.gpus - beside)
    somewhere = (here.gpus > 0) & (count <= len(nodes.gpus))
    more, alone = somewhere & (whole > -(-some["gpus"] // count)), somewhere & some["exclusive"]
    if not (more | alone).any():
        return raw
    raw = raw.copy()
    at = rows[more]
    for name, column in (("gpus", count * whole), ("gpus_per_node", whole), ("nodes", count)):
        raw[name][at] = column[more]
    raw["cpus"][rows[alone]] = (count * here.cpus)[alone]
    return raw


def _usual(members: NDArray[np.bool_], nodes: NodeTable) -> tuple[int, int, int]:
    """GPUs, CPUs and memory of the kind of node that there is most of."""
    inside = members & (nodes.gpus > 0)
    if not inside.any():
        return 0, 0, 0
    gpus = int(np.bincount(nodes.gpus[inside]).argmax())
    inside &= nodes.gpus == gpus
    return gpus, int(nodes.cpus[inside].min()), int(nodes.memory_mb[inside].min())
