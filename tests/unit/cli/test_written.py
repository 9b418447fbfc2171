"""Option values that a function reads out of their text."""

from __future__ import annotations

import click
import pytest

from slurm_fair.cli.written import Written, each_once


def test_a_text_is_read_and_a_value_stays() -> None:
    number = Written("N", int)
    assert number.name == "N"
    assert number.convert("7", None, None) == 7
    assert number.convert(8, None, None) == 8


def test_a_list_keeps_its_order_and_names_what_is_there_twice() -> None:
    assert each_once("3,1", [3, 1]) == (3, 1)
    with pytest.raises(click.BadParameter, match=r"'1,3,2,3': 3 is there twice: keep one of them"):
        each_once("1,3,2,3", [1, 3, 2, 3])
    with pytest.raises(click.BadParameter, match="own is there twice"):
        each_once("own,own", [None, None])
