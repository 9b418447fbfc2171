"""The base of all tables of columns: counting rows, taking some, replacing columns."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from inspect import get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]
Texts: TypeAlias = NDArray[np.object_]
Column = TypeVar("Column", NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.int8])

# What a column is made of, by how its field is annotated; every other field is one value for the whole table.
DTYPES = {"Ints": np.int64, "Floats": np.float64, "Bools": np.bool_, "Codes": np.int8, "Texts": np.object_}

# To compare and bound columns with; a plain 0 would be converted each time.
ZERO: Floats = np.zeros(())
_SHORT_SPAN = 1024  # numbers that are sooner flagged one by one than searched
NO_ROWS: Ints = np.zeros(0, dtype=np.int64)
NO_ROWS.setflags(write=False)


class Code(IntEnum):
    """An enum whose members stand in columns of codes."""

    code: Codes  # the member to compare columns with: a plain number would be converted at every comparison

    def __init__(self, number: int) -> None:
        self.code = np.array(number, dtype=np.int8)
        self.code.setflags(write=False)


class Columns:
    """A frozen dataclass whose array fields all have one entry per row.

    Copies are made at every look. They avoid the constructor, because its checks are for values from outside.
    The names of the columns are kept for each kind of table. Values kept beside the columns are not copied.
    """

    if TYPE_CHECKING:  # of each kind of table, and no fields of it
        _names: ClassVar[tuple[str, ...]]
        _kinds: ClassVar[dict[str, str]]
        _columns: ClassVar[tuple[str, ...]]
        _is_column: ClassVar[dict[str, bool]]  # of what may be replaced
        _arrays_of: ClassVar[attrgetter[tuple[NDArray[Any], ...]]]
        _first: ClassVar[attrgetter[NDArray[Any]]]

    def __init_subclass__(cls) -> None:
        if "__slots__" in vars(cls):
            raise TypeError(f"{cls.__name__}: a table is copied as a dict, so it has no slots")
        kinds = {
            name: str(kind) for base in cls.__mro__[::-1] for name, kind in get_annotations(base).items()
        }
        cls._names, cls._kinds = tuple(kinds), kinds
        cls._columns = tuple(name for name, kind in kinds.items() if kind in DTYPES)
        cls._is_column = {name: name in cls._columns for name in cls._names}
        # The first once more at the end: of a single name it would be no tuple.
        cls._arrays_of = attrgetter(*cls._columns, cls._columns[0])
        cls._first = attrgetter(cls._columns[0])

    def __post_init__(self) -> None:
        check_lengths(self)

    @classmethod
    def none(cls, **fields: Any) -> Self:
        """No rows. Other fields that are tuples are empty ones, unless they are given."""
        empty: dict[str, Any] = {name: () for name, kind in cls._kinds.items() if kind.startswith("tuple[")}
        empty |= {name: np.zeros(0, DTYPES[cls._kinds[name]]) for name in cls._columns}
        return cls(**(empty | fields))

    def _copied(self) -> Self:
        """The same fields, without what else is kept with them."""
        copy, mine, names = object.__new__(type(self)), self.__dict__, self._names
        # As a rule nothing else is kept, and a whole dict is copied many times faster.
        copy.__dict__.update(mine if len(mine) == len(names) else {name: mine[name] for name in names})
        return copy

    @classmethod
    def unchecked(cls, fields: Mapping[str, Any]) -> Self:
        """The table of these fields: its maker knows that the columns are equally long."""
        table = object.__new__(cls)
        table.__dict__.update(fields)
        return table

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return dict(zip(self._columns, self._arrays_of(self), strict=False))

    def __len__(self) -> int:
        return len(self._first(self))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask; fields that are no arrays stay as they are."""
        if rows.dtype.kind == "b":
            rows = rows.nonzero()[0]
        table = self._copied()
        fields = table.__dict__
        for name, column in zip(self._columns, self._arrays_of(self), strict=False):
            fields[name] = column[rows]
        return table

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns, or other fields, replaced."""
        table = self._copied()
        table.__dict__.update(columns)
        rows = len(self._first(self))
        for name, value in columns.items():
            if self._is_column[name] and len(value) != rows:
                check_lengths(table)
        return table

    def joined(self, other: Self) -> Self:
        """These rows and then those of another table; fields that are no arrays stay as they are."""
        if not len(other):
            return self
        table, behind = self._copied(), other._arrays_of(other)
        for name, first, second in zip(self._columns, self._arrays_of(self), behind, strict=False):
            table.__dict__[name] = np.concatenate((first, second))
        return table

    def extended(self, count: int, **fields: Any) -> Self:
        """These rows and then so many more: each column's values, or the one of all; other fields may be given."""
        rows = len(self)
        return self._mixed(slice(rows), slice(rows, None), rows + count, fields)

    def _mixed(self, mine: slice | Bools, new: slice | Ints, size: int, given: Mapping[str, Any]) -> Self:
        """So many rows: these at some places, and new ones at the others."""
        table = self._copied()
        fields = table.__dict__
        fields.update(given)
        for name, column in zip(self._columns, self._arrays_of(self), strict=False):
            longer = np.empty(size, column.dtype)
            longer[mine] = column
            longer[new] = given[name]
            fields[name] = longer
        return table


