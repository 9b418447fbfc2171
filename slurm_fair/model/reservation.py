"""Reservations: nodes that are set aside for a job, until enough leases there have ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_RESERVED = "reserved"  # in a plan's memory


class ReservedNodes(NamedTuple):
    """These nodes are kept for one job. It is ours alone: Slurm's own reservations are another thing."""

    key: int  # of the job
    since: float
    due: float  # when the last of the leases ends that it waits for
    nodes: tuple[str, ...]
    gpus: int  # of each node
    gpu_type: int
    cpus: int = 0  # of each node
    memory_mb: int = 0  # of each node

    @property
    def amounts(self) -> tuple[int, int, int]:
        """GPUs, CPUs and memory that are kept of each node."""
        return self.gpus, self.cpus, self.memory_mb


def reservations(memory: Mapping[str, Any]) -> tuple[ReservedNodes, ...]:
    """The nodes set aside that a plan left in its memory."""
    return tuple(
        ReservedNodes(key, since, due, tuple(nodes), *amounts)
        for key, since, due, nodes, *amounts in memory.get(_RESERVED, ())
    )


def next_due(memory: Mapping[str, Any]) -> float:
    """The instant at which the first of them is to be had; inf = none stands."""
    return min((each.due for each in reservations(memory)), default=math.inf)


def with_reservations(memory: Mapping[str, Any], reserved: Sequence[ReservedNodes]) -> Mapping[str, Any]:
    """The memory with these and no others, as plain data."""
    if reserved:
        return {**memory, _RESERVED: [[*each[:3], list(each.nodes), *each[4:]] for each in reserved]}
    return (
        {name: kept for name, kept in memory.items() if name != _RESERVED} if _RESERVED in memory else memory
    )


def with_earlier_reservations(memory: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The memory with instants that lie so much earlier: the clock was set back."""
    earlier = [
        each._replace(since=each.since - seconds, due=each.due - seconds) for each in reservations(memory)
    ]
    return with_reservations(memory, earlier)
