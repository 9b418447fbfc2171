"""A value is worked out when it is first read, and again only when what it follows from is another."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.once import kept_with, once


class Table:
    """Two values that follow from one number, and how often they were worked out."""

    def __init__(self, number: int) -> None:
        self.number, self.worked = number, list[str]()

    @once
    def double(self) -> int:
        """The number twice over, as a value that is kept."""
        self.worked.append("double")
        return 2 * self.number

    @once
    def nothing(self) -> None:
        self.worked.append("nothing")


def test_a_value_is_worked_out_at_its_first_reading_and_for_each_object_by_itself() -> None:
    one, other = Table(3), Table(5)
    assert one.worked == []
    assert (one.double, one.double, other.double) == (6, 6, 10)
    assert (one.nothing, one.nothing) == (None, None)
    assert (one.worked, other.worked) == (["double", "nothing"], ["double"])


def test_it_is_kept_under_its_name_and_asked_of_the_class_is_what_it_was_made_as() -> None:
    one = Table(3)
    assert one.double == 6
    assert vars(one)["double"] == 6
    assert isinstance(Table.double, once)
    assert Table.double.__doc__ == "The number twice over, as a value that is kept."


def kept(of: Table, name: str, *given: object) -> int:
    """The number of times that the value of this name was worked out."""

    def work() -> int:
        of.worked.append(name)
        return of.worked.count(name)

    return kept_with(of, name, given, work)


def test_a_value_is_kept_until_something_else_is_given() -> None:
    one, column = Table(1), np.arange(3)
    assert [kept(one, "pools", column, ("a", "b")) for _ in range(3)] == [1, 1, 1]
    assert kept(one, "pools", column, tuple("ab")) == 1  # tuples are the same by what is in them
    assert kept(one, "pools", column.copy(), ("a", "b")) == 2  # tables are not
    assert kept(one, "pools", column, ("a", "c")) == 3
    assert kept(one, "pools", column, ("a", "b")) == 4  # only the last one is kept
    assert kept(one, "other", column, ("a", "b")) == 1
    assert kept(Table(1), "pools", column, ("a", "b")) == 1


def test_lists_that_are_equal_are_not_the_same() -> None:
    one = Table(1)
    assert [kept(one, "x", [1]), kept(one, "x", [1]), kept(one, "x", (1,))] == [1, 2, 3]
