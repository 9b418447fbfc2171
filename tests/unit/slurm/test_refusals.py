"""What Slurm's error texts mean for one job of many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import Result
from slurm_fair.slurm.acting.act_result import is_for_later, line_about, refused_or_unknown, signalled
from slurm_fair.slurm.acting.refusals import Class, classify
from slurm_fair.slurm.command import CommandResult

# Texts of slurm_errno.c, releases 22.05 to 26.05, and whether they prove that nothing was done.
TEXTS: dict[str, Class] = {
    "Unexpected message received": Class.UNKNOWN,
    "Communication connection failure": Class.UNKNOWN,
    "Socket timed out on send/recv operation": Class.UNKNOWN,
    "Zero Bytes were transmitted or received": Class.UNKNOWN,
    "Unable to contact slurm controller (connect failure)": Class.LATER,
    "Unable to contact slurm controller (send failure)": Class.UNKNOWN,
    "Unable to contact slurm controller (receive failure)": Class.UNKNOWN,
    "Unable to contact slurm controller (shutdown failure)": Class.UNKNOWN,
    "Rate limit exceeded, please retry momentarily": Class.LATER,
    "Rate limit exceeded, please retry later": Class.LATER,
    "Incompatible versions of client and server code": Class.BROKEN,
    "Protocol authentication error": Class.BROKEN,
    "Invalid job id specified": Class.GONE,
    "Requested operation is presently disabled": Class.NEVER,
    "Job is pending execution": Class.CHANGED,
    "Only batch jobs are accepted or processed": Class.NEVER,
    "Job has already finished": Class.GONE,
    "Job is no longer pending execution": Class.CHANGED,
    "Job is not running": Class.CHANGED,
    "Job is in held state, pending scheduler release": Class.HELD,
    "Job/step already completing or completed": Class.GONE,
    "Job can not be altered now, try again later": Class.LATER,
    "Changes to job priority are not persistent, change nice instead": Class.RIGHTS,
    "Job not heterogeneous job leader": Class.NEVER,
    "Slurm backup controller in standby mode": Class.LATER,
    "Requested operation not supported on this system": Class.NEVER,
    "Access/permission denied": Class.RIGHTS,
    "Invalid user id": Class.RIGHTS,
    "Cannot modify scrontab jobs through scontrol": Class.NEVER,
    "Unable to connect to database": Class.UNKNOWN,
    "Job update not available right now, the DB index is being set, try again in a bit": Class.LATER,
    "Invalid node name specified": Class.PLACE,
    "Requested nodes not in this partition": Class.PLACE,
    "Required node not available (down, drained or reserved)": Class.PLACE,
    "Requested nodes are busy": Class.PLACE,
    "MaxJobCount limit reached": Class.UNKNOWN,
    "Invalid time specified": Class.UNKNOWN,
    "Job can not start due to maintenance reservation.": Class.PLACE,
    "I/O error writing script/environment to file": Class.UNKNOWN,
    "a text of a later release": Class.UNKNOWN,
    "": Class.UNKNOWN,
}
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
    """What a command said."""
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
    assert is_for_later(Result.REFUSED, detail) is passes
