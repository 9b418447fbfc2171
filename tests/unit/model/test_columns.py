"""Tables of columns: they are copied without their constructors, so what those check is checked here."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair import model
from slurm_fair.model import Placement
from slurm_fair.model.columns import (
    Columns,
    Floats,
    Ints,
    all_of,
    among,
    any_of,
    check_lengths,
    find,
    take_or,
)
from slurm_fair.model.once import once
from slurm_fair.trace import Machines, Trace

TABLES = [kind for kind in vars(model).values() if isinstance(kind, type) and issubclass(kind, Columns)]


@dataclass(frozen=True)
class Shelf(Columns):
    number: Ints
    width: Floats
    colours: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_lengths(self)


def shelf(*numbers: int) -> Shelf:
    return Shelf(np.array(numbers, dtype=np.int64), np.array(numbers) / 2, ("red",))


def rows(table: Shelf) -> list[tuple[int, float]]:
    return list(zip(table.number.tolist(), table.width.tolist(), strict=True))


@pytest.mark.parametrize("kind", [*TABLES, Machines, Trace], ids=lambda kind: kind.__name__)
def test_every_array_of_a_table_is_one_of_its_columns(kind: type[Columns]) -> None:
    arrays = {name for name, hint in get_type_hints(kind).items() if get_origin(hint) is np.ndarray}
    assert set(kind._columns) == arrays
    assert set(kind._names) == set(get_type_hints(kind))


@pytest.mark.parametrize("asked", [np.array([2, 0]), np.array([True, False, True])], ids=["index", "mask"])
def test_rows_are_taken_and_other_fields_stay(asked: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    taken = shelf(1, 2, 3).take(asked)
    assert sorted(taken.number.tolist()) == [1, 3]
    assert (len(taken), taken.colours) == (2, ("red",))


def test_tables_are_joined_row_after_row() -> None:
    assert rows(shelf(1).joined(shelf(5, 6))) == [(1, 0.5), (5, 2.5), (6, 3.0)]
    one = shelf(1)
    assert one.joined(shelf()) is one


def test_rows_are_added_whose_values_are_given_one_by_one_or_once_for_all() -> None:
    longer = shelf(1).extended(2, number=np.array([5, 6]), width=0.0)
    assert (rows(longer), longer.colours) == ([(1, 0.5), (5, 0.0), (6, 0.0)], ("red",))
    assert longer.number.dtype == np.int64
    assert shelf(1).extended(1, number=2, width=1, colours=("blue",)).colours == ("blue",)
    with pytest.raises(KeyError, match="width"):
        shelf(1).extended(1, number=2)


def test_columns_are_replaced_by_others_of_the_same_length_or_all_together() -> None:
    table = shelf(1, 2)
    assert rows(table.with_columns(width=np.array([7.0, 8.0]))) == [(1, 7.0), (2, 8.0)]
    longer = table.with_columns(number=np.array([4, 5, 6]), width=np.zeros(3), colours=("blue",))
    assert (len(longer), longer.colours) == (3, ("blue",))
    for lengths in ({"width": 3}, {"number": 3}, {"number": 3, "width": 1}):
        with pytest.raises(ValueError, match="Shelf: columns differ in length"):
            table.with_columns(**{name: np.zeros(length) for name, length in lengths.items()})
    with pytest.raises(ValueError, match="columns differ in length"):
        Shelf(np.zeros(1, dtype=np.int64), np.zeros(2))


def test_keys_are_found_in_a_sorted_column() -> None:
    keys = np.array([2, 5, 9], dtype=np.int64)
    assert find(keys, np.array([9, 1, 5, 10])).tolist() == [2, -1, 1, -1]
    assert find(keys, keys).tolist() == [0, 1, 2]
    assert find(keys[:0], keys).tolist() == [-1, -1, -1]
    assert find(keys, keys[:0]).tolist() == []


@pytest.mark.parametrize(
    ("flags", "one", "each"),
    [([], False, True), ([0, 0], False, False), ([0, 1], True, False), ([1, 1], True, True)],
)
def test_one_or_each_of_some_flags_is_set(flags: list[int], one: bool, each: bool) -> None:
    column = np.array(flags, dtype=bool)
    assert (any_of(column), all_of(column)) == (one, each)


def test_a_value_is_worked_out_once_for_each_object_and_its_failure_is_not_kept() -> None:
    worked: list[str] = []

    class Sum:
        def __init__(self, name: str) -> None:
            self.name = name

        @once
        def value(self) -> int:
            """The quotient of a test."""
            worked.append(self.name)
            return 1 // (len(worked) - 1)

    first, second = Sum("a"), Sum("b")
    with pytest.raises(ZeroDivisionError):
        _ = first.value
    assert [first.value, first.value, second.value, worked] == [1, 1, 0, ["a", "a", "b"]]
    assert Sum.value.__doc__ == "The quotient of a test."


def test_what_is_taken_on_each_node_is_kept_and_nobody_can_change_it() -> None:
    places = Placement.of([(0, 1, 4), (2, 1, 2), (2, 0, 1)])
    taken = places.per_node(3)
    assert (taken.tolist(), places.per_node(3) is taken) == ([1, 6, 0], True)
    assert places.per_node(4).tolist() == [1, 6, 0, 0]
    assert places.sites == {0: [(1, 4)], 2: [(0, 1), (1, 2)]}
    with pytest.raises(ValueError, match="read-only"):
        taken[0] = 5


def test_what_was_worked_out_of_a_table_is_worked_out_anew_of_its_copies() -> None:
    @dataclass(frozen=True)
    class Sum(Shelf):
        @once
        def total(self) -> int:
            return int(self.number.sum())

    table = Sum(np.array([1, 2, 3]), np.zeros(3))
    assert table.total == 6
    assert table.take(np.array([0, 2])).total == 4
    assert table.with_columns(number=np.array([5, 5, 5])).total == 15
    assert table.extended(1, number=4, width=0.0).total == 10
    places = Placement.of([(0, 1, 4), (2, 1, 2)])
    assert places.per_node(2).tolist() == [0, 6]
    assert places.only(np.array([2])).per_node(2).tolist() == [0, 2]


def test_a_table_that_has_slots_could_not_be_copied_and_is_refused() -> None:
    with pytest.raises(TypeError, match="Narrow: a table is copied as a dict, so it has no slots"):

        @dataclass(frozen=True, slots=True)
        class Narrow(Columns):
            number: Ints


def test_a_field_that_there_is_not_is_not_replaced() -> None:
    with pytest.raises(KeyError, match="height"):
        shelf(1).with_columns(height=np.zeros(1))


def test_a_table_is_stored_whole_and_stays_frozen() -> None:
    copy = pickle.loads(pickle.dumps(shelf(7, 8)))
    assert (rows(copy), copy.colours) == ([(7, 3.5), (8, 4.0)], ("red",))
    with pytest.raises(FrozenInstanceError):
        copy.number = np.arange(2)


def test_rows_are_gathered_with_a_default_where_there_is_none() -> None:
    numbers, none = np.array([1.5, 2.5, 3.5]), np.array([], dtype=np.int64)
    assert take_or(numbers, np.array([2, -1, 0]), np.inf).tolist() == [3.5, np.inf, 1.5]
    assert take_or(numbers, np.array([2, 1]), 0.0).tolist() == [3.5, 2.5]
    assert take_or(none, np.array([-1, -1]), 7).tolist() == [7, 7]
    assert take_or(numbers, none, 7.0).tolist() == []
    assert numbers.tolist() == [1.5, 2.5, 3.5]


def test_rows_of_a_table_are_gathered_whole() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert take_or(table, np.array([1, -1]), 0.0).tolist() == [[3.0, 4.0], [0.0, 0.0]]
    assert take_or(table[:0], np.array([-1]), 9.0).tolist() == [[9.0, 9.0]]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float64])
def test_what_is_gathered_is_of_the_kind_of_its_column(dtype: type) -> None:
    for size in (0, 1):
        column: Ints = np.ones(size, dtype=dtype)
        assert take_or(column, np.array([-1]), 0).dtype == dtype


NUMBERS = st.integers(-3, 30) | st.integers(-(2**60), 2**60)


@given(st.lists(NUMBERS, max_size=40), st.lists(NUMBERS, max_size=5))
def test_keys_are_among_others_that_lie_close_together_or_far_apart(
    keys: list[int], others: list[int]
) -> None:
    there = among(np.array(keys, dtype=np.int64), np.array(others, dtype=np.int64))
    assert there.tolist() == [key in others for key in keys]
