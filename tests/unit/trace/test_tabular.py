"""Tables with a header: its columns are checked once, each row for its number of cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace.faults import Fault
from slurm_fair.trace.tabular import read_table


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_rows_are_told_by_their_line_and_blank_ones_are_none(tmp_path: Path) -> None:
    text = '\na, b\n1 ,2\n\n ,\n"3\n4",5\n6,7\n'
    with read_table(written(tmp_path, text), ("a",)) as table:
        assert table.columns == ("a", "b")
        assert list(table.rows) == [
            (":3", ["1", "2"]),
            (":5", ["", ""]),
            (":6", ["3\n4", "5"]),
            (":8", ["6", "7"]),
        ]


def test_a_row_of_another_width_costs_that_row(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1\n1,2\n1,2,3\n")
    with read_table(path, ()) as table:
        first, whole, last = table.rows
    assert first == Fault(":2", "row", "has 1 cells, the header 2: give one for each column")
    assert whole == (":3", ["1", "2"])
    assert isinstance(last, Fault)
    with read_table(path, (), cure=lambda columns: f"mend {columns[1]}") as table:
        assert next(table.rows) == Fault(":2", "row", "has 1 cells, the header 2: mend b")


def test_a_column_may_have_another_name(tmp_path: Path) -> None:
    with read_table(written(tmp_path, "A,b\n1,2\n"), ("a",), {"A": "a"}) as table:
        assert table.columns == ("a", "b")


def test_the_separator_of_sacct_quotes_nothing(tmp_path: Path) -> None:
    with read_table(written(tmp_path, 'a|b\n"1|2\n'), (), separator="|") as table:
        assert list(table.rows) == [(":2", ['"1', "2"])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header: its first line must name a, b"),
        ("a,c\n", ":1: no column b; the header needs a, b; found: c"),
        ("a,bb\n", ":1: no column b; the header needs a, b; did you mean 'bb'?"),
        ("a,b,a\n", ":1: 'a': the column is there twice: keep one of them"),
        ("a,,b\n", ":1: column 2 has no short name that can be printed"),
        (f"a,b,{'x' * 101}\n", ":1: column 3 has no short name"),
        ('a,b\n"1,2\n', ":2: row: not CSV"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as refused, read_table(written(tmp_path, text), ("a", "b")) as table:
        list(table.rows)
    assert words in str(refused.value)
