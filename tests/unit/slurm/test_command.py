"""Slurm's programs run with fixed surroundings and a time limit, and their answers are taken as they are."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from slurm_fair.errors import NotTheOwner, SlurmError
from slurm_fair.slurm.command import (
    BY_RECORD,
    BY_TASK,
    SAFE_PATH,
    CommandResult,
    Commands,
    draw_row_end,
    only_ids,
    search_path,
)
from tests.support.slurm_stub import Stub


def _program(tmp_path: Path, script: str, name: str = "squeue", **given: float) -> Commands:
    """Commands whose one program is this shell script."""
    program = tmp_path / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Commands(bin_dir=program.parent, **{"timeout_seconds": 20.0} | given)  # type: ignore[arg-type]


def _lives(pid: int) -> bool:
    """True while the process is neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_of_our_own_environment_reaches_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SQUEUE_FORMAT", "SLURM_CONF", "LD_LIBRARY_PATH", "SLURM_TIME_FORMAT", "TZ"):
        monkeypatch.setenv(name, "ours")
    commands = _program(tmp_path, "exec /usr/bin/env")
    said = commands.run("squeue").out.splitlines()
    assert [line for line in said if "ours" in line] == []
    assert {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C", "TZ=UTC", f"PATH={SAFE_PATH}"} <= set(
        said
    )
    assert "SLURM_CONF" not in commands.environment()
    commands.conf = tmp_path / "slurm.conf"
    assert f"SLURM_CONF={commands.conf}" in commands.run("squeue").out.splitlines()


SHOW = 'echo "$*|$SQUEUE_FORMAT2|$SQUEUE_FORMAT"'


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        (("squeue", "-h", "-O", "JobID:\x1f"), "-h|JobID:\x1f|"),
        (("squeue", "-h", "-o", "%A"), "-h||%A"),
        (("squeue", "-o", "%A"), "||%A"),
        (("squeue", "-o"), "-o||"),
        (("squeue", "-o", "%A", "-h"), "-o %A -h||"),
        (("sprio", "-h", "-o", "%i"), "-h -o %i||"),
    ],
)
def test_the_layout_of_a_listing_travels_beside_its_words(
    tmp_path: Path, argv: tuple[str, ...], seen: str
) -> None:
    answer = _program(tmp_path, SHOW, argv[0]).run(*argv)
    assert answer.out == f"{seen}\n"
    assert "\x1f" not in "".join(answer.argv)


def test_a_program_reads_what_it_is_given_and_has_its_errors_apart(tmp_path: Path) -> None:
    commands = _program(tmp_path, "cat; echo bad >&2; exit 3")
    answer = commands.run("squeue", stdin="update ü\nexit\n")
    assert (answer.out, answer.err, answer.code, answer.timed_out) == ("update ü\nexit\n", "bad\n", 3, False)
    assert commands.run("squeue").out == ""


def test_output_that_is_no_text_is_still_read_line_by_line(tmp_path: Path) -> None:
    answer = _program(tmp_path, r"printf 'a\r\nb\rc\377\n'").run("squeue")
    assert answer.out == "a\nb\nc�\n"


@pytest.mark.parametrize(
    ("code", "err", "whole"), [(0, "", True), (0, " \n", True), (0, "warning\n", False), (1, "", False)]
)
def test_an_answer_is_whole_only_with_exit_0_and_without_a_complaint(
    code: int, err: str, whole: bool
) -> None:
    assert CommandResult(("squeue",), code, "rows", err, 0.0).whole is whole


@pytest.mark.parametrize(
    ("code", "err", "late", "said"),
    [
        (1, "error:\n  no\tcontroller \n", False, "squeue: error: no controller"),
        (7, "\n", False, "squeue: exit code 7 without a word"),
        (1, "e" * 900, False, "squeue: " + "e" * 300),
        (-1, "half an error", True, "squeue did not answer within 3 s"),
    ],
)
def test_a_complaint_is_one_short_line(code: int, err: str, late: bool, said: str) -> None:
    assert CommandResult(("/usr/bin/squeue",), code, "", err, 2.6, late).complaint == said


def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    commands = _program(tmp_path, f"echo half\nsleep 20 &\necho $! > {note}\nwait", timeout_seconds=600.0)
    answer = commands.run("squeue", timeout_seconds=0.5)
    assert (answer.timed_out, answer.code, answer.out) == (True, -1, "")
    assert not answer.whole
    deadline = time.monotonic() + 5
    while _lives(int(note.read_text())):
        assert time.monotonic() < deadline, "what it started goes on"
        time.sleep(0.01)


def test_a_program_is_looked_up_once_and_its_loss_is_an_answer(tmp_path: Path) -> None:
    commands = _program(tmp_path, "echo here")
    with pytest.raises(SlurmError, match=r"sinfo not found: .*bin_dir"):
        commands.run("sinfo")
    assert commands.run("squeue").argv == (str(tmp_path / "bin" / "squeue"),)
    (tmp_path / "bin" / "squeue").unlink()
    answer = commands.run("squeue")
    assert (answer.code, answer.out, answer.timed_out) == (-1, "", False)
    assert answer.complaint == "squeue: cannot be run: No such file or directory"


