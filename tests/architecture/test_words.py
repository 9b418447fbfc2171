"""The project's own words: one for each thing, nothing unfinished, and no machine but the reader's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.trees import named, ours, python

HERE = Path(__file__)
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".cfg",
    ".sh",
    ".j2",
    ".lua",
    ".c",
    ".h",
    ".yml",
    ".json",
    ".service",
    ".timer",
    "",
}
# Said otherwise here. Split, so that this very list is no find.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|\bfor n" r"ow\b(?! in\b)", re.ASCII)
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(work|home/[a-z]+|root)/\w|/tmp/(brief|venv|c_)")
OTHER_WORDS = {
    "slot": re.compile(r"(?<!no )(?<!No )(?<!\w)slots?(?![\w])(?!\s*=\s*True)", re.IGNORECASE),
    "worker": re.compile(r"\bclass \w*Worker|\bdef \w*worker", re.IGNORECASE),
}


def lines(path: Path) -> list[str]:
    """Its lines; none of a file that is no text."""
    try:
        return path.read_text().splitlines()
    except UnicodeDecodeError:
        return []


def found(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> list[str]:
    """The places at which a pattern occurs."""
    return [
        f"{named(path)}:{number}: {line.strip()[:80]}"
        for path in paths
        if path != HERE and path.suffix in TEXT
        for number, line in enumerate(lines(path), start=1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later() -> None:
    assert found(UNFINISHED, python()) == []


def test_no_path_of_the_machine_on_which_it_was_written_is_left() -> None:
    assert found(MACHINE_PATHS, ours()) == []


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_one_word_for_one_thing(word: str) -> None:
    mine = tuple(
        path for path in python() if named(path).startswith(("slurm_fair/", "plugins/", "accounting/"))
    )
    assert found(OTHER_WORDS[word], mine) == []
