"""A published file that is none, or of an older daemon, is read with care."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.board.board import draw, read_board
from slurm_fair.board.health import read_health
from slurm_fair.errors import StoreError
from tests.support.board_scene import recorded


@pytest.mark.parametrize(
    "text",
    ["[]", "3", "null", '{"v": 1}', '{"v": 2}', "{", "[" * 100_000, '{"v": 1, "jobs": [3]}'],
)
def test_a_board_that_is_none_is_one_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "board.json"
    path.write_text(text)
    with pytest.raises(StoreError, match="not a board"):
        read_board(path)


@pytest.mark.parametrize(
    "change", [{"jobs": 3}, {"jobs": [{"job": "1"}]}, {"time": "x"}, {"gpus": []}, {"time": 1e999}]
)
def test_a_board_with_a_part_that_is_none_is_one_clear_error(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "board.json"
    path.write_text(json.dumps(draw(*recorded()).document() | change))
    with pytest.raises(StoreError, match="not a board"):
        read_board(path)


def test_a_board_of_an_older_daemon_is_read(tmp_path: Path) -> None:
    document = draw(*recorded()).document()
    for name in ("interval_seconds", "gpus", "finished", "estimates"):
        del document[name]
    added = ("can_be_asked", "start", "ends_by", "latest_start", "lease", "promised_nodes", "awaits", "asked")
    document["jobs"] = [{k: v for k, v in row.items() if k not in added} for row in document["jobs"]]
    path = tmp_path / "board.json"
    path.write_text(json.dumps(document))
    assert len(read_board(path).jobs) == 11


@pytest.mark.parametrize(
    "text", ["[]", "", "{", '{"v": 1, "state": "acting"}', '{"v": 1, "time": 1e99}', "[" * 9999]
)
def test_a_health_that_is_none_is_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "health.json"
    path.write_text(text)
    assert read_health(path) is None
    assert read_health(tmp_path / "absent") is None
