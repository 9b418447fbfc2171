"""Groups of GPUs that are measured, and their all-reduces timed one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from statistics import median
from typing import NamedTuple, Protocol

import numpy as np

from slurm_fair.bench_links.fit import Timing
from slurm_fair.model.counted import counted

SMALL, LARGE = 1 << 20, 1 << 24  # parameters of 4 bytes; the difference is free of what a start takes


def too_many(parameters: int) -> str:
    """The complaint about all-reduces that do not fit into memory."""
    size = parameters * 4 / 2**20
    return f"--parameters {parameters}: {size:.0f} MiB for each GPU are not to be had: give fewer"


class Place(NamedTuple):
    """One process with one GPU."""

    rank: int
    node: int


class Ranks(Protocol):
    """All processes of a measurement, as one of them sees them."""

    @property
    def places(self) -> Sequence[Place]: ...
    @property
    def rank(self) -> int: ...

    def seconds(self, members: Sequence[int], parameters: int, times: int) -> list[float] | None:
        """Seconds of each all-reduce of so many parameters by these ranks; None for those beside them.

        Every rank asks for the same groups in the same order.
        """
        ...


def rank_groups(places: Sequence[Place]) -> list[tuple[int, ...]]:
    """The ranks of each group: 2, 4, ... GPUs of the largest node; then 1, 2, ... of each of 2, 4, ... nodes."""
    numbers = sorted({one.node for one in places})
    nodes = [[one.rank for one in places if one.node == node] for node in numbers]
    largest = max(nodes, key=len, default=[])
    groups = [tuple(largest[:count]) for count in _doubling(2, len(largest))]
    for across in _doubling(2, len(nodes)):
        for count in _doubling(1, min(len(node) for node in nodes[:across])):
            groups.append(tuple(sorted(rank for node in nodes[:across] for rank in node[:count])))
    return groups


def _doubling(first: int, last: int) -> list[int]:
    """First, twice that, and so on up to the last, which is one of them."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return [*found, last] if last and (found or first == last) else []


def timed_groups(
    ranks: Ranks, sizes: tuple[int, int], times: int, tell: Callable[[str], None] = lambda _: None
) -> list[Timing]:
    """The time of each group, by the median of so many all-reduces of two sizes; nothing of groups beside us.

    It is nan where the larger one took no longer than the smaller one.
    """
    found = []
    node_of = {one.rank: one.node for one in ranks.places}
    for members in rank_groups(ranks.places):
        took = [ranks.seconds(members, parameters, times) for parameters in sizes]
        if any(seconds is None for seconds in took):
            continue
        short, long = (median(seconds or [0.0]) for seconds in took)
        gpus_of = np.unique([node_of[rank] for rank in members], return_counts=True)[1]
        each = (long - short) / (sizes[1] - sizes[0]) if long > short else nan
        found.append(Timing(len(members), len(gpus_of), int(gpus_of.max()), each))
        tell(
            f"{counted(len(members), 'GPU')} on {counted(len(gpus_of), 'node')}: "
            f"{sizes[1]} parameters in {1e3 * long:.3f} ms, "
            + (f"{1 / each:.3g} a second" if each > 0 else f"no longer than {sizes[0]} of them")
        )
    return found
