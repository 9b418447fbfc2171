"""Marks outlive a look that leaves their job out, and no longer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.mark_expiry import (
    Absences,
    with_gates_unset,
    without_lifted_holds,
    without_taken_lists,
)
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand, is_of
from slurm_fair.slurm.reading.queue import Queue
from tests.support.slurm_stub import QUIET, Stub, row

SUBMIT = float(QUIET["SubmitTime"])


def mark(key: int = pack(7), whole: bool = False, submit: float = SUBMIT, restarts: int = 0) -> Mark:
    """A gate of ours on job 7."""
    return Mark(key, 7, whole, submit, restarts, 1795009000.0, False, 1.0)


def over(tmp_path: Path, given: Mark, *looks: str) -> list[bool]:
    """After each look, whether the mark is to be dropped."""
    stub = Stub(tmp_path)
    stub.answers("squeue", *looks)
    queue, absences = Queue(stub.commands()), Absences()
    found = []
    for _ in looks:
        rows = queue.read()
        assert not isinstance(rows, str)
        found.append(absences.spent([given], rows, queue) == [given])
    return found


@pytest.mark.parametrize(
    ("looks", "dropped"),
    [
        ([row(), row()], [False, False]),
        (["", "", ""], [False, False, True]),
        (["", "", row(), "", "", ""], [False] * 5 + [True]),
        ([row(State="COMPLETED")], [True]),
        ([row(State="RUNNING")], [False]),
        ([row(RestartCnt=1, SubmitTime="1795000100")], [False]),
        ([row(SubmitTime="1795000100")], [True]),  # another job under the id
        ([row(State="FAILED", JobID=6) + row()], [False]),
        ([row(State="EXPEDITING")] * 4, [False] * 4),  # its row cannot be read
        ([row(State="EXPEDITING", JobID=6)] * 3, [False, False, True]),
        ([row(State="COMPLETED", TimeLimit="?")] * 3, [False, False, True]),
        ([row(JobID="?", ArrayJobID="?")] * 4, [False] * 4),  # and may be anybody's
    ],
)
def test_a_job_is_gone_when_it_ended_or_was_missed_three_times(
    tmp_path: Path, looks: list[str], dropped: list[bool]
) -> None:
    assert over(tmp_path, mark(), *looks) == dropped


@pytest.mark.parametrize(
    ("shown", "age", "gone"),
    [
        (row(ReqNodes="n1"), 60, False),  # ours is on it
        (row(ReqNodes=""), 60, True),
        (row(ReqNodes="n2"), 60, True),  # its user's
        (row(ReqNodes=""), 20, False),  # an act of unknown outcome may still be carried out
        (row(State="RUNNING", ReqNodes=""), 60, False),
        (row(ReqNodes="", SubmitTime="1795000100"), 60, False),  # another job
        (row(ArrayJobID=6, ArrayTaskID="7", ReqNodes=""), 60, False),  # a task that bears the number only
        ("", 60, False),
    ],
)
def test_a_node_list_of_ours_that_is_seen_gone_is_the_users_when_it_comes_back(
    tmp_path: Path, shown: str, age: float, gone: bool
) -> None:
    stub = Stub(tmp_path)
    stub.answers("squeue", shown)
    queue = Queue(stub.commands())
    rows = queue.read()
    assert not isinstance(rows, str)
    ours = replace(mark(), pinned=True, pin="n1", set_at=1000.0)
    found = without_taken_lists(Marks(MarksInHand([ours])), rows, queue, 0.0, 1000.0 + age)
    assert found == ([replace(ours, pinned=False)] if gone else [])


@pytest.mark.parametrize(
    ("shown", "ours", "unset"),
    [
        (row(EligibleTime="1795009000"), mark(), False),  # it stands
        (row(EligibleTime="1795000100"), mark(), True),
        (row(State="RUNNING", EligibleTime="1795000100"), mark(), True),
        (row(State="COMPLETED", EligibleTime="1795000100"), mark(), False),
        (row(EligibleTime="1795000100"), replace(mark(), gate_until=0.0), False),  # we opened it
        (row(EligibleTime="1795000100"), replace(mark(), pinned=True), False),
        (row(EligibleTime="1795000100"), replace(mark(), blameless=True), False),
        (row(ArrayTaskID="1-3", EligibleTime="1795000100"), mark(whole=True), True),
        (row(ArrayTaskID="1-3", EligibleTime="1795009000"), mark(whole=True), False),
    ],
)
def test_nobody_is_blamed_for_a_gate_that_went_while_nobody_looked(
    tmp_path: Path, shown: str, ours: Mark, unset: bool
) -> None:
    stub = Stub(tmp_path)
    stub.answers("squeue", shown)
    queue = Queue(stub.commands())
    rows = queue.read()
    assert not isinstance(rows, str)
    found = with_gates_unset(Marks(MarksInHand([ours])), rows, queue)
    assert found == ([replace(ours, blameless=True)] if unset else [])


@pytest.mark.parametrize(
    ("looks", "dropped"),
    [
        ([row(ArrayTaskID="1-3")], [False]),
        ([row(JobID=9, ArrayJobID=7, ArrayTaskID="2")], [False]),
        ([row(ArrayTaskID="2", State="RUNNING")] * 3, [False, False, True]),
        ([row(ArrayTaskID="1-3", SubmitTime="1795000100")] * 3, [False, False, True]),
        ([""] * 3, [False, False, True]),
        ([row(JobID=9, ArrayJobID=7, ArrayTaskID="2", State="EXPEDITING")] * 4, [False] * 4),
    ],
)
def test_an_array_is_gone_when_no_task_of_it_was_seen_waiting_three_times(
    tmp_path: Path, looks: list[str], dropped: list[bool]
) -> None:
    assert over(tmp_path, mark(whole=True), *looks) == dropped


def test_a_finished_run_beside_the_living_job_does_not_end_it(tmp_path: Path) -> None:
    assert over(tmp_path, mark(), row(State="COMPLETED") + row()) == [False]


@pytest.mark.parametrize(
    ("submit", "restarts", "same"),
    [
        (100.0, 1, True),
        (200.0, 2, True),
        (200.0, 0, False),
        (100.0, 0, True),  # slurmctld was killed, and does not know of the restart
        (50.0, 0, True),
        (200.0, 1, True),  # the same, and requeued once more
    ],
)
def test_only_a_later_job_without_a_restart_is_another_under_the_id(
    submit: float, restarts: int, same: bool
) -> None:
    assert is_of(mark(submit=100.0, restarts=1), submit, restarts) is same


def test_a_task_without_a_mark_of_its_own_has_its_arrays() -> None:
    whole, own = mark(whole=True), mark(pack(7, 2))
    book = Marks(MarksInHand([whole, own]))
    assert book.covering(pack(7, 2), False, SUBMIT, 0) == own
    assert book.covering(pack(7, 3), False, SUBMIT, 0) == whole
    assert book.covering(pack(7, 3), False, SUBMIT + 5, 0) is None
    assert book.covering(pack(8, 3), False, SUBMIT, 0) is None


HELD = {"PriorityLong": 0}
TASK, ARRAY = mark(pack(7, 2)), mark(whole=True)
SPLIT = {"JobID": 9, "ArrayJobID": 7, "ArrayTaskID": "2"}


@pytest.mark.parametrize(
    ("ours", "shown", "seen"),
    [
        (TASK, row(ArrayTaskID="1-3"), [(pack(7, 2), False)]),
        (TASK, row(ArrayTaskID="1-3", **HELD), []),
        (TASK, row(ArrayTaskID="1,3", **HELD) + row(**SPLIT), [(pack(7, 2), False)]),
        (TASK, row(ArrayTaskID="1,3") + row(**SPLIT, **HELD), []),  # of the others the hold was lifted
        (ARRAY, row(ArrayTaskID="1-3"), [(pack(7), True)]),
        (ARRAY, row(ArrayTaskID="1-3", **HELD), []),
        (ARRAY, row(ArrayTaskID="1,3", **HELD) + row(**SPLIT), [(pack(7, 2), False)]),
        (ARRAY, row(ArrayTaskID="1,3", **HELD) + row(**SPLIT, SubmitTime="1795000100"), []),
        (ARRAY, row(ArrayTaskID="1,3") + row(**SPLIT, **HELD), [(pack(7), True)]),
    ],
)
def test_a_hold_is_seen_lifted_of_the_task_that_it_lay_on(
    tmp_path: Path, ours: Mark, shown: str, seen: list[tuple[int, bool]]
) -> None:
    stub = Stub(tmp_path)
    stub.answers("squeue", shown)
    queue = Queue(stub.commands())
    rows = queue.read()
    assert not isinstance(rows, str)
    holds = replace(ours, gate_until=math.inf, gate_before=1795009000.0)
    found = without_lifted_holds(Marks(MarksInHand([holds])), rows, queue)
    assert [(each.key, each.whole_record) for each in found] == seen
    assert all((each.gate_until, each.gate_before) == (1795009000.0, 0.0) for each in found)
