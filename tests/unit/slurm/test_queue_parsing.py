"""The queue as squeue prints it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import JobState
from slurm_fair.slurm.command import BY_RECORD, BY_TASK, CommandResult, Commands
from slurm_fair.slurm.reading.queue import BETWEEN, FIELDS, ROW_END, STATES, UNSPLIT, Queue, with_tasks
from tests.support.slurm_samples import in_epoch_seconds, sample, whole
from tests.support.slurm_stub import QUIET, Stub, queue, row

# The columns of the captures of the newer versions; `N/A` is what ours had there.
COLUMNS = (
    "JobID", "JobArrayID", "State", "Reason", "Account", "UserName", "Partition", "QOS", "NumNodes", "NodeList",
    "ReqNodes", "ExcNodes", "tres-alloc", "tres-per-node", "tres-per-job", "SubmitTime", "EligibleTime",
    "StartTime", "PriorityLong", "Nice", "TimeLimit", "Dependency", "RestartCnt", "Comment",
)  # fmt: skip


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Programs without answers yet."""
    return Stub(tmp_path)


def read_again(asked: Queue) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """An answer that must be readable."""
    found = asked.read()
    assert not isinstance(found, str), found
    return found


def read(stub: Stub, *rows: str) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Rows that must be readable."""
    return read_again(queue(stub, "".join(rows)))


def test_a_capture_of_22_05_reads_as_the_queue_it_was(stub: Stub) -> None:
    # Nobody asked for memory by the GPU or tasks by the node when it was captured, nor did we for these columns.
    lines = [line.split(BETWEEN) for line in sample("22.05", "squeue.txt").split(f"{ROW_END}\n")[:-1]]
    at = FIELDS.index("NTPerNode")
    rows = read(stub, *(f"{BETWEEN.join([*line[:at], '0', *line[at:], 'N/A'])}{ROW_END}\n" for line in lines))
    found = {int(r["record"]): r for r in rows}
    assert [int(found[n]["gpus"]) for n in (41, 42, 43)] == [4, 4, 5]
    assert [int(found[n]["state"]) for n in (41, 42, 49)] == [
        JobState.WAITING,
        JobState.RUNNING,
        JobState.DONE,
    ]
    assert (int(found[44]["task"]), int(found[44]["array_limit"])) == (UNSPLIT, 2)
    assert (int(found[45]["base"]), int(found[45]["task"])) == (44, 2)
    assert (found[41]["restarts"], found[41]["eligible"] - found[41]["submit"]) == (1, 121)
    assert [int(found[n]["priority"]) for n in (46, 47)] == [0, 0]
    assert found[48]["dependency"]


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_captures_of_newer_versions_read_by_the_same_words(stub: Stub, version: str) -> None:
    lines = in_epoch_seconds(sample(version, "squeue_columns.txt")).splitlines()
    found = read(stub, *map(in_our_format, lines))
    by_nodes = {int(r["nodes"]): int(r["gpus"]) for r in found if r["task"] != UNSPLIT}
    assert by_nodes[4] == 4
    assert {int(r["gpus"]) for r in found if r["nodes"] == 1} == {8, 4}
    arrays = [r for r in found if r["task"] == UNSPLIT]
    assert [int(r["array_limit"]) for r in arrays] == [2]
    running = found[found["state"] == JobState.RUNNING]
    assert set(running["time_limit"].tolist()) >= {7200.0, 1800.0}


def in_our_format(line: str) -> str:
    """A captured row with the columns that we ask for; what was not captured stays quiet."""
    seen = dict(zip(COLUMNS, line.split("|"), strict=True))
    base, _, task = seen["JobArrayID"].partition("_")
    known = {name: value for name, value in seen.items() if name in FIELDS}
    known |= {"ArrayJobID": base, "ArrayTaskID": task.strip("[]") or "N/A"}
    return BETWEEN.join((QUIET | known)[name] for name in FIELDS) + f"{ROW_END}\n"


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_whole_captures_have_the_columns_that_they_should(version: str) -> None:
    # 22.05 says on standard error that it does not know ExcNodes; the capture has that too.
    lines = [line for line in whole(version, "squeue_O.txt").splitlines() if "error:" not in line]
    assert lines
    assert {len(line.split("|")) for line in lines} == {len(COLUMNS)}


@pytest.mark.parametrize(
    ("fields", "column", "value"),
    [
        ({"State": "SUSPENDED", "PriorityLong": 0}, "state", JobState.SUSPENDED),
        ({"State": "COMPLETING"}, "state", JobState.ENDING),
        ({"State": "SPECIAL_EXIT"}, "state", JobState.WAITING),
        ({"EligibleTime": "N/A"}, "eligible", 0.0),
        ({"TimeLimit": "UNLIMITED"}, "time_limit", np.inf),
        ({"NumNodes": "2-4"}, "nodes", 2),
        # After a requeue Slurm lists how many nodes the last run had; the TRES are what was asked for.
        ({"NumNodes": 2, "RestartCnt": 1, "tres_alloc": "cpu=1,node=1,gres/gpu=4"}, "nodes", 1),
        ({"NumNodes": 2, "RestartCnt": 1, "tres_alloc": "cpu=2,node=2,gres/gpu=4"}, "nodes", 2),
        ({"NumNodes": 2, "RestartCnt": 1, "State": "RUNNING"}, "nodes", 2),
        ({"HetJobID": "7"}, "het", True),
        ({"HetJobID": "0"}, "het", False),
        ({"BatchFlag": "0"}, "batch", False),
        ({"Requeue": "0"}, "requeue", False),
        ({"Dependency": "afterok:3(unfulfilled)"}, "dependency", True),
        ({"ArrayJobID": 5, "ArrayTaskID": "2"}, "task", 2),
        ({"ArrayTaskID": "3%2"}, "task", 3),
        ({"ArrayTaskID": "3%2"}, "array_limit", 2),
        ({"tres_alloc": "cpu=1,mem=64G"}, "memory_mb", 65_536),
        ({"State": "DEADLINE", "Reason": "DeadLine"}, "state", JobState.DONE),
        ({"Deadline": "1795231610"}, "deadline", 1_795_231_610.0),
        ({"Deadline": "N/A"}, "deadline", 0.0),
        ({"TimeLimit": "10:00"}, "must_fit", 600.0),
        ({"Deadline": ""}, "deadline", 0.0),
        ({"TimeLimit": "10:00", "MinTime": "2:00"}, "must_fit", 120.0),
        ({"TimeLimit": "10:00", "MinTime": "0:00"}, "must_fit", 600.0),
        ({"TimeLimit": "10:00", "MinTime": "N/A"}, "must_fit", 600.0),
        ({"TimeLimit": "10:00", "MinTime": ""}, "must_fit", 600.0),
        ({"TimeLimit": "10:00", "MinTime": "NOT_SET"}, "must_fit", 600.0),
        ({"TimeLimit": "UNLIMITED"}, "must_fit", np.inf),
    ],
)
def test_a_column_means_what_slurm_means_by_it(
    stub: Stub, fields: dict[str, object], column: str, value: object
) -> None:
    (found,) = read(stub, row(**fields))
    assert found[column] == value


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_per_job": "gres:gpu:6", "NumNodes": 2}, 6),
        ({"tres_per_job": "N/A", "tres_per_node": "gres:gpu:a100:3", "NumNodes": 2}, 6),
        ({"tres_per_job": "N/A", "tres_per_task": "gres:gpu:1", "NumTasks": 4}, 4),
        ({"tres_per_job": "N/A"}, 0),
    ],
)
def test_gpus_are_counted_by_the_request_where_accounting_does_not_track_them(
    stub: Stub, fields: dict[str, object], gpus: int
) -> None:
    (found,) = read(stub, row(tres_alloc="cpu=1,mem=8000M,node=1,billing=1", **fields))
    assert found["gpus"] == gpus


def test_a_gpu_type_is_found_wherever_it_was_asked_for(stub: Stub) -> None:
    asked = queue(stub, row(tres_per_job="gres:gpu:h100:1"))
    rows = asked.read()
    assert not isinstance(rows, str)
    assert asked.gpu_types.texts[int(rows["gpu_type"][0])] == "h100"


def test_every_task_of_an_unsplit_array_is_a_job(stub: Stub) -> None:
    asked = queue(
        stub, row(ArrayTaskID="1,3-4%2") + row(JobID=9, ArrayJobID=7, ArrayTaskID="2", RestartCnt=1)
    )
    rows = asked.read()
    assert not isinstance(rows, str)
    which, base, task = with_tasks(rows, asked.task_lists)
    assert (which.tolist(), base.tolist(), task.tolist()) == ([0, 0, 0, 1], [7] * 4, [1, 3, 4, 2])


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
            "Unable to contact",
        ),
        ((0, row(), "squeue: error: Invalid job format specification: X"), "Invalid job format"),
        (row()[:-9], "cut off"),
    ],
)
def test_an_answer_that_is_not_whole_is_no_answer(
    stub: Stub, answer: str | tuple[int, str, str], complaint: str
) -> None:
    found = queue(stub, answer).read()
    assert isinstance(found, str)
    assert complaint in found


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"State": "BRAND_NEW"}, "state 'BRAND_NEW' is a word that this version does not know"),
        ({"SubmitTime": "2026-11-20T22:08:47"}, "no time in epoch seconds"),
        ({"Deadline": "999999999999"}, "no time in epoch seconds"),
        ({"Account": "a\x1fb"}, "36 columns instead of 35"),
        ({"Account": "a\x1b[2J"}, "its account's name is no name"),
        ({"Account": "a" * 300}, "its account's name is no name"),
        ({"tres_alloc": "node=1,gres/gpu=7766279631452241820"}, "no whole number"),
        ({"tres_alloc": "node=1,gres/gpu=200376420520589664"}, "a number that cannot be"),
        ({"tres_alloc": "node=1,gres/gpu=3999999996"}, "a number that cannot be"),
        ({"tres_alloc": "node=1,gres/gpu=-4"}, "a number that cannot be"),
        ({"tres_alloc": f"cpu={'9' * 5000},node=1,gres/gpu=4"}, "no whole number"),
        ({"tres_alloc": "cpu=1,mem=999999999999999P,node=1,gres/gpu=4"}, "more memory than any cluster has"),
        ({"tres_alloc": "node=1", "tres_per_job": f"gpu:{'9' * 30}"}, "no whole number"),
        (
            {
                "tres_alloc": "node=1",
                "tres_per_job": "",
                "tres_per_task": "gpu:1000",
                "NumTasks": "4294967294",
            },
            "cannot be",
        ),
        ({"ReqNodes": "n[1-"}, "a bracket too many"),
        ({"ArrayTaskID": "0-3999999,0-3999999"}, "more tasks than an array can have"),
        ({"NumNodes": "²"}, "no whole number"),
    ],
)
def test_a_row_that_cannot_be_read_costs_that_row_and_its_job_is_named(
    stub: Stub, fields: dict[str, object], why: str
) -> None:
    asked = queue(stub, row(JobID=6) + row(JobID=9, UserName="bob", **fields) + row(JobID=8))
    for _ in range(2):
        rows = asked.read()
        assert not isinstance(rows, str)
        assert rows["record"].tolist() == [6, 8]
        (bad,) = asked.unreadable
        assert (bad.record, bad.label, bad.user, bad.partition, bad.over) == (9, "9", "bob", "gpu", False)
        assert why in bad.why
    fresh = asked.read(["9"])
    assert not isinstance(fresh, str)
    assert len(asked.unreadable) == 1


def test_a_job_whose_row_can_no_longer_be_read_stays_as_it_was_until_it_is_over(stub: Stub) -> None:
    runs = {"JobID": 9, "State": "RUNNING", "NodeList": "n1"}
    asked = queue(
        stub,
        row(JobID=8) + row(**runs),
        row(JobID=8) + row(**runs | {"State": "NEWLY_MADE"}),
        row(JobID=8) + row(**runs | {"State": "NEWLY_MADE", "EndTime": "1"}),
        row(JobID=8) + row(**runs | {"State": "FAILED", "EndTime": "soon"}),
    )
    looks = [read_again(asked) for _ in range(4)]
    seen = [dict(zip(rows["record"].tolist(), rows["state"].tolist(), strict=True)) for rows in looks]
    assert [each.get(9) for each in seen] == [JobState.RUNNING] * 3 + [None]
    assert all(each[8] == JobState.WAITING for each in seen)


def test_each_listing_ends_its_rows_with_another_mark_which_argv_does_not_show(tmp_path: Path) -> None:
    program = tmp_path / "squeue"
    program.write_text(
        "#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline >> $0.argv\nprintenv SQUEUE_FORMAT2 >> $0.layout\n"
    )
    program.chmod(0o755)
    commands = Commands(bin_dir=tmp_path)
    for _ in range(3):
        Queue(commands).read()
    marks = re.findall(rf"{ROW_END}([0-9]{{20}})\n", (tmp_path / "squeue.layout").read_text())
    assert len(set(marks)) == 3
    assert not any(mark in (tmp_path / "squeue.argv").read_text() for mark in marks)


def test_an_empty_queue_is_an_answer_and_a_purged_id_alone_too(stub: Stub) -> None:
    assert len(read(stub, "")) == 0
    gone = queue(stub, (1, "", "slurm_load_jobs error: Invalid job id specified")).read(["7"])
    assert not isinstance(gone, str)
    assert len(gone) == 0


def test_tasks_are_listed_record_by_record_and_an_empty_id_list_means_all_only_when_meant(stub: Stub) -> None:
    asked = queue(stub, row())
    asked.read()
    asked.read(["7", "9"])
    everything, some = stub.ran("squeue")
    assert "--array-unique" in everything
    assert "-j" not in everything
    assert some[some.index("-j") + 1] == "7,9"


def test_a_line_that_did_not_change_is_not_parsed_again(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = queue(stub, row() + row(JobID=8), row() + row(JobID=9))
    asked.read()
    parsed: list[str] = []
    parse = Queue._parse

    def noted(self: Queue, line: str) -> object:
        parsed.append(line)
        return parse(self, line)

    monkeypatch.setattr(Queue, "_parse", noted)
    rows = asked.read()
    assert not isinstance(rows, str)
    assert rows["record"].tolist() == [7, 9]
    assert [line.split(BETWEEN)[0] for line in parsed] == ["9"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={name.replace("-", "_"): st.text(max_size=12) for name in FIELDS}
            | {"State": st.sampled_from(sorted(STATES))},
        ),
        max_size=4,
    ),
    st.text(max_size=20),
)
def test_no_answer_makes_the_reader_fail_otherwise_than_by_refusing_it(
    fields: list[dict[str, object]], tail: str
) -> None:
    text = "".join(row(**given) for given in fields) + tail
    found = Queue(_Saying(text)).read()
    assert isinstance(found, str) or len(found) <= text.count(ROW_END)
    tasks = Queue(_Saying(text, BY_TASK)).read()
    assert isinstance(tasks, str) == isinstance(found, str)


class _Saying(Commands):
    """Commands that always say the same."""

    def __init__(self, text: str, unfold: str = BY_RECORD) -> None:
        super().__init__(unfold=unfold, draw=lambda: "")
        self._text = text

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The text, as a whole answer."""
        return CommandResult(argv, 0, self._text, "", 0.0)
