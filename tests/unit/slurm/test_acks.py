"""Acknowledgements: what counts as one, and what a stranger could put in its place."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import Answer
from slurm_fair.slurm.reading.acks import Asked, read_comment
from slurm_fair.slurm.reading.messages import job_directory
from tests.support.answers import read_acknowledgement, why_unheard

ME = pwd.getpwuid(os.geteuid()).pw_name
ASKED, NOW = 1000.0, 1100.0
GOOD = {"v": 1, "what": "ack", "job": "7_2", "restart": 2, "saved": True, "time": 1001.5}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")


def folder_of(work_dir: Path) -> Path:
    """The folder of the job, as the runtime makes it."""
    folder = job_directory(str(work_dir), "7_2")
    for each in (folder.parent, folder):
        each.mkdir(exist_ok=True)
        each.chmod(0o711)
    return folder


def heard(work_dir: Path, user: str = ME, restarts: int = 2) -> int:
    """The message that the controller takes the job's folder to hold."""
    return read_acknowledgement(Asked(user, str(work_dir), "7_2", restarts, ASKED, NOW))


def answer(work_dir: Path, document: object, restarts: int = 2, user: str = ME) -> int:
    """The value that is read of a document in its place."""
    text = document if isinstance(document, str) else json.dumps(document)
    (folder_of(work_dir) / "ack.json").write_text(text)
    return heard(work_dir, user, restarts)


@pytest.mark.parametrize(
    ("document", "meaning"),
    [
        (GOOD, Answer.SAVED),
        (GOOD | {"saved": False}, Answer.NOT_SAVED),
        (GOOD | {"saved": "yes"}, Answer.NOT_SAVED),
        ({key: value for key, value in GOOD.items() if key != "saved"}, Answer.NOT_SAVED),
        (GOOD | {"restart": 1}, Answer.NONE),
        (GOOD | {"restart": 3}, Answer.NONE),
        (GOOD | {"restart": "2"}, Answer.NONE),
        (GOOD | {"job": "7"}, Answer.NONE),
        (GOOD | {"job": "7_3"}, Answer.NONE),
        (GOOD | {"job": 7}, Answer.NONE),
        ({key: value for key, value in GOOD.items() if key != "job"}, Answer.NONE),
        (GOOD | {"what": "report"}, Answer.NONE),
        (GOOD | {"what": "request"}, Answer.NONE),
        ({key: value for key, value in GOOD.items() if key != "what"}, Answer.NONE),
        (GOOD | {"time": 997.9}, Answer.NONE),
        (GOOD | {"time": 998.1}, Answer.SAVED),
        (GOOD | {"time": NOW + 59}, Answer.SAVED),
        (GOOD | {"time": NOW + 61}, Answer.NONE),
        (GOOD | {"time": 9e18}, Answer.NONE),
        (GOOD | {"time": "1001"}, Answer.NONE),
        (GOOD | {"time": None}, Answer.NONE),
        (json.dumps(GOOD).replace("1001.5", "NaN"), Answer.NONE),
        (json.dumps(GOOD).replace("1001.5", "1e400"), Answer.NONE),
        (json.dumps(GOOD).replace("1001.5", "9" * 400), Answer.NONE),
        ({}, Answer.NONE),
        ([], Answer.NONE),
        ("{", Answer.NONE),
        ("", Answer.NONE),
        ("\x00\xff garbage", Answer.NONE),
        ("[" * 30_000, Answer.NONE),
        ('{"restart": ' + "2" * 5000 + "}", Answer.NONE),
    ],
)
def test_only_this_runs_answer_to_this_request_counts(tmp_path: Path, document: object, meaning: int) -> None:
    assert answer(tmp_path, document) == meaning


def test_true_is_not_the_first_restart(tmp_path: Path) -> None:
    assert answer(tmp_path, GOOD | {"restart": True}, restarts=1) == Answer.NONE


def nothing(path: Path) -> None: ...


def linked(path: Path) -> None:
    """A symbolic link to a good answer."""
    (path.parent / "elsewhere").write_text(json.dumps(GOOD))
    path.symlink_to(path.parent / "elsewhere")


