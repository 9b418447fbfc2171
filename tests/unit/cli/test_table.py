"""Tables of commands."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from slurm_fair.cli.table import TextColumn, print_table


@pytest.mark.parametrize(
    ("encoding", "written", "shown"),
    [
        ("latin-1", "latin-1", "\\u65e5\\u672c"),
        ("utf-8", "utf-8", "\u65e5\u672c"),
        ("ascii", "utf-8", "\u65e5\u672c"),  # which click takes for a mistake
    ],
)
def test_columns_stand_below_each_other_where_names_are_escaped(
    encoding: str, written: str, shown: str
) -> None:
    raw = io.BytesIO()
    columns = [TextColumn("Tenant", "tenant"), TextColumn("GPUs", "gpus")]
    rows = [{"tenant": "\u65e5\u672c", "gpus": 8}, {"tenant": "t3", "gpus": 16}]
    with redirect_stdout(io.TextIOWrapper(raw, encoding=encoding)) as stream:
        print_table(columns, rows)
        stream.flush()
    columns_taken = 4 if shown == "\u65e5\u672c" else len(shown)  # two for each of these letters
    width = max(len("Tenant"), columns_taken)
    assert raw.getvalue().decode(written).splitlines() == [
        f"{'Tenant':<{width}}  GPUs",
        f"{shown}{' ' * (width - columns_taken)}     8",
        f"{'t3':<{width}}    16",
    ]


def test_names_stand_to_the_left_also_where_all_are_numbers_and_large_numbers_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns = [TextColumn("JobID", "job", is_name=True), TextColumn("Seconds", "seconds")]
    print_table(columns, [{"job": "7", "seconds": "1e+08"}, {"job": "12", "seconds": "900"}])
    assert capsys.readouterr().out.splitlines() == ["JobID  Seconds", "7        1e+08", "12         900"]
