"""The daemon publishes more than one tick: expected starts, past errors, jobs that ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.board.board import draw
from slurm_fair.board.estimates import NAME, Estimates
from slurm_fair.board.outlook import Outlook
from slurm_fair.board.publish import Publisher
from slurm_fair.model import Event
from slurm_fair.model.ids import pack
from tests.support.board_scene import NOW, TERM, recorded
from tests.support.outlook_play import RULES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "storage"
    path.mkdir(mode=0o750)
    return path


def test_the_published_board_has_expected_starts_and_how_far_off_the_last_ones_were(folder: Path) -> None:
    public = folder.parent / "public"
    public.mkdir(mode=0o755)
    outlook = Outlook(folder, lambda: RULES)
    ended = Event(NOW - 50, "finished", pack(77), "speech", 8, {"user": "sue", "end": NOW - 50, "had": 5.0})
    publisher = Publisher(str(public), lambda: False, [ended], outlook.board)
    publisher.publish(*recorded())
    board = json.loads((public / "board.json").read_text())
    rows = {row["job"]: row for row in board["jobs"]}
    assert NOW < rows["11"]["expected_start"] < NOW + 20 * TERM
    assert board["estimates"] == {}
    assert [job["job"] for job in board["finished"]] == ["77"]
    late = Event(rows["11"]["expected_start"] + 30, "started", pack(11), "vision", 2)
    record, standing = recorded(events=(late,), time=late.time)
    outlook.hear(record)
    summary = outlook.board(record, standing).estimates
    assert (summary["n"], summary["median_seconds"]) == (1, 30.0)


def test_what_was_said_outlives_the_daemon(folder: Path) -> None:
    outlook = Outlook(folder, lambda: RULES)
    starts = {row["job"]: row["expected_start"] for row in outlook.board(*recorded()).jobs}
    outlook.keep()
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600
    again = Estimates.read(folder / NAME)
    again.hear([Event(starts["11"] + 5, "started", pack(11), "vision", 2)])
    assert again.summary(starts["11"] + 5)["n"] == 1


def test_a_storage_that_takes_nothing_costs_no_tick(folder: Path) -> None:
    outlook = Outlook(folder / "absent", lambda: RULES)
    outlook.hear(recorded()[0])
    assert outlook.board(*recorded()).jobs


def test_a_board_without_a_forecast_tells_no_start() -> None:
    assert {row["expected_start"] for row in draw(*recorded()).jobs} == {None}
