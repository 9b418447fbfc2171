"""A count of the plans that a daemon made since its start, and of those that failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.daemon.plan_tally import NAME, PlanTally, TallyKeeper
from slurm_fair.errors import SlurmFairError
from slurm_fair.model import TickRecord
from tests.support.board_scene import recorded


def tick(time: float, note: str = "") -> TickRecord:
    record, _ = recorded()
    return record._replace(time=time, plan=replace(record.plan, note=note))


def test_a_plan_with_a_note_is_no_plan_of_the_policys_own(tmp_path: Path) -> None:
    keeper = TallyKeeper(tmp_path, 900.0)
    for record in (tick(1000.0), tick(1010.0, "it was late"), tick(1020.0), tick(1030.0, "it raised\n")):
        keeper.hear(record)
    assert keeper.tally == PlanTally(900.0, 4, 2, "it raised", 1030.0)
    assert PlanTally.read(tmp_path / NAME) == keeper.tally


def test_it_is_written_once_a_minute_while_all_goes_well(tmp_path: Path) -> None:
    keeper = TallyKeeper(tmp_path, 900.0)
    for number in range(7):
        keeper.hear(tick(1000.0 + 10.0 * number))
    kept = PlanTally.read(tmp_path / NAME)
    assert kept is not None
    assert kept.made == 1
    keeper.hear(tick(1061.0))
    assert PlanTally.read(tmp_path / NAME) == keeper.tally


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    keeper = TallyKeeper(tmp_path / "gone", 900.0)
    with pytest.raises(SlurmFairError, match=r"plans\.json|gone"):
        keeper.hear(tick(1000.0))
    assert keeper.tally.made == 1


@pytest.mark.parametrize("text", ["", "[]", "{", '{"v": 1}', "[" * 100_000, '{"v": 1, "since": "x"}'])
def test_a_file_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert PlanTally.read(tmp_path / NAME) is None
