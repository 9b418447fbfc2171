"""GPUs, CPUs and memory that nodes have free in fact, and those that a promised job lacks there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from slurm_fair.model import Leases, NodeTable, Placement, Snapshot
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.sizes import shares

_WORDS = GPUS, CPUS, MEMORY = "GPUs", "CPUs", "memory"
Needs: TypeAlias = list[tuple[int, int, int, int]]  # node, GPUs, CPUs, MB of memory


def summed(node: Ints, of: tuple[Ints, Ints, Ints], count: int) -> list[Ints]:
    """The sums of these shares on each node."""
    return [np.bincount(node, share, count).astype(np.int64) for share in of]


def in_all(nodes: NodeTable) -> tuple[Ints, Ints, Ints]:
    """GPUs, CPUs and memory of each node that managed jobs can have."""
    return nodes.capacity, nodes.cpus_left, nodes.memory_left_mb


def needs(snapshot: Snapshot, row: int, sites: Sequence[tuple[int, int]]) -> Needs:
    """The GPUs, CPUs and memory that a job takes of each node where it was promised GPUs."""
    jobs, sizes, parts = snapshot.jobs, snapshot.sizes, max(len(sites), 1)
    if sizes is not None:
        places = Placement.of([(0, node, gpus) for node, gpus in sites])
        of_each = shares(places, np.full(len(sites), row), jobs, sizes)
        return list(zip(places.node.tolist(), *(share.tolist() for share in of_each), strict=True))
    cpus, memory_mb = -(-jobs.cpus.item(row) // parts), -(-jobs.memory_mb.item(row) // parts)
    return [(node, gpus, cpus, memory_mb) for node, gpus in sites]


class Free(NamedTuple):
    """Amounts of each node that no job has in fact: a gate that opens before they are free opens in vain."""

    gpus: Ints
    cpus: Ints
    memory_mb: Ints

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The free amounts that the snapshot shows."""
        nodes, held = snapshot.nodes, snapshot.held
        taken = summed(held.node, shares(held, held.row, snapshot.jobs, snapshot.sizes), len(nodes.names))
        return cls(*(total - mine for total, mine in zip(in_all(nodes), taken, strict=True)))

    def lacks(self, needs: Iterable[tuple[int, int, int, int]]) -> tuple[str, ...]:
        """The resources that are not there: GPUs, CPUs, memory."""
        short = {
            word
            for node, *each in needs
            for word, column, need in zip(_WORDS, self, each, strict=True)
            if need > 0 and column.item(node) < need
        }
        return tuple([word for word in _WORDS if word in short]) if short else ()

    def take(self, needs: Iterable[tuple[int, int, int, int]]) -> None:
        """Take the needs of a job that will have them."""
        for node, *each in needs:
            for column, need in zip(self, each, strict=True):
                column[node] -= need


def awaited(leases: Leases, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    """The resources that the nodes of each promised job behind a shut gate lack, by row."""
    granted = leases.promised.nonzero()[0]
    if not granted.size:
        return {}
    jobs = snapshot.jobs
    rows, opened = find(jobs.key, leases.key[granted]), leases.opened[granted] > 0
    sites, free = leases.promises_by(jobs.key, snapshot.nodes.names).sites, Free.of(snapshot)
    for row in rows[opened & (rows >= 0)].tolist():
        free.take(needs(snapshot, row, sites.get(row, ())))
    shut = rows[~opened & (rows >= 0)].tolist()
    return {row: free.lacks(needs(snapshot, row, sites.get(row, ()))) for row in shut}
