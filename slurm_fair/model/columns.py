"""What every table of columns can do: count its rows and take some of them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]


class Columns:
    """A frozen dataclass whose array fields all have one entry per row."""

    __slots__ = ()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def __len__(self) -> int:
        return len(next(iter(self._arrays().values())))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask; fields that are no arrays stay as they are."""
        picked = {name: column[rows] for name, column in self._arrays().items()}
        return replace(self, **picked)  # type: ignore[type-var]

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns replaced."""
        return replace(self, **columns)  # type: ignore[type-var]


def check_lengths(table: Columns) -> None:
    """Refuse a table whose columns differ in length: every later join would be silently wrong."""
    lengths = {name: len(column) for name, column in table._arrays().items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{type(table).__name__}: columns differ in length: {lengths}")


def find(sorted_keys: Ints, wanted: Ints) -> Ints:
    """Row of each wanted key in a sorted key column, -1 where it is absent."""
    if len(sorted_keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.searchsorted(sorted_keys, wanted)
    at = np.minimum(at, len(sorted_keys) - 1)
    return np.where(sorted_keys[at] == wanted, at, -1).astype(np.int64)
