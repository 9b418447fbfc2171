"""The holders of GPUs, and those who get these, in the sentences that explain a wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.board.board import Board, draw
from slurm_fair.cli.table import instant
from slurm_fair_plugins.astraea import Astraea
from tests.support.board_reasons import full, short
from tests.support.board_scene import NOW, recorded


@pytest.fixture
def board() -> Board:
    return draw(*recorded(), policy=Astraea())


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({}, {}, "which cannot save and keep their GPUs until they end (limit {0})"),
        (
            {},
            {"ends_by": NOW + 60},
            "which cannot save and keep their GPUs until they end (the last limit {0})",
        ),
        ({}, {"ends_by": None}, "until they end (not all of them have a time limit)"),
        ({"ends_by": None}, {"ends_by": None}, "until they end (they have no time limit)"),
        ({}, {"latest_start": NOW}, "which cannot save, or not start again before their deadlines, and keep"),
        (
            {"latest_start": NOW},
            {"latest_start": NOW},
            "which cannot save and start again before their deadlines and",
        ),
    ],
)
def test_jobs_that_are_not_asked_are_told_with_the_last_limit_and_with_why(
    board: Board, one: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    third = next(row for row in board.jobs if row["job"] == "3")
    two = [{**third, **change, "job": name} for name, change in (("3", one), ("5", other))]
    jobs = (*(row for row in board.jobs if row["job"] != "3"), *two)
    limit = f"{instant(NOW + 1800)[11:]} (in 30 min)"
    said = " ".join(full(replace(board, jobs=jobs), "10"))
    assert words.format(limit) in said


def test_one_job_without_a_limit_is_told_as_one(board: Board) -> None:
    jobs = tuple({**row, "ends_by": None} if row["job"] == "3" else row for row in board.jobs)
    assert "keeps its GPUs until it ends (it has no time limit)" in " ".join(
        full(replace(board, jobs=jobs), "10")
    )


def test_gpus_go_to_several_jobs_which_are_owed_more(board: Board) -> None:
    whom = [{"job": name, "tenant": "speech"} for name in ("9", "10")]
    jobs = tuple({**row, "asked_for": whom} if row["job"] == "4" else row for row in board.jobs)
    assert short(replace(board, jobs=jobs), "4").endswith(
        "its GPUs go to jobs 9, 10 (speech), which are owed more"
    )
