"""The suite promises new examples on demand, and golden files that nobody rewrites by accident."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import recorded

ROOT = Path(__file__).parents[3]
DRAWS = """
from hypothesis import given, strategies as st
import pathlib
@given(st.integers())
def test_draws(number):
    with pathlib.Path({drawn!r}).open("a") as file:
        file.write(f"{{number}} ")
"""


def drawn(folder: Path, *options: str) -> tuple[str, str]:
    """The examples that a property draws, and pytest's words, with this suite's settings."""
    (folder / "numbers").unlink(missing_ok=True)
    (folder / "test_one.py").write_text(DRAWS.format(drawn=str(folder / "numbers")))
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
        "test_one.py",
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "numbers").read_text(), done.stdout


def test_examples_are_the_same_each_time_new_when_asked_for_and_drawn_again_by_their_seed(
    tmp_path: Path,
) -> None:
    same, said = drawn(tmp_path)
    assert "examples: the same each time" in said
    assert drawn(tmp_path)[0] == same
    new, said = drawn(tmp_path, "--new-examples")
    seed = re.search(r"--hypothesis-seed=([0-9]+)", said)
    assert seed is not None
    assert new != same
    assert drawn(tmp_path, "--new-examples")[0] not in (same, new)
    again, said = drawn(tmp_path, f"--hypothesis-seed={seed[1]}")
    assert again == new
    assert f"drawn again by --hypothesis-seed={seed[1]}" in said


def test_a_golden_file_is_written_only_with_our_variable_and_then_nothing_counts_as_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "golden"
    file.write_text("old")
    monkeypatch.delenv(recorded.VARIABLE, raising=False)
    monkeypatch.setenv("RECORD", "1")
    with pytest.raises(AssertionError, match="make record"):
        recorded.same(file, "new")
    assert file.read_text() == "old"
    monkeypatch.setenv(recorded.VARIABLE, "1")
    with pytest.raises(pytest.skip.Exception, match="written anew"):
        recorded.same(file, "new")
    assert file.read_text() == "new"


@pytest.mark.parametrize("argv", [["make", "test"], ["make", "prove"], [".ci/run"]], ids=" ".join)
def test_what_compares_golden_files_refuses_to_write_them(argv: list[str]) -> None:
    env = {**os.environ, recorded.VARIABLE: "1"}
    if argv[0] == "make":
        argv = [*argv, "VENV=.", "STAMP="]  # nothing is installed
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "SLURM_FAIR_RECORD is set" in done.stdout + done.stderr
