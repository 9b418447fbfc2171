"""docs/slurm-facts.md and the comments that cite it agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.trees import ROOT, named, ours

PAGE = ROOT / "docs" / "slurm-facts.md"
_ROW = re.compile(r"^\| (?P<name>[a-z-]*[a-z]) \| (?P<fact>.+?\.) \| (?P<on>.+?) \| (?P<by>`.+`) \|$", re.M)
_CITED = re.compile(r"slurm-facts:\s+([a-z-]*[a-z])")
_BY_NUMBER = re.compile(r"\bfacts? [0-9]{1,2}\b|\(F[0-9]{1,2}\)")
TEXT = {".py", ".md", ".j2", ".lua", ".sh"}
ROWS = {match["name"]: match.groupdict() for match in _ROW.finditer(PAGE.read_text())}


def modules(name: str) -> list[str]:
    """Modules that a fact names."""
    return re.findall(r"`([^`]+)`", ROWS[name]["by"])


def others() -> list[Path]:
    """Files that may cite the page, without the page and this file."""
    return [path for path in ours() if path.suffix in TEXT and path not in (PAGE, Path(__file__))]


def test_each_row_of_the_page_is_read_and_each_fact_has_one_name() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| name |", "| --- |"))]
    assert len(ROWS) == len(rows) - len(heads) > 20


def test_every_fact_that_is_cited_is_on_the_page() -> None:
    cited = {
        (named(path), name) for path in others() for name in _CITED.findall(path.read_text(errors="replace"))
    }
    assert cited
    assert [place for place in cited if place[1] not in ROWS] == []


def test_no_fact_is_cited_by_a_number() -> None:
    product = [path for path in others() if path.suffix == ".py" and not named(path).startswith("tests/")]
    assert [named(path) for path in product if _BY_NUMBER.search(path.read_text())] == []


@pytest.mark.parametrize("name", ROWS)
def test_a_fact_names_modules_that_exist_and_one_of_them_cites_it(name: str) -> None:
    paths = [ROOT / module for module in modules(name)]
    assert paths
    assert all(path.is_file() for path in paths)
    assert any(name in _CITED.findall(path.read_text()) for path in paths), f"nobody cites {name}"
