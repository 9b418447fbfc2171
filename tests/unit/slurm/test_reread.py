"""The fresh read tells of just the wanted jobs what Slurm says of them now, or that it cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from slurm_fair.model import Action, JobState, Verb
from slurm_fair.model.ids import pack
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.reread import FreshRow, Rows, Which, look, which
from tests.support.slurm_stub import Stub, queue, row

SPOILT = {"tres-per-node": "gpu:1,x\x1fy:0"}


def _one(job: int, task: int = -1) -> Which:
    return pack(job, task), False


def _array(job: int) -> Which:
    return pack(job), True


def _read(asked: Queue, *wanted: Which) -> Rows:
    rows = look(asked, wanted)
    assert not isinstance(rows, str), rows
    return rows


def test_a_row_is_read_as_slurm_says_it(stub: Stub) -> None:
    asked = queue(
        stub,
        row(Reason="JobHeldUser", ReqNodes="n[1-2]", PriorityLong=0, RestartCnt=2, Dependency="afterok:3")
        + row(JobID=8, State="RUNNING", NodeList="n1"),
    )
    rows = _read(asked, _one(7), _one(8), _one(9))
    assert rows.keys() == {_one(7), _one(8)}
    found = rows[_one(7)]
    assert found == FreshRow(
        JobState.WAITING, 1795000000.0, 2, 1795009000.0, 0, "JobHeldUser", frozenset({"n1", "n2"}), "n[1-2]", True,
        7, request=found.request,
    )  # fmt: skip
    assert found.request
    assert (rows[_one(8)].state, rows[_one(8)].nodes) == (JobState.RUNNING, frozenset())


def test_just_the_wanted_jobs_are_asked_for_and_what_else_is_listed_is_not_theirs(stub: Stub) -> None:
    asked = queue(stub, row(JobID=5) + row(JobID=7) + row(JobID=11, ArrayJobID=9, ArrayTaskID="4"))
    assert _read(asked, _one(9, 4), _one(7), _array(9), _one(7)).keys() == {_one(7), _one(9, 4)}
    (call,) = stub.ran("squeue")
    assert call[call.index("-j") + 1] == "7,9"


@pytest.mark.parametrize(("count", "named"), [(200, True), (201, False)])
def test_many_jobs_are_picked_out_of_the_whole_queue(stub: Stub, count: int, named: bool) -> None:
    asked = queue(stub, row(JobID=7) + row(JobID=999))
    assert _read(asked, *(_one(job) for job in range(1, count + 1))).keys() == {_one(7)}
    assert ("-j" in stub.ran("squeue")[0]) is named


def test_a_waiting_task_has_the_row_of_its_array(stub: Stub) -> None:
    asked = queue(
        stub, row(ArrayTaskID="1,3-4%2") + row(JobID=9, ArrayJobID=7, ArrayTaskID="2", State="RUNNING")
    )
    rows = _read(asked, _array(7), _one(7, 1), _one(7, 2), _one(7, 3), _one(7, 5), _one(7))
    assert rows.keys() == {_array(7), _one(7, 1), _one(7, 2), _one(7, 3)}
    assert rows[_one(7, 3)] == rows[_array(7)]
    assert (rows[_array(7)].tasks, rows[_array(7)].record) == ("1,3-4", 7)
    assert (rows[_one(7, 2)].tasks, rows[_one(7, 2)].record) == ("", 9)


def test_the_first_task_of_an_array_is_not_taken_for_its_whole(stub: Stub) -> None:
    rows = _read(queue(stub, row(ArrayTaskID="0-1")), _one(7, 0))
    assert rows.keys() == {_array(7), _one(7, 0)}


@pytest.mark.parametrize("living_first", [True, False])
def test_a_living_run_counts_before_one_that_is_over(stub: Stub, living_first: bool) -> None:
    lives, over = row(RestartCnt=1), row(State="COMPLETED")
    asked = queue(stub, lives + over if living_first else over + lives)
    assert _read(asked, _one(7))[_one(7)].restarts == 1


def test_a_job_that_is_over_is_still_told_of(stub: Stub) -> None:
    assert _read(queue(stub, row(State="CANCELLED")), _one(7))[_one(7)].state is JobState.DONE


def test_objections_are_to_records(stub: Stub) -> None:
    asked = queue(stub, row(JobID=9, ArrayJobID=7, ArrayTaskID="2") + row(JobID=8))
    rows = look(asked, [_one(7, 2), _one(8)], lambda rows: {int(rows["record"].max()): "not ours"})
    assert not isinstance(rows, str)
    assert {key: found.objection for key, found in rows.items()} == {_one(7, 2): "not ours", _one(8): ""}


def test_an_objection_is_made_to_the_wanted_rows_alone(stub: Stub) -> None:
    heard: list[int] = []

    def object_to(rows: NDArray[np.void]) -> dict[int, str]:
        heard.extend(rows["record"].tolist())
        return {}

    look(queue(stub, row(JobID=5) + row(JobID=7)), [_one(7)], object_to)
    assert heard == [7]


def test_the_last_good_row_of_a_job_that_spoils_its_row_is_no_ground_to_act(stub: Stub) -> None:
    before = row(JobID=7) + row(JobID=8)
    asked = queue(stub, before, row(JobID=7, **SPOILT) + row(JobID=8))
    asked.read()
    many = [_one(job) for job in range(7, 300)]
    rows = look(asked, many, lambda rows: {7: "not ours"})
    assert not isinstance(rows, str)
    assert (rows[_one(7)].objection, rows[_one(8)].objection) == ("its row cannot be read", "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((1, "", "slurm_load_jobs error: no"), "squeue: slurm_load_jobs error: no"),
        (row()[:-2], "squeue: the last row is cut off"),
    ],
)
def test_an_answer_that_is_not_valid_is_said_to_be(
    stub: Stub, answer: str | tuple[int, str, str], said: str
) -> None:
    assert look(queue(stub, answer), [_one(7)]) == said


def test_a_job_that_slurm_does_not_know_any_more_has_no_row(stub: Stub) -> None:
    asked = queue(stub, (1, "", "slurm_load_jobs error: Invalid job id specified\n"))
    assert look(asked, [_one(7)]) == {}


def test_an_act_is_on_a_job_or_on_a_whole_array() -> None:
    act = Action(Verb.OPEN, pack(7), 7, 0.0, 0)
    assert which(act) == _one(7)
    assert which(act._replace(whole_record=True)) == _array(7)