def linked_twice(path: Path) -> None:
    """A second name of a good answer."""
    (path.parent / "elsewhere").write_text(json.dumps(GOOD))
    path.hardlink_to(path.parent / "elsewhere")


def fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    """A good answer behind a lot of blanks."""
    path.write_text(" " * 65_536 + json.dumps(GOOD))


@pytest.mark.parametrize("put", [nothing, linked, linked_twice, fifo, directory, huge])
def test_what_is_no_plain_small_file_is_no_answer(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(folder_of(tmp_path) / "ack.json")
    assert heard(tmp_path) == Answer.NONE


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    assert answer(tmp_path, text + " " * (65_536 - len(text))) == Answer.SAVED


@needs_root
@pytest.mark.parametrize("whose", [".slurm-fair", ".slurm-fair/7_2", ".slurm-fair/7_2/ack.json"])
def test_what_is_not_the_users_own_at_every_level_is_no_answer(tmp_path: Path, whose: str) -> None:
    assert answer(tmp_path, GOOD) == Answer.SAVED
    os.chown(tmp_path / whose, pwd.getpwnam("nobody").pw_uid, -1)
    assert heard(tmp_path) == Answer.NONE
    assert whose in why_unheard(str(tmp_path), "7_2", ME)


@needs_root
def test_the_answer_of_another_user_is_read_as_his(tmp_path: Path) -> None:
    assert answer(tmp_path, GOOD, user="nobody") == Answer.NONE
    for each in (".slurm-fair", ".slurm-fair/7_2", ".slurm-fair/7_2/ack.json"):
        os.chown(tmp_path / each, pwd.getpwnam("nobody").pw_uid, -1)
    assert heard(tmp_path, "nobody") == Answer.SAVED


@pytest.mark.parametrize("level", [".slurm-fair", ".slurm-fair/7_2"])
@pytest.mark.parametrize("mode", [0o731, 0o713, 0o1777])
def test_a_folder_that_others_can_write_is_not_read(tmp_path: Path, level: str, mode: int) -> None:
    assert answer(tmp_path, GOOD) == Answer.SAVED
    (tmp_path / level).chmod(mode)
    assert heard(tmp_path) == Answer.NONE
    assert "not its user's alone" in why_unheard(str(tmp_path), "7_2", ME)


@pytest.mark.parametrize("level", [".slurm-fair", ".slurm-fair/7_2"])
def test_no_link_is_followed_at_any_level(tmp_path: Path, level: str) -> None:
    assert answer(tmp_path, GOOD) == Answer.SAVED
    (tmp_path / level).rename(tmp_path / "elsewhere")
    (tmp_path / level).symlink_to(tmp_path / "elsewhere")
    assert heard(tmp_path) == Answer.NONE


def test_a_folder_without_an_answer_yet_could_be_read(tmp_path: Path) -> None:
    folder_of(tmp_path)
    assert why_unheard(str(tmp_path), "7_2", ME) == ""
    assert heard(tmp_path) == Answer.NONE


@pytest.mark.parametrize(
    ("work_dir", "user", "why"),
    [
        ("/nonexistent", ME, "there is no /nonexistent"),
        ("/dev/null", ME, "/dev/null is no folder"),
        ("", ME, "its working folder is not known"),
        ("here", ME, "its working folder is not known"),
        ("/tmp", "no-such-user", "does not know the user"),
    ],
)
def test_it_is_said_why_no_answer_could_be_read(work_dir: str, user: str, why: str) -> None:
    assert why in why_unheard(work_dir, "7_2", user)


@pytest.mark.parametrize(
    ("what", "first", "second", "meaning"),
    [
        ("newer state stored too", GOOD | {"step": 10}, GOOD | {"step": 11, "time": 1060.0}, Answer.SAVED),
        ("made up for", GOOD | {"saved": False}, GOOD | {"time": 1060.0}, Answer.SAVED),
        ("to a request repeated", GOOD | {"request": 1}, GOOD | {"request": 2, "time": 1060.0}, Answer.SAVED),
        ("by a later run", GOOD, GOOD | {"restart": 3, "time": 1060.0}, Answer.NONE),
    ],
)
def test_a_second_answer_takes_the_place_of_the_first(
    tmp_path: Path, what: str, first: object, second: object, meaning: int
) -> None:
    assert answer(tmp_path, first) != Answer.NONE
    assert answer(tmp_path, second) == meaning, what


@pytest.mark.parametrize("user", ["no-such-user", "", "a\x00b"])
def test_a_user_that_this_machine_does_not_know_gives_no_answer(tmp_path: Path, user: str) -> None:
    assert answer(tmp_path, GOOD, user=user) == Answer.NONE


def test_a_job_without_a_known_directory_is_not_looked_for_under_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answer(tmp_path, GOOD) == Answer.SAVED
    for unknown in ("", ".", "./"):
        assert read_acknowledgement(Asked(ME, unknown, "7_2", 2, ASKED, NOW)) == Answer.NONE


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000, "\ud800"])
def test_a_directory_with_an_impossible_name_is_no_answer(name: str) -> None:
    assert read_acknowledgement(Asked(ME, f"/nowhere/{name}", "7_2", 2, ASKED, NOW)) == Answer.NONE


