"""Rows that are alike: numbered, and found by their values."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats, Ints, absent


def groups(*columns: Ints | Floats) -> tuple[Ints, Ints]:
    """A number for each row, the same for rows with the same values and ascending with these; a row of each."""
    if not len(columns[0]):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new)
    first: Ints = order[np.flatnonzero(np.concatenate([[1], new[1:]]))]
    return group, first


def lookup(table: tuple[Ints, ...], wanted: tuple[Ints, ...]) -> Ints:
    """The row of a table, in which no two rows are the same, that has these values; -1 = none."""
    rows = len(table[0])
    both = tuple(np.concatenate(pair) for pair in zip(table, wanted, strict=True))
    number, first = groups(*both)
    at = absent(len(first))
    at[number[:rows]] = np.arange(rows)
    found: Ints = at[number[rows:]]
    return found


def pairs(asked: Ints, of: Ints) -> tuple[Ints, Ints]:
    """Each row of `asked` beside each row of `of` with the same number; rows of -1 stand beside none."""
    order = np.argsort(of, kind="stable")
    first = np.searchsorted(of[order], asked, side="left")
    many = np.where(asked >= 0, np.searchsorted(of[order], asked, side="right") - first, 0)
    row = np.repeat(np.arange(len(asked)), many)
    place = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    return row, order[first[row] + place]


def sums(group: Ints, value: Floats, groups: int) -> Floats:
    """The sum of each group's values."""
    return np.bincount(group, value, groups).astype(np.float64)
