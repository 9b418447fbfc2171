"""Names are published only where Slurm says that it hides none."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.slurm.privacy import hidden, names_are_hidden
from tests.support.slurm_stub import Stub

BEFORE = "Configuration data as of 1795000000\nPluginDir               = /usr/lib/slurm\n"
BEHIND = "ProctrackType           = proctrack/cgroup\n\nSlurmctld(primary) at ctl is UP\n"


def hides(folder: Path, *answers: str | tuple[int, str, str], **more: bool) -> bool:
    stub = Stub(folder)
    stub.answers("scontrol", *answers, **more)
    found = names_are_hidden(stub.commands(timeout_seconds=0.5 if more else 5.0))
    assert stub.ran("scontrol") == [["show", "config"]]
    return found


def config(line: str) -> str:
    return f"{BEFORE}{line}\n{BEHIND}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("PrivateData             = none", False),
        ("PrivateData=none", False),
        ("PrivateData             = (null)", False),
        ("PrivateData             = reservations,events,cloud", False),
        ("PrivateData             = cloud,jobs", True),
        ("PrivateData             = USERS", True),
        ("PrivateData             = accounts usage", True),
        ("PrivateData             = all", True),
        ("PrivateData             =\nPrologFlags             = jobs", False),
    ],
)
def test_the_line_of_the_configuration_is_read_as_slurm_writes_it(
    tmp_path: Path, line: str, found: bool
) -> None:
    assert hides(tmp_path, config(line)) is found


@pytest.mark.parametrize(
    "answer",
    [
        "",
        f"{BEFORE}{BEHIND}",
        config("MyPrivateData           = none"),
        config("  # PrivateData         = none"),
        config("privatedata             = none"),
        (1, config("PrivateData             = none"), "Unable to contact slurm controller"),
        (0, config("PrivateData             = none"), "error: the answer may not be whole"),
    ],
    ids=["empty", "no such line", "another key", "a remark", "another case", "failed", "complained"],
)
def test_where_slurm_does_not_say_names_are_hidden(
    tmp_path: Path, answer: str | tuple[int, str, str]
) -> None:
    assert hides(tmp_path, answer)


def test_where_slurm_does_not_answer_names_are_hidden(tmp_path: Path) -> None:
    assert hides(tmp_path, config("PrivateData = none"), hangs=True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("jobs, jobs,,users", {"jobs", "users"}),
        (" , ", set()),
        ("nojobs,jobsx,job", set()),
        ("accounts\tnodes\nusage", {"accounts", "nodes", "usage"}),
        ("all=1", set()),
        ("\x1b[31mjobs", set()),
        ("x" * 100_000, set()),
    ],
)
def test_words_are_taken_whole(words: str, found: set[str]) -> None:
    assert hidden(words) == found
