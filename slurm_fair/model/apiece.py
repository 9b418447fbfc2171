"""Bounded lists that one user cannot fill: the first entry of each user comes before the second of any user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from slurm_fair.model.columns import Ints, ranks_within

T = TypeVar("T")


def rows_apiece(owner: Ints, most: int) -> Ints:
    """At most so many rows of each owner, in their order."""
    if len(owner) <= most:
        return np.arange(len(owner))
    return np.sort(one_each_first(owner)[:most])


def one_each_first(owner: Ints) -> Ints:
    """The rows: the first of each owner, then the second of each, and so on."""
    place = ranks_within(owner, np.argsort(owner, kind="stable"))
    return np.argsort(place, kind="stable")


def apiece(items: Sequence[T], whose: Callable[[T], str], most: int) -> list[T]:
    """The same for any things."""
    if len(items) <= most:
        return list(items)
    numbers: dict[str, int] = {}
    owner = np.array([numbers.setdefault(whose(item), len(numbers)) for item in items], dtype=np.int64)
    return [items[row] for row in rows_apiece(owner, most).tolist()]