@given(st.binary(max_size=300))
def test_no_content_breaks_the_reader(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        (folder_of(Path(place)) / "ack.json").write_bytes(content)
        assert heard(Path(place)) in (Answer.NONE, Answer.SAVED, Answer.NOT_SAVED)


@pytest.mark.parametrize(
    ("comment", "meaning"),
    [
        ("slurm_fair_ack:job=7_2,restart=2,saved=1,time=1001", Answer.SAVED),
        (
            "slurm_fair:v1,gate=hold slurm_fair_ack:job=7_2,restart=2,saved=0,time=1001.25,step=40",
            Answer.NOT_SAVED,
        ),
        ("slurm_fair_ack:job=7_2,restart=1,saved=1,time=1001", Answer.NONE),
        ("slurm_fair_ack:job=7_2,restart=2,saved=1,time=900", Answer.NONE),
        (
            "slurm_fair_ack:job=7_2,restart=2,saved=1,time=900 slurm_fair_ack:job=7_2,restart=2,saved=0,time=1001",
            Answer.NOT_SAVED,
        ),
        (
            "slurm_fair_ack:job=7_2,restart=2,saved=0,time=1001 "
            "slurm_fair_ack:job=7_2,restart=2,saved=1,time=1002",
            Answer.SAVED,
        ),
        ("slurm_fair_ack:job=7_2,restart=2,saved=yes,time=1001", Answer.NONE),
        ("slurm_fair_ack:job=7_2,restart=2,saved=1,time=1001,more=1", Answer.NONE),
        ("slurm_fair_ack:job=7_2,restart=2,saved=1,time=nan", Answer.NONE),
        ("xslurm_fair_ack:job=7_2,restart=2,saved=1,time=1001", Answer.NONE),
        ("slurm_fair_ack:restart=2,saved=1,time=1001", Answer.NONE),
        ("slurm_fair_ack:job=7,restart=2,saved=1,time=1001", Answer.NONE),
        ("slurm_fair_ack:job=7_2,restart=2,saved=1,time=99999999999", Answer.NONE),
        ("", Answer.NONE),
    ],
)
def test_the_newest_token_of_this_run_in_the_comment_is_the_answer(comment: str, meaning: int) -> None:
    assert read_comment(comment, Asked(ME, "", "7_2", 2, ASKED, NOW)) == meaning


@given(
    st.integers(0, 10**9 - 1),
    st.booleans(),
    st.floats(0, 1e10),
    st.none() | st.integers(0, 10**15),
    st.text(max_size=9),
)
def test_a_token_written_into_any_comment_is_read(
    restart: int, saved: bool, when: float, step: int | None, text: str
) -> None:
    tail = "" if step is None else f",step={step}"
    token = f"slurm_fair_ack:job=7_2,restart={restart},saved={int(saved)},time={when:.3f}{tail}"
    asked = Asked(ME, "", "7_2", restart, when, when)
    assert read_comment(f"{text} {token} {text}", asked) == (Answer.SAVED if saved else Answer.NOT_SAVED)