def check_lengths(table: Columns) -> None:
    """Refuse a table whose columns differ in length: every later join would be silently wrong."""
    if len(set(map(len, table._arrays_of(table)))) > 1:
        lengths = {name: len(column) for name, column in table._arrays().items()}
        raise ValueError(f"{type(table).__name__}: columns differ in length: {lengths}")


def find(sorted_keys: Ints, wanted: Ints) -> Ints:
    """Row of each wanted key in a column of sorted keys, each of which is there once; -1 where it is absent."""
    if wanted is sorted_keys:
        return np.arange(len(wanted))
    if not len(sorted_keys):
        return absent(len(wanted))
    at = sorted_keys.searchsorted(wanted)
    at[sorted_keys.take(at, mode="clip") != wanted] = -1
    return at


def take_or(column: Column, rows: Ints, default: Any) -> Column:
    """The entries of some rows (of a table: its rows), and `default` for each row -1."""
    if not len(column):
        return np.full((len(rows), *column.shape[1:]), default, dtype=column.dtype)
    there = rows >= 0
    values = column.take(rows, axis=0)
    if not all_of(there):
        values[~there] = default
    return values


def absent(count: int) -> Ints:
    """So many rows that are not there yet: -1 each."""
    rows = np.empty(count, dtype=np.int64)
    rows.fill(-1)
    return rows


def ranks(rows: int, order: Ints) -> Ints:
    """The place of each of so many rows in an order, -1 where it is not in it."""
    rank = absent(rows)
    rank[order] = np.arange(len(order))
    return rank


def ranks_within(group: Ints, order: Ints) -> Ints:
    """The place of each row among those of its group, in an order of all rows in which groups ascend."""
    mine, rank = group[order], np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - mine.searchsorted(mine)
    return rank


def any_of(flags: Bools) -> bool:
    """True if one is set; looking for the first is the quickest way to know."""
    return flags.size > 0 and flags.item(flags.argmax())


def all_of(flags: Bools) -> bool:
    """True if each is set."""
    return flags.size == 0 or flags.item(flags.argmin())


def among(keys: Ints, some: Ints) -> Bools:
    """True where one of many keys is among some others."""
    if len(some) <= 1:
        return keys == some[0] if len(some) else np.zeros(len(keys), dtype=bool)
    least, most = some.min().item() - 1, some.max().item() + 1
    if most - least < len(keys) + _SHORT_SPAN:
        flags = np.zeros(most - least + 1, dtype=bool)  # those at both ends stand for all keys beyond
        flags[some - least] = True
        there: Bools = flags.take(keys - least, mode="clip")
        return there
    wanted = some.copy()
    wanted.sort()
    found: Bools = wanted.take(wanted.searchsorted(keys), mode="clip") == keys
    return found
