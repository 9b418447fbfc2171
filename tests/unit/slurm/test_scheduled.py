"""The instant at which Slurm last tried to start a job."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from slurm_fair.slurm.reading.queue import BETWEEN
from slurm_fair.slurm.reading.scheduled import LastScheduled
from tests.support.slurm_stub import Stub


def rows(**instants: str) -> str:
    return "".join(f"{record[1:]}{BETWEEN}{instant}{BETWEEN}\n" for record, instant in instants.items())


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    return Stub(tmp_path)


def asked(stub: Stub, *answers: str | tuple[int, str, str]) -> LastScheduled:
    stub.answers("squeue", *answers)
    return LastScheduled(stub.commands())


def test_it_is_known_of_the_jobs_of_the_last_question_alone(stub: Stub) -> None:
    known = asked(stub, rows(_7="1795000000", _8="N/A"), rows(_8="1795000060"))
    assert known.learn([(7, 0), (8, 2), (9, 0)]) == ""
    assert [known.at(7, 0), known.at(8, 2), known.at(9, 0)] == [1795000000.0, 0.0, inf]
    assert known.at(7, 1) == inf
    assert known.learn([(8, 2)]) == ""
    assert [known.at(7, 0), known.at(8, 2)] == [inf, 1795000060.0]
    assert [argv[argv.index("-j") + 1] for argv in stub.ran("squeue")] == ["7,8,9", "8"]


def test_of_many_jobs_the_whole_queue_is_asked(stub: Stub) -> None:
    known = asked(stub, rows(_7="1795000000"))
    known.learn([(record, 0) for record in range(1, 202)])
    assert "-j" not in stub.ran("squeue")[0]
    assert known.at(7, 0) == 1795000000.0
    known.learn([(record, restarts) for record in range(1, 201) for restarts in (0, 1)])
    assert "-j" in stub.ran("squeue")[1]


def test_for_no_job_nothing_is_asked(stub: Stub) -> None:
    known = asked(stub, rows(_7="1795000000"))
    known.learn([(7, 0)])
    assert known.learn([]) == ""
    assert len(stub.ran("squeue")) == 1
    assert known.at(7, 0) == inf


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((1, "", "squeue: error: Invalid job id specified"), ""),
        ((1, "", "squeue: error: no controller"), "squeue: squeue: error: no controller"),
        ((0, rows(_7="1795000000"), "a warning"), "squeue: a warning"),
        (rows(_7="soon"), "squeue: LastSchedEval: "),
    ],
)
def test_what_is_no_answer_leaves_nothing_known(
    stub: Stub, answer: str | tuple[int, str, str], complaint: str
) -> None:
    known = asked(stub, rows(_7="1795000000"), answer)
    known.learn([(7, 0)])
    said = known.learn([(7, 0)])
    assert said.startswith(complaint)
    assert bool(said) == bool(complaint)
    assert known.at(7, 0) == inf


def test_a_row_that_is_not_whole_is_left_out(stub: Stub) -> None:
    known = asked(stub, f"7{BETWEEN}1795000000\n" + rows(_8="1795000060"))
    assert known.learn([(7, 0), (8, 0)]) == ""
    assert [known.at(7, 0), known.at(8, 0)] == [inf, 1795000060.0]
