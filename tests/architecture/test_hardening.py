"""The page on hardening names tests that are there."""

from __future__ import annotations

import re
from functools import cache

from tests.support.trees import ROOT

PAGE = ROOT / "docs" / "hardening.md"
ROWS = [
    row
    for row in PAGE.read_text().splitlines()
    if row.startswith("| ") and not row.startswith(("| finding", "| ---"))
]
_NAMED = re.compile(r"(tests/[\w/]+\.py)?(?:::)(test_\w+)|(tests/[\w/]+(?:\.py)?)")


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text()


def test_every_row_says_what_was_found_how_it_was_mended_and_by_which_test() -> None:
    assert len(ROWS) > 100
    for row in ROWS:
        found, mended, test = re.split(r"(?<!\\) \| ", row.strip("| "))
        assert found
        assert mended
        assert test != "-" or re.search(r"\bleft\b", f"{found} {mended}", re.IGNORECASE), found


def test_every_test_that_is_named_is_there() -> None:
    missing = []
    for row in ROWS:
        path = ""
        for file, name, alone in _NAMED.findall(re.split(r"(?<!\\) \| ", row)[2]):
            path = file or alone or path
            assert path, row
            if not (ROOT / path).exists():
                missing.append(path)
            elif name and f"def {name}" not in source(path):
                missing.append(f"{path}::{name}")
    assert not missing
