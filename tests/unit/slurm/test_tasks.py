"""Arrays whose tasks squeue lists one by one are arrays again."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.slurm.reading.queue import UNSPLIT
from tests.support.slurm_stub import Stub, queue, row


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Programs without answers yet."""
    return Stub(tmp_path)


UNKNOWN_OPTION = (
    1,
    "",
    "squeue: unrecognized option '--array-unique'\nTry \"squeue --help\" for more information\n",
)
TASKS = row(JobID=7, ArrayTaskID=1) + row(JobID=7, ArrayTaskID=3) + row(JobID=7, ArrayTaskID=4)
SPLIT = row(JobID=9, ArrayJobID=7, ArrayTaskID=2, RestartCnt=1) + row(JobID=12) + row(JobID=13, ArrayTaskID=5)
THROTTLED = "JobId=7 ArrayJobId=7 ArrayTaskId=1 ArrayTaskThrottle=2 JobName=wrap UserId=alice(1000)\n"


def test_where_tasks_are_listed_alone_those_of_one_record_are_an_array_again(stub: Stub) -> None:
    stub.answers("scontrol", THROTTLED)
    asked = queue(stub, UNKNOWN_OPTION, TASKS + SPLIT)
    found = asked.read()
    assert not isinstance(found, str)
    by_record = {int(r["record"]): r for r in found}
    assert [len(found), len(by_record)] == [4, 4]
    assert asked.task_lists[by_record[7]["tasks"]].numbers().tolist() == [1, 3, 4]
    assert (int(by_record[7]["task"]), int(by_record[7]["array_limit"])) == (UNSPLIT, 2)
    assert (int(by_record[9]["base"]), int(by_record[9]["task"]), int(by_record[9]["restarts"])) == (7, 2, 1)
    assert (int(by_record[13]["base"]), int(by_record[13]["task"])) == (13, 5)
    assert stub.ran("scontrol") == [["-o", "show", "job", "7_1"]]


def test_the_option_that_squeue_does_not_know_is_tried_once(stub: Stub) -> None:
    stub.answers("scontrol", THROTTLED)
    asked = queue(stub, UNKNOWN_OPTION, TASKS)
    asked.read()
    asked.read(["7"])
    assert ["--array-unique" in argv for argv in stub.ran("squeue")] == [True, False, False]
    assert ["--array" in argv for argv in stub.ran("squeue")] == [False, True, True]
    assert len(stub.ran("scontrol")) == 1  # a look at some jobs asks for no limits


@pytest.mark.parametrize(
    ("answer", "limits"),
    [
        (THROTTLED.replace("ArrayTaskThrottle=2 ", ""), [2, 0]),
        (THROTTLED.replace("=2 ", "=5 "), [2, 5]),
        (THROTTLED.replace("ArrayTaskThrottle=2 JobName=wrap", "JobName=ArrayTaskThrottle=1 "), [2, 0]),
        (THROTTLED.replace("ArrayJobId=7", "ArrayJobId=8"), [2, 0]),
        ((1, "", "slurm_load_jobs error: Unable to contact slurm controller"), [2, 2]),
    ],
    ids=["lifted", "raised", "only in its name", "of another array", "no answer"],
)
def test_the_limit_of_an_array_is_asked_again_at_each_look(
    stub: Stub, answer: str | tuple[int, str, str], limits: list[int]
) -> None:
    stub.answers("scontrol", THROTTLED, answer)
    asked = queue(stub, UNKNOWN_OPTION, TASKS)
    seen = [asked.read(), asked.read()]
    assert [int(rows[0]["array_limit"]) for rows in seen if not isinstance(rows, str)] == limits
