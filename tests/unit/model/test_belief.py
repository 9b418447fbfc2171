"""Beliefs about jobs are one table: its rows stay together, and what is not known stays unknown."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Beliefs
from slurm_fair.model.ids import pack


def beliefs(*numbers: int, **columns: Any) -> Beliefs:
    """Jobs of these numbers, each with as much done as its number."""
    none, count = Beliefs.none(), len(numbers)
    table = {name: np.zeros(count, dtype=getattr(none, name).dtype) for name in none._columns}
    given = {name: np.asarray(values, dtype=table[name].dtype) for name, values in columns.items()}
    keys = np.array([pack(number) for number in numbers], dtype=np.int64)
    done = np.array(numbers, dtype=np.float64)
    return Beliefs(**(table | {"key": keys, "done": done} | given))


def test_nothing_is_believed_of_nobody() -> None:
    assert len(Beliefs.none()) == 0
    assert Beliefs.none().counts_epochs.dtype == Beliefs.none().clamped.dtype == np.bool_
    assert Beliefs.none().key.dtype == np.int64


def test_rows_are_taken_whole_and_in_the_order_that_is_asked_for() -> None:
    of = beliefs(1, 2, 3, clamped=[False, True, False], sampled=[math.nan, 5.0, 6.0])
    taken = of.take(np.array([2, 1]))
    assert taken.key.tolist() == [pack(3), pack(2)]
    assert (taken.done.tolist(), taken.clamped.tolist(), taken.sampled.tolist()) == (
        [3, 2],
        [False, True],
        [6, 5],
    )
    assert of.take(np.array([True, False, False])).key.tolist() == [pack(1)]


def test_what_is_not_known_stays_unknown_when_tables_are_joined() -> None:
    both = beliefs(1, total=[math.nan]).joined(beliefs(2, total=[math.inf]))
    assert both.key.tolist() == [pack(1), pack(2)]
    assert math.isnan(both.total[0])
    assert both.total[1] == math.inf
    assert both.joined(Beliefs.none()) is both


def test_one_column_changes_in_a_copy_alone() -> None:
    before = beliefs(1, 2)
    after = before.with_columns(done=np.array([7.0, 8.0]))
    assert (before.done.tolist(), after.done.tolist()) == ([1, 2], [7, 8])
    assert after.key is before.key
    with pytest.raises(FrozenInstanceError):
        before.done = after.done  # type: ignore[misc]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="Beliefs: columns differ in length"):
        beliefs(1, 2, pace=[1.0])
    with pytest.raises(ValueError, match="Beliefs: columns differ in length"):
        beliefs(1).with_columns(pace=np.zeros(2))
