"""The managed nodes and the partitions as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Bools, Columns, Floats, Ints
from slurm_fair.model.once import once


@dataclass(frozen=True)
class NodeTable(Columns):
    """One row per node of a managed partition, in Slurm's order.

    Nodes seldom change between two looks, so values worked out from them are kept with them: no slots.
    """

    names: tuple[str, ...]
    gpus: Ints  # configured
    gpus_others: Ints  # held by jobs that are not ours: never planned on
    gpu_type: Ints  # index into Snapshot.gpu_types
    cpus: Ints
    cpus_others: Ints
    memory_mb: Ints
    memory_others_mb: Ints
    usable: Bools  # can start work now: not down, drained, reserved for others, of unknown state
    why: tuple[str, ...]  # Slurm's word for what keeps an unusable node; empty for a usable one

    @once
    def capacity(self) -> Ints:
        """GPUs that managed jobs can have on each node now."""
        free: Ints = np.maximum(self.gpus - self.gpus_others, 0) * self.usable
        free.setflags(write=False)
        return free

    @once
    def cpus_left(self) -> Ints:
        """CPUs of each node that jobs which are not ours leave."""
        return self.cpus - self.cpus_others

    @once
    def memory_left_mb(self) -> Ints:
        """Memory of each node that jobs which are not ours leave."""
        return self.memory_mb - self.memory_others_mb

    @once
    def total_gpus(self) -> int:
        """GPUs that managed jobs can have now."""
        return int(self.capacity.sum())

    @once
    def gpus_of_types(self) -> tuple[Ints, Floats]:
        """The GPU types that managed jobs can have now, and how many GPUs of each."""
        gpus: Floats = np.bincount(self.gpu_type, self.capacity).astype(np.float64)
        there: Ints = gpus.nonzero()[0]
        return there, gpus[there]


@dataclass(frozen=True)
class PartitionTable:
    """The partitions that jobs of the snapshot name; values worked out from them are kept with them.

    Jobs that name several partitions, or features of nodes, have rows of their own.
    """

    names: tuple[str, ...]
    up: Bools
    members: NDArray[np.bool_]  # [partition, node]
    ways: tuple[
        NDArray[np.bool_], ...
    ] = ()  # [way, node] of each: a gang lies on nodes of one; () = on any members

    def ways_of(self, partition: int) -> NDArray[np.bool_]:
        """The sets of nodes on one of which a whole gang lies."""
        return self.ways[partition] if self.ways else self.members[partition : partition + 1]
