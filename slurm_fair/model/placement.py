"""Placements: (row, node, gpus) triples over the rows of another table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Columns, Ints, among, any_of


@dataclass(frozen=True)
class Placement(Columns):
    """Sorted by row; `node` is an index into the snapshot's nodes.

    The GPUs taken on each node are asked for several times, and so kept with it: no slots.
    """

    row: Ints
    node: Ints
    gpus: Ints

    def __post_init__(self) -> None: ...  # made many times at each look, of columns that come together

    @classmethod
    def of(cls, triples: list[tuple[int, int, int]]) -> Self:
        """A placement from (row, node, gpus) triples in any order."""
        if not triples:
            return cls.none()
        table = np.array(sorted(triples), dtype=np.int64)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    @classmethod
    def counted(cls, row: Ints, node: Ints, gpus: Ints, taken: Ints) -> Self:
        """A placement whose maker has counted the GPUs taken on each node."""
        placement = cls(row, node, gpus)
        placement._count(taken)
        return placement

    def per_node(self, node_count: int) -> Ints:
        """GPUs taken on each node by all rows together."""
        kept: tuple[int, Ints] | None = self.__dict__.get("_taken")
        if kept is None or kept[0] != node_count:
            taken = np.bincount(self.node, weights=self.gpus, minlength=node_count).astype(np.int64)
            kept = self._count(taken)
        return kept[1]

    def _count(self, taken: Ints) -> tuple[int, Ints]:
        taken.setflags(write=False)
        kept = self.__dict__["_taken"] = len(taken), taken
        return kept

    def nodes_of(self, row: int) -> Ints:
        """Node indices of one row."""
        first, last = self.row.searchsorted(row), self.row.searchsorted(row, side="right")
        return self.node[first:last]

    @property
    def sites(self) -> dict[int, list[tuple[int, int]]]:
        """Nodes and GPUs of each row that has any."""
        found: dict[int, list[tuple[int, int]]] = {}
        for row, node, gpus in zip(self.row.tolist(), self.node.tolist(), self.gpus.tolist(), strict=True):
            found.setdefault(row, []).append((node, gpus))
        return found

    def only(self, rows: Ints) -> Self:
        """The triples of some rows (indices), the row numbers unchanged."""
        return self.take(among(self.row, rows))

    def renumber(self, new_row: Ints) -> Self:
        """Rows renumbered by `new_row[old]`; rows that map to -1 are dropped."""
        rows, node, gpus = new_row.take(self.row), self.node, self.gpus
        if len(rows) and rows[rows.argmin()] < 0:
            kept = (rows >= 0).nonzero()[0]
            rows, node, gpus = rows[kept], node[kept], gpus[kept]
        if len(rows) > 1 and any_of(rows[1:] < rows[:-1]):
            order = rows.argsort(kind="stable")
            rows, node, gpus = rows[order], node[order], gpus[order]
        return type(self)(rows, node, gpus)

    def split(self, first: int) -> tuple[Self, Self]:
        """The triples of the rows before `first`, and those of the others, which are counted from there."""
        at = int(self.row.searchsorted(first))
        before, after = self.take(np.arange(at)), self.take(np.arange(at, len(self)))
        return before, after.with_columns(row=after.row - first)

    def renamed(self, old: tuple[str, ...], new: tuple[str, ...]) -> Self:
        """The same nodes under the numbers of another snapshot; a node that is gone is dropped."""
        if old == new:
            return self
        at = {name: row for row, name in enumerate(new)}
        number = np.array([at.get(name, -1) for name in old] or [-1], dtype=np.int64)
        kept = self.take(number[self.node] >= 0)
        return kept.with_columns(node=number[kept.node])

    def plus(self, other: Placement) -> Self:
        """Both together, sorted by row."""
        if not len(self) or not len(other):
            return self if len(self) else type(self)(other.row, other.node, other.gpus)
        row = np.concatenate([self.row, other.row])
        order = np.argsort(row, kind="stable")
        node = np.concatenate([self.node, other.node])[order]
        gpus = np.concatenate([self.gpus, other.gpus])[order]
        return type(self)(row[order], node, gpus)


NO_PLACES = Placement.none()


def slurm_fill(nodes: Sequence[int], free: Iterable[int], gpus: int) -> list[tuple[int, int]]:
    """(node, GPUs there) as Slurm fills nodes with a gang whose user fixed no split (slurm-facts: gang-split).

    In their order, each gives all that it has free, but for one GPU that is kept for each node that follows.
    `free` is of each node. Together the nodes give fewer than `gpus` where they have fewer.
    """
    sites, left = [], gpus
    for after, node, here in zip(range(len(nodes) - 1, -1, -1), nodes, free, strict=True):
        here = min(here, left - after)
        sites.append((node, here))
        left -= here
    return sites