def test_nothing_is_run_where_we_may_not(tmp_path: Path) -> None:
    commands = _program(tmp_path, f"touch {tmp_path}/ran; echo enough >&2")
    calls: list[int] = []
    commands.before = lambda: calls.append(commands.calls)
    commands.run("squeue")
    commands.run_until(bool, "squeue", timeout_seconds=5.0)
    assert calls == [1, 2]
    (tmp_path / "ran").unlink()

    def refuse() -> None:
        raise NotTheOwner("another daemon")

    commands.before = refuse
    with pytest.raises(NotTheOwner):
        commands.run("squeue")
    assert not (tmp_path / "ran").exists()


def test_giving_up_ends_the_command_under_way_and_each_later_one(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    commands = _program(tmp_path, f"touch {begun}; exec sleep 60", timeout_seconds=50.0)

    def give_up() -> None:
        while not begun.exists():
            time.sleep(0.01)
        commands.give_up()

    helper = threading.Thread(target=give_up)
    began = time.monotonic()
    helper.start()
    answers = [commands.run("squeue"), commands.run("squeue")]
    helper.join()
    assert time.monotonic() - began < 20
    for answer in answers:
        assert answer.complaint == "squeue: ended because the daemon ends"
        assert (answer.timed_out, answer.whole) == (False, False)


def test_giving_up_ends_every_command_that_runs_beside_others(tmp_path: Path) -> None:
    commands = _program(tmp_path, f"read n; touch {tmp_path}/begun$n; exec sleep $n", timeout_seconds=50.0)
    waits = (61, 62, 0)  # the one that began last has ended
    threads = [
        threading.Thread(target=commands.run, args=("squeue",), kwargs={"stdin": f"{n}\n"}) for n in waits
    ]
    began = time.monotonic()
    for number, thread in zip(waits, threads, strict=True):
        thread.start()
        while not (tmp_path / f"begun{number}").exists():
            time.sleep(0.01)
    threads[-1].join()
    commands.give_up()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 30


def test_an_older_squeue_is_asked_by_task_from_then_on(stub: Stub) -> None:
    stub.answers("squeue", (1, "", f"squeue: unrecognized option '{BY_RECORD}'\n"), "rows\n")
    commands = stub.commands()
    assert commands.squeue("-j", "7").out == "rows\n"
    commands.squeue()
    listed = ["-h", "-a", "-t", "all"]
    assert stub.ran("squeue") == [
        [*listed, "--array-unique", "-j", "7"],
        [*listed, "--array", "-j", "7"],
        [*listed, "--array"],
    ]


@pytest.mark.parametrize(
    "answer",
    [
        (1, "", "squeue: error: Invalid job id specified\n"),
        (0, "rows\n", f"unrecognized option '{BY_RECORD}'\n"),
        (1, "", f"squeue: unrecognized option '{BY_TASK}'\n"),
    ],
)
def test_another_error_of_squeue_is_no_reason_to_ask_otherwise(
    stub: Stub, answer: tuple[int, str, str]
) -> None:
    stub.answers("squeue", answer)
    commands = stub.commands()
    assert commands.squeue().err == answer[2]
    assert (commands.unfold, commands.calls) == (BY_RECORD, 1)


def _says_twice(heard: str) -> bool:
    return heard.count("retrying") >= 2


@pytest.mark.parametrize(
    ("script", "code", "late"),
    [
        ("while :; do echo retrying >&2; sleep 0.05; done", -9, False),
        ("echo retrying >&2; exec sleep 60", -9, True),
        ("echo retrying >&2; exit 5", 5, False),
        ("echo retrying; exec 2>&-; exit 0", 0, False),
    ],
)
def test_a_command_that_repeats_itself_is_ended_when_it_said_enough(
    tmp_path: Path, script: str, code: int, late: bool
) -> None:
    commands = _program(tmp_path, script, "scancel")
    answer = commands.run_until(_says_twice, "scancel", "-v", timeout_seconds=1.0)
    assert (answer.code, answer.timed_out, answer.out) == (code, late, "")
    assert answer.argv[1:] == ("-v",)
    assert answer.err.count("retrying") == (2 if not late and code == -9 else "2>&-" not in script)


def test_a_command_that_is_gone_by_now_cannot_be_run(tmp_path: Path) -> None:
    commands = _program(tmp_path, "exit 0", "scancel")
    assert commands.run("scancel").code == 0
    Path(commands.path("scancel")).unlink()
    for answer in (commands.run("scancel"), commands.run_until(bool, "scancel", timeout_seconds=1.0)):
        assert (answer.code, answer.err) == (-1, "cannot be run: No such file or directory")


@pytest.mark.parametrize(
    ("given", "searched"),
    [
        ("bin:/opt/slurm/bin::.:~/bin", f"/opt/slurm/bin:{SAFE_PATH}"),
        ("", SAFE_PATH),
        ("/a:/b", f"/a:/b:{SAFE_PATH}"),
    ],
)
def test_programs_are_looked_for_in_absolute_folders_alone(
    given: str, searched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", given)
    assert search_path() == searched


def test_the_end_of_rows_is_twenty_digits_that_are_drawn_anew() -> None:
    drawn = [draw_row_end() for _ in range(300)]
    assert all(re.fullmatch("[0-9]{20}", end) for end in drawn)
    assert len(set(drawn)) == 300


def test_an_empty_list_of_ids_is_never_sent() -> None:
    with pytest.raises(ValueError, match="reaches every job"):
        only_ids([])
    assert only_ids(["9", "7_[1-2]"]) == "9,7_[1-2]"
