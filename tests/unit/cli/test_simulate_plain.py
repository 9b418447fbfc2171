"""`--plain`: some jobs cannot save; the result says how many, and a wrong value is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulations import document, made, results, simulated
from tests.support.sweeps import here, swept

__all__ = ["here"]


def test_the_result_says_how_many_and_other_policies_follow_them(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=80)
    options = document(trace, "--plain", "0.5")["options"]
    assert options["jobs_plain"] == pytest.approx(40, abs=2)  # a half of each tenant's, rounded
    assert "jobs_plain" not in document(trace)["options"]
    said = f"{options['jobs_plain']} jobs cannot save (--plain): each starts only within"
    assert said in simulated(trace, "--plain", "0.5").out
    all_save, none_saves = (results(trace, "--plain", part)[0] for part in ("0", "1"))
    assert all_save["preemptions"] > none_saves["preemptions"] == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("x", "'x' is no part from 0 to 1: write such as 0.2,vision=1"),
        ("1.5", "'1.5' is no part from 0 to 1"),
        ("nan", "'nan' is no part from 0 to 1"),
        ("", "'' is no part from 0 to 1"),
        ("vision=", "'vision=' is no part from 0 to 1"),
        ("=1", "'=1' names no tenant"),
        ("0.1,0.2", "'0.2' is there twice"),
        ("t1=1,t1=0", "'t1=0' is there twice"),
        ("0.2,", "'' is there twice"),
        ("x" * 3000, "is no part from 0 to 1"),
        ("nobody=1", "--plain: the trace has no tenant 'nobody'; "),
    ],
)
def test_a_wrong_part_is_refused_in_one_line(given: str, words: str, tmp_path: Path) -> None:
    said = simulated(made(tmp_path, jobs=5), "--plain", given)
    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert said.err.count("\n") == 1
    assert len(said.err) < 300


@pytest.mark.usefixtures("here")
def test_a_sweep_is_of_one_part_however_it_is_written(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=10)
    assert swept(trace, "--policy", "fifo", "--plain", " 0.50").code == 0
    assert swept(trace, "--policy", "fifo", "--plain", "0.5").code == 0
    said = swept(trace, "--policy", "fifo", "--plain", "0.4")
    assert said.code == 2
    assert "with --plain 0.5, and this one is with --plain 0.4" in said.err
