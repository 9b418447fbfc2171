"""Marks in memory follow their store, and are joined to the jobs on which they were set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import StoreBusy
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand

SUBMIT = 1000.0


def _mark(job: int, task: int = -1, whole: bool = False, **more: float | str | bool) -> Mark:
    plain = Mark(pack(job, task), job, whole, SUBMIT, 0, 1600.0, False, 5.0)
    return replace(plain, **more)  # type: ignore[arg-type]


class _Kept:
    """A store that may be full, and writes down what it is told."""

    def __init__(self, *marks: Mark) -> None:
        self.kept, self.full, self.told = list(marks), False, list[str]()

    def marks(self) -> Sequence[Mark]:
        return self.kept

    def set_marks(self, marks: Iterable[Mark]) -> None:
        self._hear(f"set {[mark.key for mark in marks]}")

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None:
        self._hear(f"drop {list(keys)}")

    def _hear(self, what: str) -> None:
        if self.full:
            raise StoreBusy("the disk is full")
        self.told.append(what)


def _joined(marks: Marks, *keys: int, whole: bool = False, submit: float = SUBMIT) -> list[float]:
    count = len(keys)
    rows = marks.join(
        np.array(keys, dtype=np.int64), whole, np.full(count, submit), np.zeros(count, np.int64)
    )
    assert len(rows) == count
    return [float(row["gate_until"]) if row["known"] else -1.0 for row in rows]


def test_the_store_has_a_mark_before_we_count_on_it() -> None:
    kept = _Kept()
    marks = Marks(kept)
    kept.full = True
    with pytest.raises(StoreBusy):
        marks.set([_mark(7)])
    assert (marks.all(), marks.get(pack(7), False)) == ([], None)
    kept.full = False
    marks.set(iter([_mark(7), _mark(8)]))
    kept.full = True
    with pytest.raises(StoreBusy):
        marks.drop([_mark(7)])
    assert marks.get(pack(7), False) == _mark(7)
    kept.full = False
    marks.drop(iter([_mark(7), _mark(99)]))
    assert marks.all() == [_mark(8)]
    assert kept.told == [f"set {[pack(7), pack(8)]}", f"drop {[(pack(7), False), (pack(99), False)]}"]


def test_nothing_to_set_and_nothing_to_drop_is_not_told_to_the_store() -> None:
    kept = _Kept(_mark(7))
    kept.full = True
    marks = Marks(kept)
    marks.set([])
    marks.drop(iter(()))
    assert marks.all() == [_mark(7)]


def test_a_mark_of_an_array_and_one_of_a_job_with_its_number_are_two() -> None:
    one, whole = _mark(7), _mark(7, whole=True)
    marks = Marks(MarksInHand([one, whole]))
    assert (marks.get(pack(7), False), marks.get(pack(7), True)) == (one, whole)
    marks.drop([one])
    assert (marks.get(pack(7), False), marks.get(pack(7), True)) == (None, whole)


def test_the_marks_of_a_task_are_its_own_and_then_its_arrays() -> None:
    own, whole = _mark(7, 0), _mark(7, whole=True)
    marks = Marks(MarksInHand([whole, own]))
    assert marks.on(pack(7, 0), False, SUBMIT, 0) == (own, whole)
    assert marks.on(pack(7, 1), False, SUBMIT, 0) == (whole,)
    assert marks.on(pack(7), True, SUBMIT, 0) == (whole,)
    assert marks.on(pack(8, 0), False, SUBMIT, 0) == ()
    old = replace(own, submit=SUBMIT - 1)  # of an earlier bearer of the id
    assert Marks(MarksInHand([whole, old])).on(pack(7, 0), False, SUBMIT, 0) == (whole,)
    assert Marks(MarksInHand([old])).covering(pack(7, 0), False, SUBMIT, 0) is None
    assert Marks(MarksInHand([old])).covering(pack(7, 0), False, SUBMIT, 1) == old


def test_a_mark_that_is_set_again_takes_the_place_of_the_one_before() -> None:
    marks = Marks(MarksInHand([_mark(7)]))
    marks.set([_mark(7, gate_until=1.0), _mark(7, gate_until=2.0)])
    assert marks.all() == [_mark(7, gate_until=2.0)]


def test_rows_have_the_marks_of_their_own_keys_in_any_order() -> None:
    marks = Marks(
        MarksInHand([_mark(9, gate_until=math.inf), _mark(3, gate_until=30.0), _mark(5, whole=True)])
    )
    assert _joined(marks, pack(5), pack(9), pack(3), pack(9), pack(10), 0) == [
        -1,
        math.inf,
        30,
        math.inf,
        -1,
        -1,
    ]
    assert _joined(marks, pack(5), pack(9), whole=True) == [1600, -1]
    assert _joined(marks) == []


def test_rows_without_any_mark_are_joined_too() -> None:
    marks = Marks(MarksInHand())
    assert _joined(marks, pack(1), pack(2)) == [-1, -1]


def test_a_later_job_under_the_id_has_no_mark() -> None:
    marks = Marks(MarksInHand([_mark(7)]))
    assert _joined(marks, pack(7), submit=SUBMIT + 1) == [-1]
    assert _joined(marks, pack(7), submit=SUBMIT - 1) == [1600]
    keys, submit = np.array([pack(7), pack(7)]), np.full(2, SUBMIT + 1)
    rows = marks.join(keys, False, submit, np.array([0, 1]))
    assert rows["known"].tolist() == [False, True]
    assert rows["submit"].tolist() == [0.0, SUBMIT]


def test_rows_follow_marks_that_are_set_and_dropped() -> None:
    marks = Marks(MarksInHand([_mark(7)]))
    assert _joined(marks, pack(7), pack(8)) == [1600, -1]
    marks.set([_mark(8, gate_until=8.0)])
    assert _joined(marks, pack(7), pack(8)) == [1600, 8]
    marks.drop([_mark(7)])
    assert _joined(marks, pack(7), pack(8)) == [-1, 8]


def test_a_row_tells_all_that_was_noted() -> None:
    noted = _mark(7, gate_before=3.0, pinned=True, pin="n1", set_at=9.0, blameless=True)
    once = _mark(8, pin="n1")
    marks = Marks(MarksInHand([noted, once, _mark(9)]))
    rows = marks.join(np.array([pack(7), pack(8), pack(9)]), False, np.full(3, SUBMIT), np.zeros(3, np.int64))
    assert rows["gate_before"].tolist() == [3.0, 0.0, 0.0]
    assert rows["set_at"].tolist() == [9.0, 5.0, 5.0]
    assert rows["pinned"].tolist() == [True, False, False]
    assert rows["blameless"].tolist() == [True, False, False]
    assert rows["has_pin"].tolist() == [True, True, False]


def test_marks_of_a_dry_run_are_those_that_were_given() -> None:
    hand = MarksInHand(given := [_mark(7)])
    given.clear()
    hand.drop_marks([(pack(7), False)])
    hand.set_marks([_mark(8)])
    assert list(hand.marks()) == [_mark(7)]
