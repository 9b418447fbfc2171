"""The page of proofs says what the last whole run measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prove

A, B, C = ({"claim": claim, "goal": "0", "measured": "0"} for claim in "abc")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prove, "PAGE", tmp_path / "proofs.md")
    monkeypatch.setattr(prove, "slurm_version", lambda: "slurm 1")
    return tmp_path / "proofs.md"


def test_a_whole_run_leaves_only_what_it_proved_and_a_part_keeps_the_rest(page: Path) -> None:
    prove.write([A, B], [])
    prove.write([C], prove.known_rows())
    assert [row["claim"] for row in prove.known_rows()] == ["a", "b", "c"]
    prove.write([B], [])
    assert [row["claim"] for row in prove.known_rows()] == ["b"]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("-n 2 --dist load", False),
        ("", False),
        ("-n 2 tests/properties", True),
        ("tests/unit/test_prove.py::test_one", True),
        ("-k simulation", True),
        ("--part=0.1", True),
    ],
)
def test_tests_that_are_named_are_a_part(words: str, some: bool) -> None:
    assert prove.of_some(words.split()) is some
