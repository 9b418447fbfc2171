"""Known speeds of jobs in each shape: so many GPUs of a type, on as few nodes as they need or on more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints

USUAL_EXPONENT = 0.9  # speed of a job by its GPUs where nobody measured it


class Spread(IntEnum):
    """The spread of a gang over nodes."""

    TOGETHER = 0  # on as few nodes as it needs
    APART = 1  # on more


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """One row for each class and node where such jobs are faster or slower than on others of the GPU type."""

    job_class: Ints
    node: Ints  # of the snapshot
    ratio: Floats  # speed there over that on the type


@dataclass(frozen=True, slots=True)
class Speeds:
    """Samples (or steps) a second of classes of jobs that are alike; nan = not known.

    The unit is the class' own: only ratios within a class mean anything.
    """

    job_class: Ints  # of each row of the snapshot's jobs, -1 = nothing is known of it
    sizes: Ints  # [size] numbers of GPUs, ascending
    rate: Floats  # [class, GPU type of the snapshot, size, Spread]
    doubt: Floats  # [the same] standard deviation of a rate over the rate
    classes: tuple[str, ...] = ()  # a name of each class for people to read
    nodes: NodeSpeeds | None = None  # None where no node is known to differ from its type

    def rates(self, rows: Ints, gpu_type: Ints, gpus: Ints, apart: Bools) -> Floats:
        """The rate of each of these jobs in each of these shapes; nan where it is not known."""
        return self._of(self.rate, rows, gpu_type, gpus, apart)

    def doubts(self, rows: Ints, gpu_type: Ints, gpus: Ints, apart: Bools) -> Floats:
        """The doubt about each of these rates."""
        return self._of(self.doubt, rows, gpu_type, gpus, apart)

    def _of(self, table: Floats, rows: Ints, gpu_type: Ints, gpus: Ints, apart: Bools) -> Floats:
        found = np.full(len(rows), np.nan)
        if not len(self.sizes):
            return found
        size = np.minimum(self.sizes.searchsorted(gpus), len(self.sizes) - 1)
        known = (self.job_class[rows] >= 0) & (gpu_type >= 0) & (self.sizes[size] == gpus)
        at = (self.job_class[rows], gpu_type, size, np.where(apart, Spread.APART, Spread.TOGETHER))
        found[known] = table[tuple(index[known] for index in at)]
        return found

    def on_nodes(self, rows: Ints, nodes: int) -> Floats:
        """[node, row]: how fast each of these jobs is on each node, against others of its GPU type."""
        ratio = np.ones((nodes, len(self.rate) + 1))  # and a job of which nothing is known
        if self.nodes is not None:
            ratio[self.nodes.node, self.nodes.job_class] = self.nodes.ratio
        found: Floats = ratio[:, self.job_class[rows]]
        return found

    def for_rows(self, rows: Sequence[int] | Ints) -> Speeds:
        """The same knowledge for some of the jobs, renumbered in this order."""
        chosen = self.job_class[np.asarray(rows, dtype=np.int64)]
        return Speeds(chosen, self.sizes, self.rate, self.doubt, self.classes, self.nodes)
