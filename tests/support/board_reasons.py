"""The sentences that a person reads on one job of the board of `board_scene`."""

from __future__ import annotations

from slurm_fair.board.board import Board
from slurm_fair.cli.reasons import Reasons
from tests.support.board_scene import NOW


def full(board: Board, label: str) -> list[str]:
    """All of them, as `explain` has them."""
    row = board.find(label)
    assert row is not None
    return Reasons(board, NOW).full(row)


def short(board: Board, label: str) -> str:
    """The one line of `queue`."""
    row = board.find(label)
    assert row is not None
    return Reasons(board, NOW).short(row)
