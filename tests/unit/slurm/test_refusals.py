"""Slurm's error texts have a meaning for one job of many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import Result
from slurm_fair.slurm.acting.act_end import line_about, refused_or_unknown, signalled
from slurm_fair.slurm.acting.refusals import Class, classify
from slurm_fair.slurm.command import CommandResult
from tests.support.refusal_texts import TEXTS

SEVERAL = """\
Invalid node name specified for job 7
Job is no longer pending execution for job 17
21_1,3-5: No error
21_2: Job is no longer pending execution
scancel: error: Kill job error on job id 30: Job can not be altered now, try again later
"""


@pytest.mark.parametrize(("text", "kind"), TEXTS.items())
def test_a_text_has_its_class_wherever_it_stands_in_a_line(text: str, kind: Class) -> None:
    assert classify(text) is kind
    assert classify(f"scontrol: error: {text} for job 7") is kind


@given(st.text(alphabet="xyz XYZ0123456789:_", max_size=60))
def test_what_nobody_has_read_before_is_unknown(text: str) -> None:
    assert classify(text) is Class.UNKNOWN


@pytest.mark.parametrize(
    ("ids", "line"),
    [
        (("7", "7"), "Invalid node name specified for job 7"),
        (("17", "17"), "Job is no longer pending execution for job 17"),
        (("21_2", "22"), "21_2: Job is no longer pending execution"),
        (("21_4", "21"), "21_1,3-5: No error"),
        (("21_9", "21"), ""),
        (("1", "1"), ""),
        (
            ("8_1", "30"),
            "scancel: error: Kill job error on job id 30: Job can not be altered now, try again later",
        ),
    ],
)
def test_a_line_is_about_the_job_that_it_names_and_no_other(ids: tuple[str, str], line: str) -> None:
    assert line_about(SEVERAL, ids) == line


def test_a_line_that_names_no_job_is_about_every_job() -> None:
    assert line_about("slurm_load_jobs error: Access/permission denied", ("7", "7")).endswith("denied")


def answer(code: int, err: str, timed_out: bool = False) -> CommandResult:
    """The result of a command."""
    return CommandResult(("scontrol",), code, "", err, 3.0, timed_out)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        (answer(1, SEVERAL), Result.REFUSED),
        (answer(1, "Invalid job id specified for job 99"), Result.UNKNOWN),
        (answer(1, "Unexpected message received for job 7"), Result.UNKNOWN),
        (answer(1, ""), Result.UNKNOWN),
        (answer(0, ""), Result.UNKNOWN),
        (answer(-1, SEVERAL, timed_out=True), Result.UNKNOWN),
        (answer(1, "Access/permission denied"), Result.REFUSED),
    ],
)
def test_an_act_without_effect_was_refused_only_if_slurm_said_so_of_it(
    said: CommandResult, result: Result
) -> None:
    assert refused_or_unknown(said, ("7", "7"), "nothing was seen")[0] is result


@pytest.mark.parametrize(
    ("said", "result"),
    [
        (answer(0, ""), Result.DONE),
        (answer(1, "scancel: error: Kill job error on job id 9: Invalid job id specified"), Result.DONE),
        (answer(1, "scancel: error: Kill job error on job id 7: Invalid job id specified"), Result.REFUSED),
        (
            answer(1, "scancel: error: Kill job error on job id 7: Unexpected message received"),
            Result.UNKNOWN,
        ),
        (answer(1, "scancel: error: Protocol authentication error"), Result.REFUSED),
        (
            answer(8, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
            Result.REFUSED,
        ),
        (answer(1, ""), Result.UNKNOWN),
        (answer(-1, "", timed_out=True), Result.UNKNOWN),
    ],
)
def test_a_signal_was_sent_unless_slurm_said_otherwise_of_it(said: CommandResult, result: Result) -> None:
    assert signalled(said, ("7", "7"))[0] is result


@pytest.mark.parametrize(
    ("detail", "passes"),
    [
        ("Munge encode failed: Failed to access socket", True),
        ("Rate limit exceeded, please retry later", True),
        ("Requested operation is presently disabled", False),
    ],
)
def test_a_refusal_that_says_nothing_of_the_job_may_pass(detail: str, passes: bool) -> None:
    assert refused_or_unknown(answer(1, detail), ("7", "7"), "").later is passes
