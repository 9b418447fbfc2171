"""The output of a command on many jobs tells of each what came of it, and of none more than it says."""

from __future__ import annotations

import pytest

from slurm_fair.model import Result
from slurm_fair.slurm.acting.act_end import ActEnd, line_about, refused_or_unknown, signalled
from slurm_fair.slurm.command import CommandResult

GONE = "Invalid job id specified"


def _answer(code: int, err: str, timed_out: bool = False) -> CommandResult:
    return CommandResult(("/usr/bin/scontrol",), code, "", err, 4.4, timed_out)


@pytest.mark.parametrize(
    ("named", "job", "about"),
    [
        ("7_1,3-4", "7_1", True),
        ("7_1,3-4", "7_3", True),
        ("7_1,3-4", "7_4", True),
        ("7_1,3-4", "7_2", False),
        ("7_1,3-4", "7_5", False),
        ("17_1,3-4", "7_3", False),
        ("7_1,3-4", "7", False),
        ("7_10-12", "7_1", False),
        ("7_[5-6,9]", "7_6", True),
        ("7_1,3-4", "7_[1-3]", False),
        ("7_0", "7_0", True),
        ("7", "7_0", False),
        ("7_3", "7_30", False),
        ("7_99999999", "7_99999999", True),
    ],
)
def test_a_list_of_tasks_is_about_those_that_it_names(named: str, job: str, about: bool) -> None:
    for line in (f"{named}: {GONE}", f"{GONE} for job {named}", f"scontrol: error: {named}: {GONE}"):
        assert line_about(f"\n  {line}  \n", (job,)) == (line if about else "")


def test_a_line_that_names_the_job_counts_before_one_that_names_none() -> None:
    text = f"slurm: warning\nfirst for job 8\nsecond for job 7\nthird for job 7\n{GONE}"
    assert line_about(text, ("7", "9")) == "second for job 7"
    assert line_about(text, ("9", "7")) == "second for job 7"
    assert line_about(text, ("99",)) == "slurm: warning"
    assert line_about("only for job 8", ("99",)) == ""
    assert line_about("", ("7",)) == line_about(" \n\t\n", ("7",)) == ""


def test_a_number_in_a_sentence_is_no_job() -> None:
    assert line_about("error 7: 3 jobs: down", ("7",)) == "error 7: 3 jobs: down"
    assert line_about("scancel: error: Kill job error on job id 7_2: x", ("7_2",)).endswith("x")
    assert line_about(f"{GONE} for job 7, 8", ("7",)).endswith("8")


def test_an_act_that_timed_out_is_unknown_whatever_was_said_before() -> None:
    end = refused_or_unknown(_answer(-1, f"{GONE} for job 7", True), ("7",), "no effect was seen")
    assert end == ActEnd(Result.UNKNOWN, "scontrol did not answer within 4 s")


@pytest.mark.parametrize(
    ("err", "end"),
    [
        ("", ActEnd(Result.UNKNOWN, "no effect was seen")),
        (f"{GONE} for job 8", ActEnd(Result.UNKNOWN, "no effect was seen")),
        (f"{GONE} for job 7", ActEnd(Result.REFUSED, f"{GONE} for job 7")),
        (
            "Job can not be altered now for job 7",
            ActEnd(Result.REFUSED, "Job can not be altered now for job 7", True),
        ),
        ("Protocol authentication error", ActEnd(Result.REFUSED, "Protocol authentication error", True)),
        ("who knows for job 7", ActEnd(Result.UNKNOWN, "who knows for job 7")),
    ],
)
def test_an_act_without_effect_has_the_reason_that_slurm_gave_of_it(err: str, end: ActEnd) -> None:
    assert refused_or_unknown(_answer(1, err), ("7",), "no effect was seen") == end
    assert signalled(_answer(2, err), ("7",)).result is end.result


def test_a_reason_is_cut_and_judged_by_all_of_it() -> None:
    end = refused_or_unknown(_answer(1, "x" * 300 + GONE), ("7",), "nothing")
    assert end == ActEnd(Result.REFUSED, "x" * 200)


@pytest.mark.parametrize(
    ("code", "err", "result"),
    [
        (0, "scancel: warning for job 7", Result.DONE),
        (1, f"{GONE} for job 8\n\n{GONE} for job 9\n", Result.DONE),
        (1, f"{GONE} for job 8\nsomething else", Result.UNKNOWN),
        (1, f"{GONE} for job 8\n{GONE} for job 7", Result.REFUSED),
        (1, "7_1-3: unheard of", Result.DONE),
        (1, "", Result.UNKNOWN),
        (2, f"{GONE} for job 8", Result.UNKNOWN),
        (-9, f"{GONE} for job 8", Result.UNKNOWN),
    ],
)
def test_a_signal_was_sent_where_all_that_went_wrong_was_with_others(
    code: int, err: str, result: Result
) -> None:
    assert signalled(_answer(code, err), ("7", "70")).result is result


def test_a_signal_of_which_nothing_is_known_may_not_have_arrived() -> None:
    assert signalled(_answer(1, ""), ("7",)).detail == "the signal may not have arrived"
    late = signalled(_answer(0, "", True), ("7",))
    assert (late.result, late.detail) == (Result.UNKNOWN, "scontrol did not answer within 4 s")
