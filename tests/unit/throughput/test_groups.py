"""Rows that are alike: numbered, found, paired and added up."""

from __future__ import annotations

import numpy as np

from slurm_fair.throughput.groups import groups, lookup, pairs, sums

NOTHING = np.zeros(0, dtype=np.int64)


def test_rows_with_the_same_values_have_one_number_that_ascends_with_the_values() -> None:
    first, second = np.array([2, 1, 2, 1, 2]), np.array([0.5, 9.0, 0.25, 9.0, 0.5])
    group, row = groups(first, second)
    assert group.tolist() == [2, 0, 1, 0, 2]
    assert [(first[at], second[at]) for at in row] == [(1, 9.0), (2, 0.25), (2, 0.5)]
    assert [part.tolist() for part in groups(NOTHING, NOTHING)] == [[], []]


def test_a_row_of_a_table_is_found_by_all_its_values() -> None:
    table = (np.array([5, 5, 7]), np.array([1, 2, 1]))
    wanted = (np.array([7, 5, 5, 6, 7]), np.array([1, 2, 1, 1, 2]))
    assert lookup(table, wanted).tolist() == [2, 1, 0, -1, -1]
    assert lookup((NOTHING, NOTHING), wanted).tolist() == [-1] * 5
    assert lookup(table, (NOTHING, NOTHING)).tolist() == []


def test_each_row_stands_beside_all_with_its_number() -> None:
    row, other = pairs(np.array([3, -1, 8, 1]), np.array([1, 3, -1, 3, 1, 1]))
    assert list(zip(row.tolist(), other.tolist(), strict=True)) == [(0, 1), (0, 3), (3, 0), (3, 4), (3, 5)]


def test_sums_are_of_each_group_also_of_empty_ones() -> None:
    assert sums(np.array([0, 2, 0]), np.array([1.5, 4.0, 2.0]), 4).tolist() == [3.5, 0, 4, 0]
