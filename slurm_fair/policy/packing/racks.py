"""Lay a gang of several nodes in as few racks as possible: crossing racks costs more than crossing nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice

import numpy as np

from slurm_fair.model.columns import Ints

_MOST_WAYS = 1000  # sets of racks of one size that are tried where nodes are not worth the same


def gathered(rack: Ints, must: Ints, others: Ints, worth: Ints, count: int, least: int) -> Ints:
    """`must` and so many of the others, the first ones first, in as few racks as can be.

    `rack` and `worth` are by node; those taken of the others are worth `least` together, as that many of all of
    them are. Of sets of racks that will do the one is taken whose first nodes come first.
    """
    home = set(rack[must].tolist())
    size = Counter(rack[others].tolist())
    near = sum(size[name] for name in home)
    away = [name for name in size if name not in home]  # in the order of their first nodes
    alike = len(others) == 0 or int(worth[others].min()) == int(worth[others].max())
    for more in range(len(away) + 1):
        for some in _sets(away, size, more, count - near, alike):
            inside = others[np.isin(rack[others], [*home, *some])]
            picked = inside[np.argsort(-worth[inside], kind="stable")[:count]]
            if len(picked) == count and int(worth[picked].sum()) >= least:
                return np.concatenate((must, picked))
    raise ValueError("all of the nodes together must be enough")


def _sets(
    names: Sequence[int], size: Mapping[int, int], more: int, missing: int, alike: bool
) -> Iterator[Sequence[int]]:
    """Sets of so many racks, the best first; where all nodes are worth the same only one that has enough."""
    if not alike:
        yield from islice(combinations(names, more), _MOST_WAYS)
        return
    some: list[int] = []
    for at, name in enumerate(names):
        later = sorted((size[other] for other in names[at + 1 :]), reverse=True)[: more - len(some) - 1]
        if len(some) < more and size[name] + sum(later) >= missing:
            some.append(name)
            missing -= size[name]
    if missing <= 0:
        yield some
