"""What every table of columns can do: count its rows and take some of them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.deferred import Deferred, Put, setter

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]
Texts: TypeAlias = NDArray[np.object_]

# How a field is annotated that is a column; every other field is one value for the whole table.
_KINDS = frozenset({"Ints", "Floats", "Bools", "Codes", "Texts"})
_new = object.__new__

# To compare and bound columns with; a plain 0 would be converted each time.
ZERO: Floats = np.zeros(())


class Columns(Deferred):
    """A frozen dataclass whose array fields all have one entry per row.

    Copies are made at every look, and so without the constructor, whose checks are about what comes from outside;
    which fields are columns is known of each kind of table.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # of each kind of table, and no fields of it
        _columns: ClassVar[tuple[str, ...]]
        _others: ClassVar[tuple[str, ...]]
        _rest: ClassVar[tuple[str, ...]]  # what a copy takes over beside the columns
        _both: ClassVar[tuple[str, ...]]
        _puts: ClassVar[tuple[Put, ...]]  # of the columns and what is taken over
        _values: ClassVar[attrgetter[tuple[Any, ...]]]  # of both
        _arrays_of: ClassVar[attrgetter[tuple[NDArray[Any], ...]]]
        _first: ClassVar[attrgetter[NDArray[Any]]]

    def __init_subclass__(cls) -> None:
        kinds = cls._kinds()
        cls._columns = tuple(name for name, kind in kinds.items() if kind in _KINDS)
        cls._others = tuple(name for name, kind in kinds.items() if kind not in _KINDS)
        cls._names = cls._columns + cls._others
        cls._rest = cls._taken_over(cls._others)
        # The first once more at the end: of a single name it would be no tuple.
        cls._both = cls._columns + cls._rest
        cls._put = {name: setter(cls, name) for name in (*cls._names, *cls._rest)}
        cls._puts = tuple(cls._put[name] for name in cls._both)
        cls._values = attrgetter(*cls._both, cls._names[0])
        cls._arrays_of = attrgetter(*cls._columns, cls._columns[0])
        cls._first = attrgetter(cls._names[0])

    @classmethod
    def _taken_over(cls, others: tuple[str, ...]) -> tuple[str, ...]:
        """What a copy of a table takes over beside its columns: as a rule its other fields."""
        return others

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return dict(zip(self._columns, self._arrays_of(self), strict=False))

    def __len__(self) -> int:
        return len(self._first(self))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask; fields that are no arrays stay as they are."""
        return self._picked(rows)

    def _picked(self, rows: NDArray[Any], **others: Any) -> Self:
        """The rows asked for; columns of these, or other fields, may be given."""
        if rows.dtype.kind == "b":
            rows = rows.nonzero()[0]
        values, puts, columns = self._values(self), self._puts, len(self._columns)
        table = _new(type(self))
        for name, put, column in zip(self._columns, puts, values, strict=False):
            if name not in others:
                put(table, column[rows])
        for put, value in zip(puts[columns:], values[columns:], strict=False):
            put(table, value)
        for name, value in others.items():
            self._put[name](table, value)
        return table

    def with_columns(self, **columns: Any) -> Self:
        """The same rows with some columns, or other fields, replaced."""
        table = _new(type(self))
        for put, value in zip(self._puts, self._values(self), strict=False):
            put(table, value)
        rows, longer = len(self._first(self)), False
        for name, value in columns.items():
            self._put[name](table, value)
            if name in self._columns and len(value) != rows:
                longer = True
        if longer:
            check_lengths(table)
        return table

    def joined(self, other: Self) -> Self:
        """These rows and then those of another table; fields that are no arrays stay as they are."""
        if not len(other):
            return self
        values, behind, columns = self._values(self), other._values(other), len(self._columns)
        table = _new(type(self))
        for put, first, second in zip(self._puts[:columns], values, behind, strict=False):
            put(table, np.concatenate((first, second)))
        for put, value in zip(self._puts[columns:], values[columns:], strict=False):
            put(table, value)
        return table

    def extended(self, count: int, **fields: Any) -> Self:
        """These rows and then so many more: each column's values, or the one of all; other fields may be given."""
        rows = len(self)
        return self._mixed(slice(rows), slice(rows, None), rows + count, fields)

    def _mixed(self, mine: slice | Bools, new: slice | Ints, size: int, fields: Mapping[str, Any]) -> Self:
        """So many rows: these at some places, and new ones at the others."""
        values, columns = self._values(self), len(self._columns)
        table = _new(type(self))
        for name, put, column in zip(self._columns, self._puts, values, strict=False):
            longer = np.empty(size, column.dtype)
            longer[mine] = column
            longer[new] = fields[name]
            put(table, longer)
        for name, value in zip(self._rest, values[columns:], strict=False):
            self._put[name](table, fields.get(name, value))
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


def absent(count: int) -> Ints:
    """So many rows that are not there yet: -1 each."""
    rows = np.empty(count, dtype=np.int64)
    rows.fill(-1)
    return rows


def code(value: int) -> Codes:
    """A state or a phase to compare columns with; a plain number would be converted at every comparison."""
    return np.array(value, dtype=np.int8)


def any_of(flags: Bools) -> bool:
    """Whether one is set; looking for the first is the quickest way to know."""
    return flags.size > 0 and flags.item(flags.argmax())


def all_of(flags: Bools) -> bool:
    """Whether each is set."""
    return flags.size == 0 or flags.item(flags.argmin())


def among(keys: Ints, some: Ints) -> Bools:
    """Which of many keys are among some others."""
    if len(some) <= 1:
        return keys == some[0] if len(some) else np.zeros(len(keys), dtype=bool)
    wanted = np.sort(some)
    there: Bools = wanted.take(wanted.searchsorted(keys), mode="clip") == keys
    return there
