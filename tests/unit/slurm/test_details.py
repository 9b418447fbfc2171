"""Details of a job are asked once for each run and when a look says so; one job's words change nobody else's."""

from __future__ import annotations

import pytest

from slurm_fair.slurm.reading.details import UNKNOWN, Details, JobDetails
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END
from slurm_fair.slurm.reading.stamp import Stamp
from tests.support.slurm_stub import Stub


def _told(
    job: int, comment: str = "", excluded: str = "", constraint: str = "(null)", name: str = "train"
) -> str:
    """The row of one job."""
    return f"{BETWEEN.join((str(job), constraint, excluded, '/home/a', comment, name))}{ROW_END}\n"


def _details(stub: Stub, *answers: str | tuple[int, str, str]) -> JobDetails:
    stub.answers("squeue", *answers)
    return JobDetails(stub.commands())


def test_each_word_of_a_job_lands_in_its_place(stub: Stub) -> None:
    details = _details(stub, _told(7, "a slurm_fair:v1,gate=hold\nb", "n[1-2]", "fast&big", "my\njob"))
    assert details.learn([(7, 0)]) == ""
    stamp = Stamp(version=1, gate="hold")
    assert details.of(7, 0) == Details(stamp, "/home/a", ("n1", "n2"), "fast&big", "my\njob")
    assert details.of(7, 0).gate_stamp == stamp
    assert (details.of(7, 1), details.of(8, 0)) == (UNKNOWN, UNKNOWN)
    assert UNKNOWN.gate_stamp == Stamp()


@pytest.mark.parametrize("word", ["(null)", "N/A", ""])
def test_no_constraint_is_none(stub: Stub, word: str) -> None:
    details = _details(stub, _told(7, constraint=word))
    details.learn([(7, 0)])
    assert details.of(7, 0) == Details(None, "/home/a", (), "", "train")


def test_a_job_is_asked_for_once_in_each_run(stub: Stub) -> None:
    details = _details(stub, _told(7) + _told(8), _told(7, name="again"))
    for _ in range(2):
        assert details.learn(iter([(8, 0), (7, 0), (7, 0)])) == ""
    assert details.learn([]) == ""
    assert len(stub.ran("squeue")) == 1
    details.learn([(7, 1)])
    assert details.of(7, 1).name == "again"
    assert [call[call.index("-j") + 1] for call in stub.ran("squeue")] == ["7,8", "7"]


def test_a_job_that_was_away_is_asked_for_again(stub: Stub) -> None:
    details = _details(stub, _told(7) + _told(8), _told(7, name="later"))
    details.learn([(7, 0), (8, 0)])
    details.learn([(8, 0)])
    assert details.of(7, 0) == UNKNOWN
    details.learn([(7, 0), (8, 0)])
    assert (details.of(7, 0).name, details.of(8, 0).name) == ("later", "train")


def test_a_begin_time_that_nobody_explains_is_asked_about_once(stub: Stub) -> None:
    details = _details(stub, _told(7), _told(7, "slurm_fair:v1"), _told(7, "slurm_fair:v0"), _told(7))
    details.learn([(7, 0)])
    for begins, version in (({(7, 0): 5.0}, 1), ({(7, 0): 5.0}, 1), ({(7, 0): 6.0}, 0), ({}, 0)):
        details.learn([(7, 0)], begins)
        assert details.of(7, 0).gate_stamp.version == version
        assert details.of(7, 0).stamp is not None
    assert len(stub.ran("squeue")) == 3


def test_words_that_somebody_changed_are_seen_when_they_are_asked_for_again(stub: Stub) -> None:
    first, second = _told(7, excluded="n1"), _told(7, "slurm_fair:v1,gpus=1+2", "n2", "fast", "other")
    details = _details(stub, first + _told(8), second, "", first)
    details.learn([(7, 0), (8, 0)])
    assert details.learn([(7, 0), (8, 0)], again=[(7, 0)]) == ""
    changed = Details(Stamp(1, sizes=(1, 2)), "/home/a", ("n2",), "fast", "other")
    assert (details.of(7, 0), details.naming) == (changed, {(7, 0)})
    details.learn([(7, 0)], again=[(7, 0)])  # Slurm lists it no more
    assert details.of(7, 0) == changed
    details.learn([(7, 0)], again=[(7, 0), (9, 0)])
    assert (details.of(7, 0).excluded, details.naming, details.of(9, 0)) == (("n1",), set(), UNKNOWN)
    assert [call[call.index("-j") + 1] for call in stub.ran("squeue")] == ["7,8", "7", "7", "7"]


def test_an_answer_that_is_not_valid_is_asked_for_again_and_changes_nothing(stub: Stub) -> None:
    details = _details(stub, _told(7, "slurm_fair:v1"), (1, "", "no controller"), _told(7))
    details.learn([(7, 0)])
    begins = {(7, 0): 5.0}
    assert details.learn([(7, 0)], begins) == "squeue: no controller"
    assert details.of(7, 0).stamp == Stamp(version=1)
    assert details.learn([(7, 0)], begins) == ""
    assert details.of(7, 0).stamp is None


def test_a_job_that_slurm_has_forgotten_keeps_what_is_known_and_is_not_asked_for_at_each_look(
    stub: Stub,
) -> None:
    details = _details(stub, _told(7, name="kept"), "")
    details.learn([(7, 0)])
    for _ in range(2):
        assert details.learn([(7, 0), (9, 0)], {(7, 0): 5.0}) == ""
    assert (details.of(7, 0).name, details.of(9, 0)) == ("kept", UNKNOWN)
    assert len(stub.ran("squeue")) == 2


@pytest.mark.parametrize(
    "odd",
    [
        _told(7, excluded="n[2-1]"),
        _told(7, excluded="n[1"),
        _told(7, comment=f"x{BETWEEN}slurm_fair:v1"),
        _told(7, name=f"x{ROW_END}\n8{BETWEEN}y"),
    ],
)
def test_a_job_that_spoils_its_own_row_is_unknown_and_the_others_are_not(stub: Stub, odd: str) -> None:
    details = _details(stub, odd + _told(8, "slurm_fair:v1"))
    assert details.learn([(7, 0), (8, 0)]) == ""
    assert details.of(8, 0).stamp == Stamp(version=1)
    assert details.of(7, 0).stamp is None


def test_those_that_name_sizes_or_want_to_be_measured_are_known_while_they_are_listed(stub: Stub) -> None:
    rows = _told(1, "slurm_fair:v1,gpus=1+2") + _told(2, "slurm_fair:v1,gpus=0")
    details = _details(stub, rows + _told(3, "slurm_fair:v1,profile=1") + _told(4))
    here = [(job, 0) for job in (1, 2, 3, 4)]
    details.learn(here)
    assert (details.naming, details.profiled) == ({(1, 0), (2, 0)}, {3})
    details.learn(here[1:])
    details.learn(here[3:])
    assert (details.naming, details.profiled) == (set(), set())
