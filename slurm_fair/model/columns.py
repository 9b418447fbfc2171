"""What every table of columns can do: count its rows and take some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]


class _Fields(NamedTuple):
    """Of one kind of table: its columns, its other fields, and how to read either at once."""

    columns: tuple[str, ...]
    others: tuple[str, ...]
    of_columns: Callable[[Columns], tuple[NDArray[Any], ...]]
    of_all: Callable[[Columns], tuple[Any, ...]]
    first: Callable[[Columns], NDArray[Any]]


# Looked up at every copy, so worked out only once for each kind of table.
_FIELDS: dict[type, _Fields] = {}
_new, _set = object.__new__, object.__setattr__


def _unchecked() -> None:
    """Tables without a rule of their own."""


class Columns:
    """A frozen dataclass whose array fields all have one entry per row."""

    __slots__ = ()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        fields = _fields(self)
        return dict(zip(fields.columns, fields.of_columns(self), strict=True))

    def __len__(self) -> int:
        return len(_fields(self).first(self))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask; fields that are no arrays stay as they are."""
        fields = _fields(self)
        if rows.dtype == np.bool_:
            rows = rows.nonzero()[0]
        picked = {
            name: column.take(rows, axis=0)
            for name, column in zip(fields.columns, fields.of_columns(self), strict=True)
        }
        return self._made(picked | {name: getattr(self, name) for name in fields.others})

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns replaced."""
        fields = _fields(self)
        names = fields.columns + fields.others
        changed = self._made(dict(zip(names, fields.of_all(self), strict=True)) | columns)
        getattr(changed, "__post_init__", _unchecked)()
        return changed

    def joined(self, other: Self) -> Self:
        """These rows and then those of another table; fields that are no arrays stay as they are."""
        fields = _fields(self)
        pairs = zip(fields.columns, fields.of_columns(self), fields.of_columns(other), strict=True)
        both = {name: np.concatenate((first, second)) for name, first, second in pairs}
        return self._made(both | {name: getattr(self, name) for name in fields.others})

    def _made(self, values: dict[str, Any]) -> Self:
        """A table of the same kind without its constructor: the checks there are about what comes from outside."""
        table = _new(type(self))
        for name, value in values.items():
            _set(table, name, value)
        return table


def _fields(table: Columns) -> _Fields:
    kind = type(table)
    known = _FIELDS.get(kind)
    if known is None:
        names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        columns = tuple(name for name in names if isinstance(getattr(table, name), np.ndarray))
        others = tuple(name for name in names if name not in columns)
        known = _FIELDS[kind] = _Fields(
            columns, others, _reader(columns), _reader(columns + others), attrgetter(columns[0])
        )
    return known


def _reader(names: tuple[str, ...]) -> Callable[[Columns], tuple[Any, ...]]:
    """Reads several fields at once, always as a tuple."""
    return attrgetter(*names) if len(names) > 1 else lambda table: (getattr(table, names[0]),)


def check_lengths(table: Columns) -> None:
    """Refuse a table whose columns differ in length: every later join would be silently wrong."""
    if len(set(map(len, _fields(table).of_columns(table)))) > 1:
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


def any_of(flags: Bools) -> bool:
    """Whether one is set; counting is the quickest way to know."""
    return bool(np.count_nonzero(flags))


def all_of(flags: Bools) -> bool:
    """Whether each is set."""
    return int(np.count_nonzero(flags)) == len(flags)


def begins_with(column: Ints, first: Ints) -> bool:
    """Whether a column's first entries are these."""
    return len(column) >= len(first) and all_of(column[: len(first)] == first)


def among(keys: Ints, some: Ints) -> Bools:
    """Which of many keys are among some others."""
    if not len(some):
        return np.zeros(len(keys), dtype=bool)
    wanted = np.sort(some)
    there: Bools = wanted.take(wanted.searchsorted(keys), mode="clip") == keys
    return there
