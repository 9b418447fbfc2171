"""Files published for users cannot be forged, say what is so, and cost little."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.board import publish
from slurm_fair.board.board import draw, read_board
from slurm_fair.board.health import NAME as HEALTH
from slurm_fair.board.health import DaemonState, Health, read_health
from slurm_fair.board.nameless import nameless
from slurm_fair.board.publish import Publisher, what_is_wrong
from slurm_fair.model import (
    Blocked,
    Event,
    JobState,
    LeasePhase,
    Leases,
    LeftAlone,
    Snapshot,
    Standing,
    TickRecord,
    Verdict,
)
from slurm_fair.model.ids import pack
from slurm_fair.output import Folder
from slurm_fair.slurm.privacy import hidden
from tests.support import board_scene
from tests.support.accounts import Account, ledger
from tests.support.builders import LeaseSpec, job, lease, leases, node, snapshot

NOW = 5000.0
RUNNING, GRANTED, REVOKING = LeasePhase.RUNNING, LeasePhase.GRANTED, LeasePhase.REVOKING
MALLORY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")


def seen(word: str = "x") -> Snapshot:
    """Three jobs; every text that names somebody, or that somebody else wrote, holds the word."""
    return snapshot(
        time=NOW,
        nodes={f"{word}-n1": 8, "n2": node(8, usable=False, why=f"DRAIN {word}")},
        left_alone=[LeftAlone("99", f"asks for {word}")],
        jobs=[
            job(
                1, gpus=4, tenant=f"{word}-a", user=f"{word}-u", state=JobState.RUNNING, on={f"{word}-n1": 4}
            ),
            job(
                2, gpus=2, tenant=f"{word}-b", user=f"{word}-v", blocked=Blocked.LIMIT, reason=f"{word}Reason"
            ),
            job(
                3, gpus=2, tenant=f"{word}-b", user=f"{word}-v", state=JobState.RUNNING, on={f"{word}-n1": 2}
            ),
        ],
    )


def tick(
    shown: Snapshot, held: Leases, asked_for: Mapping[int, tuple[int, ...]] | None = None
) -> tuple[TickRecord, Standing]:
    """The record of a tick, and what stood after it."""
    word = shown.nodes.names[0].partition("-")[0]
    said = [Verdict.KEEP] * len(shown.jobs)
    planned = board_scene.plan(shown, said, (f"job 3 of {word} keeps it",), note=f"{word} is odd")
    record = board_scene.tick(shown, planned, guard=word)
    books = ledger(shown, dict.fromkeys(shown.tenants.names, Account(had=10, owed=20)), {})
    return record, Standing(books, held, 7, asked_for=asked_for or {})


def held(*more: LeaseSpec, word: str = "x", end: float = 5400.0, restarts: int = 0) -> Leases:
    return leases(lease(1, {f"{word}-n1": 4}, end=end, restarts=restarts), *more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "published"
    made.mkdir(mode=0o755)
    return made


def files(folder: Path) -> dict[str, Any]:
    """The files there, without the board."""
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir() if path.name != "board.json"}


def shown_to_all(folder: Path) -> Publisher:
    return Publisher(str(folder), lambda: False)


# -- what it says ---------------------------------------------------------------------------------------------


def test_only_leases_that_run_are_published_as_lease_ends(folder: Path) -> None:
    promised = lease(2, {"n2": 2}, phase=GRANTED, end=5400)
    stopping = lease(3, {"x-n1": 2}, phase=REVOKING, end=4900)
    shown_to_all(folder).publish(*tick(seen(), held(promised, stopping, restarts=2)))
    assert files(folder) == {"1.json": {"v": 1, "restart": 2, "lease_end": 5400.0}}


def test_a_job_that_is_asked_reads_when_why_and_for_whom(folder: Path) -> None:
    stopping = lease(3, {"x-n1": 2}, phase=REVOKING, end=4900, asked=4901, restarts=1)
    shown_to_all(folder).publish(*tick(seen(), held(stopping), {pack(3): (pack(2),)}))
    asked = {"time": 4901.0, "why": "its lease is over", "for": [{"job": "2", "tenant": "x-b"}]}
    assert files(folder)["3.json"] == {"v": 1, "restart": 1, "asked": asked}


def test_where_slurm_hides_jobs_a_job_that_is_asked_reads_nothing_of_others(folder: Path) -> None:
    stopping = lease(3, {"x-n1": 2}, phase=REVOKING, end=4900, asked=4901)
    Publisher(str(folder), lambda: True).publish(*tick(seen(), held(stopping), {pack(3): (pack(2),)}))
    assert files(folder)["3.json"]["asked"] == {"time": 4901.0, "why": "its lease is over", "for": []}


def test_a_lease_without_an_end_is_not_told_as_one(folder: Path) -> None:
    shown_to_all(folder).publish(*tick(seen(), held(end=float("inf"))))
    assert files(folder)["1.json"] == {"v": 1, "restart": 0}


def test_a_file_follows_its_lease_and_goes_with_it(folder: Path) -> None:
    publisher = shown_to_all(folder)
    publisher.publish(*tick(seen(), held()))
    publisher.publish(*tick(seen(), held(end=6300.0, restarts=1)))
    assert files(folder)["1.json"] == {"v": 1, "restart": 1, "lease_end": 6300.0}
    publisher.publish(*tick(seen(), Leases.none()))
    assert files(folder) == {}


def test_a_job_that_ended_stays_on_the_board_and_an_earlier_daemons_too(folder: Path) -> None:
    ended = Event(
        NOW - 60, "finished", pack(4), "x-a", 2, {"user": "x-u", "state": "COMPLETED", "end": NOW - 60}
    )
    record, standing = tick(seen(), held())
    more = ended._replace(key=pack(5), time=NOW)
    publisher = Publisher(str(folder), lambda: False, [ended])
    publisher.publish(record._replace(events=(more,)), standing)
    finished = read_board(folder / "board.json").finished
    assert [(row["job"], row["user"], row["slurm_state"]) for row in finished] == [
        ("5", "x-u", "COMPLETED"),
        ("4", "x-u", "COMPLETED"),
    ]


@pytest.mark.parametrize(("hides", "why"), [(False, "job 7 of x-u"), (True, "")])
def test_whether_the_daemon_sees_is_published_too_also_before_a_look_was_good(
    hides: bool, why: str, folder: Path
) -> None:
    publisher = Publisher(str(folder), lambda: hides)
    blind = Health(NOW, 10.0, NOW - 60, DaemonState.BLIND, "job 7 of x-u")
    publisher.publish_health(blind)
    assert read_health(folder / HEALTH) == replace(blind, why="")  # Slurm has not been asked what it hides
    publisher.publish(*tick(seen(), held()))
    publisher.publish_health(blind)
    assert read_health(folder / HEALTH) == replace(blind, why=why)


def test_an_array_task_has_a_file_of_its_own(folder: Path) -> None:
    shown_to_all(folder).publish(*tick(seen(), held(lease(8, {"n2": 1}, task=5, end=5400))))
    assert set(files(folder)) == {"1.json", "8_5.json"}


def test_everybody_may_read_what_is_published_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        shown_to_all(folder).publish(*tick(seen(), held()))
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "1.json": 0o644,
        "board.json": 0o644,
    }
    assert read_board(folder / "board.json").find("1") is not None


# -- what it costs --------------------------------------------------------------------------------------------


def test_what_did_not_change_is_not_written_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, stopping = shown_to_all(folder), lease(3, {"x-n1": 2}, phase=REVOKING, asked=4901)
    publisher.publish(*tick(seen(), held(stopping)))
    written: list[str] = []
    put = Folder.put

    def noted(self: Folder, name: str, *rest: Any, **more: Any) -> None:
        written.append(name)
        put(self, name, *rest, **more)

    monkeypatch.setattr(Folder, "put", noted)
    publisher.publish(*tick(seen(), held(stopping)))
    assert [name for name in written if name != "board.json"] == []
    publisher.publish(*tick(seen(), held(stopping, lease(2, {"n2": 2}, end=5400))))
    assert [name for name in written if name != "board.json"] == ["2.json"]


def test_many_files_take_several_ticks_and_those_that_are_asked_come_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "_MOST_SECONDS", 0.0)  # one file a tick
    publisher, stopping = shown_to_all(folder), lease(3, {"x-n1": 2}, phase=REVOKING, asked=4901)
    publisher.publish(*tick(seen(), held(stopping)))
    assert set(files(folder)) == {"3.json"}
    publisher.publish(*tick(seen(), held(stopping)))
    assert set(files(folder)) == {"1.json", "3.json"}


def test_the_board_is_drawn_no_more_often_than_a_twentieth_of_the_time_allows(folder: Path) -> None:
    publisher = shown_to_all(folder)
    publisher.publish(*tick(seen(), held()))
    first = (folder / "board.json").stat().st_ino
    publisher.publish(*tick(seen(), held()))
    assert (folder / "board.json").stat().st_ino == first


# -- where ----------------------------------------------------------------------------------------------------


def test_without_a_folder_nothing_is_done() -> None:
    Publisher("", lambda: pytest.fail("Slurm was asked")).publish(*tick(seen(), held()))


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777, 0o757])
def test_a_folder_that_others_can_change_is_refused_with_one_warning(
    mode: int, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "log", logging.getLogger("of_this_test"))
    folder.chmod(mode)
    publisher = shown_to_all(folder)
    for _ in range(3):
        publisher.publish(*tick(seen(), held()))
    assert list(folder.iterdir()) == []
    (told,) = [record.getMessage() for record in caplog.records]
    assert f"others can change it (mode {mode:04o})" in told
    folder.chmod(0o755)
    publisher.publish(*tick(seen(), held()))
    assert set(files(folder)) == {"1.json"}


@needs_root
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    os.chown(folder, MALLORY, MALLORY)
    shown_to_all(folder).publish(*tick(seen(), held()))
    assert list(folder.iterdir()) == []
    assert what_is_wrong(folder.stat()).startswith("belongs to uid 65534")


@needs_root
@pytest.mark.parametrize("name", ["board.json", "1.json"])
def test_a_link_that_lies_in_the_folder_is_replaced_and_not_followed(
    name: str, folder: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    folder.chmod(0o777)
    subprocess.run(["ln", "-s", str(precious), f"{folder}/{name}"], check=True)
    os.lchown(folder / name, MALLORY, MALLORY)
    folder.chmod(0o755)
    shown_to_all(folder).publish(*tick(seen(), held()))
    assert precious.read_text() == "as it was"
    assert not (folder / name).is_symlink()
    assert json.loads((folder / name).read_text())["v"] == 1


def test_a_missing_folder_is_one_warning_and_is_filled_once_it_is_there(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "log", logging.getLogger("of_this_test"))
    folder.rmdir()
    publisher = shown_to_all(folder)
    for _ in range(3):
        publisher.publish(*tick(seen(), held()))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    folder.mkdir(mode=0o755)
    publisher.publish(*tick(seen(), held()))
    assert set(files(folder)) == {"1.json"}


def test_a_folder_that_was_made_anew_is_filled_anew(folder: Path) -> None:
    publisher = shown_to_all(folder)
    publisher.publish(*tick(seen(), held()))
    folder.rename(folder.with_name("old"))
    folder.mkdir(mode=0o755)
    publisher.publish(*tick(seen(), held()))
    assert {path.name for path in folder.iterdir()} == {"1.json", "board.json"}


def test_what_an_earlier_daemon_left_goes_and_what_is_not_ours_stays(folder: Path) -> None:
    for name in ("77.json", "78_3.json", ".slurm-fair-0123456789abcdef", "README", "notes.json"):
        (folder / name).write_text("{}")
    shown_to_all(folder).publish(*tick(seen(), held()))
    assert {path.name for path in folder.iterdir()} == {"1.json", "board.json", "README", "notes.json"}


def test_what_could_not_be_written_is_written_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, put = shown_to_all(folder), Folder.put

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Folder, "put", full)
    publisher.publish(*tick(seen(), held()))
    monkeypatch.setattr(Folder, "put", put)
    publisher.publish(*tick(seen(), held()))
    assert set(files(folder)) == {"1.json"}


# -- who may not be named -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hides"),
    [
        ("none", False),
        ("", False),
        ("reservations,cloud,events", False),
        ("jobs", True),
        ("accounts, usage", True),
        ("Users", True),
        ("nodes", True),
        ("all", True),
    ],
)
def test_the_words_of_private_data(words: str, hides: bool) -> None:
    assert bool(hidden(words)) is hides


@given(word=st.text("abcdefgh", min_size=6, max_size=12))
def test_where_slurm_hides_names_no_name_and_no_text_of_others_is_on_the_board(word: str) -> None:
    document = draw(*tick(seen(word), held(word=word))).document()
    assert word in json.dumps(document)
    assert word not in json.dumps(nameless(document))


def test_a_board_without_names_can_be_read_and_still_tells_a_job_its_numbers(folder: Path) -> None:
    Publisher(str(folder), lambda: True).publish(*tick(seen("hush"), held(word="hush")))
    board = read_board(folder / "board.json")
    row = board.find("1")
    assert row is not None
    assert (row["gpus"], row["state"], row["lease_end"]) == (4, "running", 5400.0)
    assert (row["user"], row["tenant"], row["slurm_reason"]) == ("", "", "")
    assert "PrivateData" in board.note
    assert "hush" not in (folder / "board.json").read_text()


def test_slurm_is_asked_now_and_then_and_a_change_is_taken_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [True, False]
    publisher = Publisher(str(folder), lambda: answers.pop(0))
    publisher.publish(*tick(seen("hush"), held(word="hush")))
    publisher.publish(*tick(seen("hush"), held(word="hush")))
    assert (len(answers), "hush" in (folder / "board.json").read_text()) == (1, False)
    monkeypatch.setattr(publish, "_ASK_AGAIN_SECONDS", 0.0)
    publisher._ask_at = 0.0
    publisher.publish(*tick(seen("hush"), held(word="hush")))
    assert "hush" in (folder / "board.json").read_text()
