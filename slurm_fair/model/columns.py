"""What every table of columns can do: count its rows and take some of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]

# Names of a kind of table: (its arrays, its other fields). Looked up at every copy, so worked out only once.
_FIELDS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}
_new, _set = object.__new__, object.__setattr__


def _unchecked() -> None:
    """Tables without a rule of their own."""


class Columns:
    """A frozen dataclass whose array fields all have one entry per row."""

    __slots__ = ()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in _names(self)[0]}

    def __len__(self) -> int:
        return len(getattr(self, _names(self)[0][0]))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask; fields that are no arrays stay as they are."""
        arrays, others = _names(self)
        if rows.dtype == np.bool_:
            rows = rows.nonzero()[0]
        picked = {name: getattr(self, name).take(rows, axis=0) for name in arrays}
        return self._made(picked | {name: getattr(self, name) for name in others})

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns replaced."""
        arrays, others = _names(self)
        changed = self._made({name: getattr(self, name) for name in (*arrays, *others)} | columns)
        getattr(changed, "__post_init__", _unchecked)()
        return changed

    def _made(self, values: dict[str, Any]) -> Self:
        """A table of the same kind without its constructor: the checks there are about what comes from outside."""
        table = _new(type(self))
        for name, value in values.items():
            _set(table, name, value)
        return table


def _names(table: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kind = type(table)
    if kind not in _FIELDS:
        names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        arrays = tuple(name for name in names if isinstance(getattr(table, name), np.ndarray))
        _FIELDS[kind] = arrays, tuple(name for name in names if name not in arrays)
    return _FIELDS[kind]


def check_lengths(table: Columns) -> None:
    """Refuse a table whose columns differ in length: every later join would be silently wrong."""
    if len({len(getattr(table, name)) for name in _names(table)[0]}) > 1:
        lengths = {name: len(column) for name, column in table._arrays().items()}
        raise ValueError(f"{type(table).__name__}: columns differ in length: {lengths}")


def find(sorted_keys: Ints, wanted: Ints) -> Ints:
    """Row of each wanted key in a sorted key column, -1 where it is absent."""
    if len(sorted_keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    at = sorted_keys.searchsorted(wanted)
    np.minimum(at, len(sorted_keys) - 1, out=at)
    at[sorted_keys[at] != wanted] = -1
    return at
