"""docs/architecture.md names files that exist, and its table "Where is ..." names that they define."""

from __future__ import annotations

import re

import pytest

from tests.support.trees import ROOT

_PAGE = (ROOT / "docs" / "architecture.md").read_text()
_SECTION = _PAGE.partition("## Where is ...")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| (?!where is|---)(.+?) \| (.+) \|$", _SECTION, re.MULTILINE))
_FILE = re.compile(r"`([\w./-]+/[\w.-]+)`(?: \(((?:`\w+`(?:, )?)+)\))?")
_NAMED_FILE = re.compile(r"`([\w./-]+(?:/|\.(?:py|md|json|j2|cfg)))`")


def test_the_table_answers_what_newcomers_ask() -> None:
    assert len(ROWS) >= 19
    assert len(ROWS) == _SECTION.count("\n| ") - 2


@pytest.mark.parametrize("question", ROWS)
def test_an_answer_is_at_most_three_files_that_are_there_and_define_what_is_named(question: str) -> None:
    files = _FILE.findall(ROWS[question])
    assert 1 <= len(files) <= 3
    assert ROWS[question].count("/") == sum(path.count("/") for path, _ in files), "a path that is not read"
    for path, names in files:
        assert (ROOT / path).is_file(), path
        for name in re.findall(r"\w+", names):
            defines = rf"^\s*(?:def |class ){name}\b|^{name}\b.*="
            assert re.search(defines, (ROOT / path).read_text(), re.MULTILINE), f"{path}: {name}"


def test_every_file_and_folder_that_the_page_names_is_there_in_the_project_or_its_package() -> None:
    named = _NAMED_FILE.findall(_PAGE)
    assert len(named) > 60
    assert [
        path for path in named if not any((at / path).exists() for at in (ROOT, ROOT / "slurm_fair"))
    ] == []
