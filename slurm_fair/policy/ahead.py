"""Ends of leases, node by node: for a policy that keeps a place for a gang, or waits for one."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from slurm_fair.model import Placement
from slurm_fair.model.columns import Floats, Ints


class LeaseEnds(NamedTuple):
    """One row per job and node on which it holds a lease, in the order of the leases' ends.

    A lease that is over and was not decided on yet stands first. Its job gives way only if it saves its work.
    """

    row: Ints  # of the snapshot's jobs
    node: Ints
    gpus: Ints
    end: Floats

    @classmethod
    def of(cls, places: Placement, end: Floats) -> Self:
        """The ends of leases that lie there; `end` is by row of the snapshot's jobs."""
        ends = end[places.row]
        order = ends.argsort(kind="stable")
        return cls(places.row[order], places.node[order], places.gpus[order], ends[order])

    def gpus_until(self, instant: float, nodes: int) -> Ints:
        """GPUs of each node whose leases are over by this instant; beside them are those that are free now."""
        over = self.end <= instant
        return np.bincount(self.node[over], self.gpus[over], nodes).astype(np.int64)

    def first_of(self, node: int) -> float:
        """The end of the next lease on this node; inf where it has none."""
        ends = self.end[self.node == node]
        return float(ends[0]) if ends.size else float("inf")
