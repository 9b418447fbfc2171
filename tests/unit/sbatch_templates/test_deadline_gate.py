"""The gate of a job with a deadline: shorter, because sbatch and Slurm look at the deadline too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_fair.errors import TemplateError
from slurm_fair_templates import Options, refuse_too_late, split, submit_argv
from slurm_fair_templates.deadline import seconds_ahead
from tests.support.zones import local_time

NOW = 1_700_000_000.0
GPU = "--gres=gpu:2"
STAMP = "slurm_fair:v1,signal=USR2,grace=120"


@pytest.mark.parametrize(
    ("words", "lines", "environ", "seconds"),
    [
        (["--deadline=now+900"], "", {}, 450),
        (["--deadline=now+900", "-t5"], "", {}, 300),
        (["--deadline=now+900", "-t5"], "#SBATCH --deadline=now+1hour", {}, 300),
        ([], "#SBATCH --deadline=now+15minutes --time=5", {}, 300),
        (["--deadline=now+900"], "", {"SBATCH_TIMELIMIT": "5"}, 300),
        (["--deadline=now+900", "-t20", "--time-min=5"], "", {}, 300),
        (["--deadline=now+900", "-t14:59"], "", {}, 1),
        (["--deadline=now+900", "-t2-0"], "", {}, 1),
        (["--deadline=now+2days", "-t1-0"], "", {}, 1800),
        (["--deadline=teatime", "-t5"], "", {}, 60),
    ],
)
def test_a_deadline_shortens_the_gate(
    words: list[str], lines: str, environ: dict[str, str], seconds: int
) -> None:
    argv = submit_argv(split([GPU, *words, "s"]), f"#!/bin/sh\n{lines}\n", Options(), NOW, environ)
    assert f"--begin=uts{int(NOW) + seconds}" in argv
    assert f"--comment={STAMP},gate=uts{int(NOW) + seconds}" in argv


def test_a_gate_that_is_shorter_than_the_deadline_wants_stays() -> None:
    line = split([GPU, "--deadline=now+900", "s"])
    assert f"--begin=uts{int(NOW) + 7}" in submit_argv(line, "#!/bin/sh\n", Options(gate_seconds=7), NOW, {})


def test_under_the_hold_gate_a_deadline_changes_nothing() -> None:
    argv = submit_argv(split([GPU, "--deadline=now+900", "s"]), "#!/bin/sh\n", Options(gate="hold"), NOW, {})
    assert "--hold" in argv


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone with a summer time; NOW is there 2023-11-14 17:13:20."""
    with local_time("America/New_York", monkeypatch):
        yield


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("now", 0),
        ("now+90", 90),
        ("NOW+2minutes", 120),
        ("now+1hour", 3600),
        ("now+ 3hours", 3 * 3600),
        ("now+1weeks", 7 * 86_400),
        ("uts1700000100", 100),
        ("2023-11-14T17:14:20", 60),
        ("2023-11-14 17:14", 40),
        ("2023-11-15", 24_400),
        ("2023-06-01T00:00", 1_685_592_000 - 1_700_000_000),
        ("17:14", 40),
        ("17:13:21", 1),
        ("17:13:20", 86_400),
        ("17:00", 86_400 - 800),
        ("0:00", 24_400),
        ("24:61", None),
        ("2023-13-01", None),
        ("now+2h", None),
        ("11/30/23", None),
        ("5PM", None),
        ("", None),
    ],
)
def test_deadlines_are_read_as_sbatch_reads_them(text: str, ahead: int | None) -> None:
    assert seconds_ahead(text, NOW) == ahead


def test_of_a_job_submitted_some_other_time_only_what_is_relative_is_known() -> None:
    known = [seconds_ahead(text, None) for text in ("now+90", "uts1700000100", "2023-11-15", "17:14")]
    assert known == [90, None, None, None]


@pytest.mark.parametrize(
    ("words", "lines", "environ", "said"),
    [
        (["--deadline=now+30minutes", "--time=60"], "", {}, "--time=60"),
        (["--deadline=now+30minutes"], "#SBATCH -t 1:00:00", {}, "--time=1:00:00"),
        (["--deadline=now+1800"], "", {"SBATCH_TIMELIMIT": "31"}, "SBATCH_TIMELIMIT=31"),
        (["--deadline=now+30minutes", "--time=60", "--time-min=31"], "", {}, "--time-min=31"),
        (["--deadline=now+30minutes", "--time=60", "--time-min=30"], "", {}, ""),
        (["--deadline=now+30minutes", "--time=30"], "", {}, ""),
        (["--deadline=now+30minutes"], "", {}, ""),
        (["--deadline=teatime", "--time=60"], "", {}, ""),
        (["--time=60"], "", {}, ""),
    ],
)
def test_a_time_that_does_not_fit_before_the_deadline_is_refused(
    words: list[str], lines: str, environ: dict[str, str], said: str
) -> None:
    given = split([GPU, *words, "s"]), f"#!/bin/sh\n{lines}\n", NOW, environ
    if not said:
        refuse_too_late(*given)
        return
    with pytest.raises(TemplateError, match=f"^{said} does not fit before --deadline=now"):
        refuse_too_late(*given)
