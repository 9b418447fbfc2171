"""Rows that cannot be used are told in one line that cannot move a terminal's cursor."""

from __future__ import annotations

import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace.faults import BadCell, Fault, nearest_of, refuse, shown

FIRST = Fault(":12", "gpus", "'x' is no number")


def test_a_fault_names_the_file_the_place_and_the_column() -> None:
    assert FIRST.words("jobs.csv") == "jobs.csv:12: gpus: 'x' is no number"


def test_a_bad_cell_may_get_its_column_later() -> None:
    bad = BadCell("is empty", "gpus")
    assert (bad.what, bad.column, str(bad)) == ("is empty", "gpus", "is empty")
    assert BadCell("is empty").column == ""


def test_foreign_text_is_cut_short_and_made_printable() -> None:
    assert shown("a\x1b[2Jb") == "'a?[2Jb'"
    assert shown("x" * 60) == f"'{'x' * 60}'"
    assert shown("x" * 61) == f"'{'x' * 60}...'"


def test_the_nearest_name_is_asked_for_else_the_names_are_listed() -> None:
    assert nearest_of("gpu", ["gpus", "tenant"]) == "did you mean 'gpus'?"
    assert nearest_of("zzz", ["gpus", "ten\x1bant"], "found:") == "found: gpus, ten?ant"
    assert nearest_of("zzz", map(str, range(100))).endswith(" 38, 39")


def test_the_first_fault_is_refused_with_the_number_of_the_others() -> None:
    refuse("jobs.csv", [])
    with pytest.raises(InputError) as one:
        refuse("jobs.csv", [FIRST])
    assert str(one.value) == "jobs.csv:12: gpus: 'x' is no number (--skip-bad leaves bad rows out)"
    with pytest.raises(InputError) as three:
        refuse("jobs.csv", [FIRST, Fault(":13", "row", "x"), Fault(":14", "row", "x")], "mend them")
    assert str(three.value) == "jobs.csv:12: gpus: 'x' is no number (2 more bad rows follow; mend them)"
