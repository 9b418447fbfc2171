"""The files that daemon, dead-man and commands share."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.errors import StoreError
from slurm_fair.host.state_folder import (
    Heartbeat,
    Places,
    all_free_until,
    beat,
    last_beat,
    leave_no_daemon,
    not_yet_free,
)

BEAT = Heartbeat(7, 1000.0, 60.0, "hold", 990.0, "squeue does not answer")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.mark.parametrize("said", ["", "short", "\U0001f4a5" * 500, 'quo"te\\ \x1b', "\udcff" * 300])
def test_a_heartbeat_is_read_as_it_was_left_whatever_the_reason_why_the_daemon_is_blind(
    places: Places, said: str
) -> None:
    for _ in range(2):
        beat(places, replace(BEAT, blind=said))
        found = last_beat(places)
        assert found is not None
        assert (found.pid, found.time, found.limit_seconds, found.gate, found.seen) == (
            7,
            1000,
            60,
            "hold",
            990,
        )
        assert found.blind == (said if len(said) <= 120 else f"{said[:117]}...")


def test_a_heartbeat_is_its_users_alone_and_written_over_the_one_before(places: Places) -> None:
    beat(places, BEAT)
    first = places.heartbeat.stat()
    assert stat.S_IMODE(first.st_mode) == 0o600
    beat(places, replace(BEAT, time=2000.0, blind=""))
    second = places.heartbeat.stat()
    assert (first.st_ino, first.st_size, first.st_blocks) == (second.st_ino, second.st_size, second.st_blocks)
    assert [path.name for path in places.directory.iterdir()] == ["heartbeat.json"]


def test_a_heartbeat_of_an_older_version_is_one(places: Places) -> None:
    places.heartbeat.write_text(json.dumps({"pid": 3, "time": 5.0, "limit_seconds": 60.0, "gate": "begin"}))
    assert last_beat(places) == Heartbeat(3, 5.0, 60.0, "begin")


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "null", "[1]", "[" * 100_000, '{"pid": 1}', "\x00" * 2048,
        '{"pid": null, "time": null, "limit_seconds": null, "gate": null}',
        '{"pid": 1, "time": "now", "limit_seconds": 60, "gate": "begin"}',
        '{"pid": 1, "time": NaN, "limit_seconds": 60, "gate": "begin"}',
        '{"pid": 1, "time": 1e999, "limit_seconds": 60, "gate": "begin"}',
        '{"pid": 1, "time": true, "limit_seconds": 60, "gate": "begin"}',
        '{"pid": 1, "time": 1, "limit_seconds": 60, "gate": 7}',
        '{"pid": 1, "time": 1, "limit_seconds": 60, "gate": "begin", "more": 1}',
    ],
)  # fmt: skip
def test_what_is_no_heartbeat_is_none(places: Places, text: str) -> None:
    places.heartbeat.write_text(text)
    assert last_beat(places) is None
    beat(places, BEAT)
    assert last_beat(places) == BEAT


def test_a_heartbeat_is_never_written_through_a_link(places: Places, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    os.symlink(precious, places.heartbeat)
    with pytest.raises(StoreError, match=r"heartbeat\.json: cannot be written"):
        beat(places, BEAT)
    assert precious.read_text() == "mine"


def test_that_all_is_free_is_noted_before_the_heartbeat_goes(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.fail_open.touch()
    places.heartbeat.touch()

    def killed(path: Path) -> None:
        raise SystemExit(143)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(SystemExit):
            leave_no_daemon(places, 5.0)
    assert all_free_until(places) == 5.0
    assert leave_no_daemon(places, 7.0, [3]) == ""
    assert (all_free_until(places), not_yet_free(places)) == (7.0, (3,))
    assert not places.heartbeat.exists()
    assert not places.fail_open.exists()


def test_a_note_that_cannot_be_left_is_said_and_the_heartbeat_goes_all_the_same(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.heartbeat.touch()
    room: list[bool] = []  # which the files that go make

    def noted(places: Places, until: float, but: Collection[int]) -> bool:
        room.append(places.heartbeat.exists())
        return False

    monkeypatch.setattr("slurm_fair.host.state_folder.leave_all_free", noted)
    assert "slurm-fair fail-open" in leave_no_daemon(places, 5.0)
    assert room == [True, False]
    assert not places.heartbeat.exists()


def test_a_long_reason_is_cut_at_a_word(places: Places) -> None:
    beat(places, replace(BEAT, blind="the journal cannot be read: " * 6))
    found = last_beat(places)
    assert found is not None
    assert found.blind.endswith("read: the...")
