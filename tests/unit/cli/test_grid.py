"""The runs of a sweep, and the options that list them."""

from __future__ import annotations

import click
import pytest

from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.cli.sweep.grid import Grid, SweepRun, lease_list, load_list, seed_list
from slurm_fair.ledger import LedgerSettings


def setup(lease: float | None) -> PolicySetup:
    return PolicySetup("fifo", {}, lease, 10.0, False, False, 0.0, 0, LedgerSettings())


def test_each_run_is_there_once_and_the_first_seed_comes_first() -> None:
    grid = Grid((None, 900.0), (0.5, 1.0), (0, 7))
    setups = [("astraea", setup(900.0)), ("astraea", setup(900.0)), ("fifo", setup(None))]
    cells = [cell for cell, _ in grid.cells(setups)]
    assert len(cells) == len(set(cells)) == 8
    assert [cell.seed for cell in cells] == [0] * 4 + [7] * 4
    assert cells[0] == SweepRun("astraea", 900.0, 0.5, 0)
    assert cells[0].name == "astraea, lease 900 s, load 0.5, seed 0"
    assert SweepRun("fifo", None, 1.0, 7).name == "fifo, lease never ends, load 1, seed 7"


def test_lists_are_read_in_the_order_in_which_they_are_written() -> None:
    assert lease_list("900, own,5m") == (900.0, None, 300.0)
    assert load_list("1,0.5") == (1.0, 0.5)
    assert seed_list("7,0-2") == (7, 0, 1, 2)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (load_list, "much", "is no list of loads from 0.001 to 1000"),
        (load_list, "0", "is no list of loads"),
        (load_list, "nan", "is no list of loads"),
        (seed_list, "9-2", "is no list of seeds: write 0,1,2 or 0-9"),
        (seed_list, "-1", "is no list of seeds"),
        (seed_list, "0-99999", "is more than 10000 seeds"),
        (seed_list, "1,1", "twice"),
        (lease_list, "0", "is no number of seconds above 0"),
    ],
)
def test_what_is_no_list_is_refused(read: object, text: str, words: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        read(text)  # type: ignore[operator]
    assert words in caught.value.message
