"""Answers of jobs come from their own folders first, and from their comments where those say nothing."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from slurm_fair.model import Answer, JobState, Snapshot
from slurm_fair.slurm.reading.answers import Answers
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.messages import job_directory
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END
from slurm_fair.slurm.reading.readers import Readers
from tests.support.builders import job, snapshot
from tests.support.slurm_stub import Stub

ME = pwd.getpwuid(os.geteuid()).pw_name
ASKED, NOW = 1000.0, 1010.0


@pytest.fixture
def readers() -> Iterator[Readers]:
    """Processes that read folders, ended after the test."""
    made = Readers(patience=20.0)
    yield made
    made.close()


def _seen(time: float = NOW) -> Snapshot:
    """Job 7, and task 2 of array 8 with the record 9, each in its second run."""
    about = {"user": ME, "state": JobState.RUNNING, "restarts": 1}
    return snapshot(time=time, jobs=[job(7, **about), job(8, task=2, record=9, **about)])


def _comments(**said: str) -> str:
    """The answer to a question for comments; `_7="..."`."""
    return "".join(f"{record[1:]}{BETWEEN}{text}{ROW_END}\n" for record, text in said.items())


def _token(job: str, saved: int = 1, restart: int = 1, time: float = ASKED) -> str:
    return f"slurm_fair_ack:job={job},restart={restart},saved={saved},time={time}"


def _answers(stub: Stub, readers: Readers, work_dir: Path | None = None) -> Answers:
    """Answers on jobs whose working folder is known where one is given."""
    commands = stub.commands()
    details = JobDetails(commands)
    if work_dir is not None:
        told = "".join(
            f"{BETWEEN.join((record, '', '', str(work_dir), '', 'x'))}{ROW_END}\n" for record in ("7", "9")
        )
        apart = Stub(stub.folder / "details")
        apart.answers("squeue", told)
        details.commands = apart.commands()
        assert details.learn([(7, 1), (9, 1)]) == ""
    return Answers(commands, details, readers)


def _write(work_dir: Path, job: str, **changes: object) -> None:
    """The file in which a run answers."""
    folder = job_directory(str(work_dir), job)
    folder.mkdir(parents=True)
    for each in (folder.parent, folder):
        each.chmod(0o711)
    said = {"v": 1, "what": "ack", "job": job, "restart": 1, "saved": True, "time": ASKED, **changes}
    (folder / "ack.json").write_text(json.dumps(said))


BOTH: Mapping[int, float] = {0: ASKED, 1: ASKED}


def test_a_comment_answers_for_the_job_that_it_names(stub: Stub, readers: Readers) -> None:
    stub.answers("squeue", _comments(_7=f"x {_token('7', 0)}", _9=f"{_token('8_2')} {_token('7')}"))
    found = _answers(stub, readers).of(_seen(), BOTH, "comment")
    assert found == {0: Answer.NOT_SAVED, 1: Answer.SAVED}
    (call,) = stub.ran("squeue")
    assert call[call.index("-j") + 1] == "7,9", "records are asked for, not tasks"


@pytest.mark.parametrize(
    "comment",
    [
        "",
        _token("8_2"),
        _token("7", restart=0),
        _token("7", time=ASKED - 10),
        _token("7", time=NOW + 100),
        f"{_token('7')},evil",
        f"my{_token('7')}",
    ],
)
def test_a_comment_that_is_no_answer_of_this_run_to_this_request_is_none(
    stub: Stub, readers: Readers, comment: str
) -> None:
    stub.answers("squeue", _comments(_7=comment))
    assert _answers(stub, readers).of(_seen(), {0: ASKED}, "comment") == {}


def test_a_request_has_its_own_time(stub: Stub, readers: Readers) -> None:
    stub.answers("squeue", _comments(_7=_token("7"), _9=_token("8_2")))
    found = _answers(stub, readers).of(_seen(), {0: ASKED + 5, 1: ASKED}, "comment")
    assert found == {1: Answer.SAVED}


def test_a_file_answers_without_a_question_to_slurm(stub: Stub, readers: Readers, tmp_path: Path) -> None:
    _write(tmp_path / "work", "7")
    _write(tmp_path / "work", "8_2", saved=False)
    answers = _answers(stub, readers, tmp_path / "work")
    for reports in ("file", "auto"):
        assert answers.of(_seen(), BOTH, reports) == {0: Answer.SAVED, 1: Answer.NOT_SAVED}
    assert stub.ran("squeue") == []


def test_a_comment_speaks_only_for_a_job_whose_file_says_nothing(
    stub: Stub, readers: Readers, tmp_path: Path
) -> None:
    _write(tmp_path / "work", "7", saved=False)
    _write(tmp_path / "work", "8_2", restart=0)
    stub.answers("squeue", _comments(_7=_token("7"), _9=_token("8_2")))
    answers = _answers(stub, readers, tmp_path / "work")
    assert answers.of(_seen(), BOTH, "file") == {0: Answer.NOT_SAVED}
    assert answers.of(_seen(), BOTH, "auto") == {0: Answer.NOT_SAVED, 1: Answer.SAVED}
    (call,) = stub.ran("squeue")
    assert call[call.index("-j") + 1] == "9"


def test_comments_beside_files_are_asked_for_once_a_second(stub: Stub, readers: Readers) -> None:
    stub.answers("squeue", _comments(_7=""))
    answers = _answers(stub, readers)
    counts = []
    for time in (NOW, NOW + 0.9, NOW + 1.0, NOW + 1.9, NOW + 1.5, NOW - 500.0, NOW - 499.5):
        answers.of(_seen(time), {0: NOW - 600}, "auto")
        counts.append(len(stub.ran("squeue")))
    assert counts == [1, 1, 2, 2, 2, 3, 3], "a clock that was set back keeps nobody from asking"


def test_where_comments_are_the_only_way_each_look_asks(stub: Stub, readers: Readers) -> None:
    stub.answers("squeue", _comments(_7=""))
    answers = _answers(stub, readers)
    for _ in range(3):
        answers.of(_seen(), {0: ASKED}, "comment")
    assert len(stub.ran("squeue")) == 3


@pytest.mark.parametrize("reports", ["auto", "file", "comment", "none"])
def test_without_a_request_nobody_is_asked(stub: Stub, readers: Readers, reports: str) -> None:
    stub.answers("squeue", (1, "", "no controller"))
    assert _answers(stub, readers).of(_seen(), {}, reports) == {}
    assert stub.ran("squeue") == []


def test_a_slurm_that_does_not_answer_tells_no_answer(stub: Stub, readers: Readers) -> None:
    stub.answers("squeue", (1, "", "no controller"), _comments(_9=_token("8_2")))
    answers = _answers(stub, readers)
    assert answers.of(_seen(), BOTH, "comment") == {}
    assert answers.of(_seen(), BOTH, "comment") == {1: Answer.SAVED}
