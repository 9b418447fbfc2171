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
    width = max(len("Tenant"), len(shown))
    assert raw.getvalue().decode(written).splitlines() == [
        f"{'Tenant':<{width}}  GPUs",
        f"{shown:<{width}}     8",
        f"{'t3':<{width}}    16",
    ]
