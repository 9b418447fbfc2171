"""Tables whose columns are indices into names: joined, and put into one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from slurm_fair.model.columns import Ints
from slurm_fair.throughput.samples import Ends, Samples

Table = TypeVar("Table", Samples, Ends)
# The names of each table, and the column that is an index into them.
_NAMES = {"classes": "job_class", "gpu_types": "gpu_type", "node_names": "node"}


def places_in(names: Sequence[Any], among: Sequence[Any]) -> Ints:
    """The index of each name among others, -1 where it is not there; one entry more, -1, for index -1."""
    index = {name: at for at, name in enumerate(among)}
    return np.array([*(index.get(name, -1) for name in names), -1], dtype=np.int64)


def as_one(first: Table, second: Table) -> Table:
    """The rows of both, with the names of both."""
    names: dict[str, Any] = {}
    of_first: dict[str, Ints] = {}
    of_second: dict[str, Ints] = {}
    for field, column in _held(first).items():
        mine: tuple[Any, ...] = getattr(first, field)
        others: tuple[Any, ...] = getattr(second, field)
        names[field] = tuple(dict.fromkeys(mine + others))
        of_first[column] = places_in(mine, names[field])[getattr(first, column)]
        of_second[column] = places_in(others, names[field])[getattr(second, column)]
    return first.with_columns(**names, **of_first).joined(second.with_columns(**of_second))


def tidied(table: Table) -> Table:
    """The rows in order, with the names that they use and no others, sorted."""
    names: dict[str, Any] = {}
    indices: dict[str, Ints] = {}
    for field, column in _held(table).items():
        used = {getattr(table, field)[at] for at in np.unique(getattr(table, column)).tolist() if at >= 0}
        names[field] = tuple(sorted(used))
        indices[column] = places_in(getattr(table, field), names[field])[getattr(table, column)]
    neat = table.with_columns(**names, **indices)
    keys = neat._columns[: neat._columns.index("time") + 1]
    return neat.take(np.lexsort([getattr(neat, column) for column in reversed(keys)]))


def in_order(table: Table) -> Table:
    """The rows in an order that hangs on nothing but what is in them."""
    named: list[Any] = [
        np.array([repr(name) for name in getattr(table, field)] + [""])[getattr(table, column)]
        for field, column in _held(table).items()
    ]
    columns: list[Any] = [getattr(table, column) for column in table._columns]
    return table.take(np.lexsort([*reversed(columns), *named]))


def _held(table: Samples | Ends) -> dict[str, str]:
    return {field: column for field, column in _NAMES.items() if hasattr(table, field)}
