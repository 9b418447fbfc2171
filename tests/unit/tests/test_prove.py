"""The page of proofs says what the last whole run measured."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import prove
from tests.support.proofs import joined, proved, proved_in_part

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
        ("tests/unit/tests/test_prove.py::test_one", True),
        ("-k simulation", True),
        ("--part=0.1", True),
    ],
)
def test_tests_that_are_named_are_a_part(words: str, some: bool) -> None:
    assert prove.of_some(words.split()) is some


def _run(folder: Path, *parts: str, breaks: str = "") -> list[dict[str, Any]]:
    """The notes of tests of three parts."""
    for part in parts:
        with suppress(ValueError), proved_in_part("b", "none", "{texts:,} of {parts}", part, 3) as figures:
            if part == breaks:
                raise ValueError
            figures["texts"] = 700
    return [json.loads(line) for line in (folder / "figures.jsonl").read_text().splitlines()]


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_FAIR_PROOFS", str(tmp_path))
    return tmp_path


def test_a_claim_of_several_tests_has_one_row_with_their_sum(noted: Path) -> None:
    proved("a", "0", "0")
    rows, broken = joined(_run(noted, "x", "y", "z"))
    assert [(row["claim"], row["goal"], row["measured"]) for row in rows] == [
        ("a", "0", "0"),
        ("b", "none", "2,100 of 3"),
    ]
    assert broken == set()


def test_a_claim_with_a_part_that_fails_or_did_not_run_has_no_row(noted: Path) -> None:
    assert joined(_run(noted, "x", "y")) == ([], set())
    assert joined(_run(noted, "z", breaks="z")) == ([], {"b"})


def test_a_part_that_fails_takes_away_the_row_of_an_earlier_run(
    page: Path, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove.write([A, B, C], [])

    def pytest_runs(command: list[str], env: dict[str, str], **more: Any) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("SLURM_FAIR_PROOFS", env["SLURM_FAIR_PROOFS"])
        _run(Path(env["SLURM_FAIR_PROOFS"]), "x", breaks="x")
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr("subprocess.run", pytest_runs)
    monkeypatch.setattr("sys.argv", ["prove", "-k", "x"])
    assert prove.main() == 1
    assert [row["claim"] for row in prove.known_rows()] == ["a", "c"]
