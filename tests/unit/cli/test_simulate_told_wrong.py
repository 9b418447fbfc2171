"""`--progress` and `--declared-error`: what policies are told changes, what is measured does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulations import document, made, only, results, simulated
from tests.support.sweeps import asked, file_of, here, swept

__all__ = ["here"]
WRONG = ("--declared-error", "4", "--progress", "silent")


def test_they_change_policies_that_go_by_run_times_and_no_others(tmp_path: Path) -> None:
    trace = made(tmp_path)
    true = results(trace, "--policy", "srtf,tiresias,fifo")
    wrong = results(trace, "--policy", "srtf,tiresias,fifo", *WRONG)
    assert [a == b for a, b in zip(true, wrong, strict=True)] == [False, True, True]
    assert wrong[0]["jct_mean_s"] > true[0]["jct_mean_s"]


def test_the_same_seed_gives_the_same_bytes_and_another_one_other_errors(tmp_path: Path) -> None:
    trace = made(tmp_path)
    one, two, other = (only(trace, "--policy", "srtf", *WRONG, "--seed", seed) for seed in ("1", "1", "2"))
    assert (one == two, one["jct_mean_s"] == other["jct_mean_s"]) == (True, False)


def test_the_result_says_so(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=10)
    options = document(trace, *WRONG)["options"]
    assert (options["progress"], options["declared_error"]) == ("silent", 4.0)
    usual = document(trace)["options"]
    assert (usual["progress"], usual["declared_error"]) == ("reported", 1.0)
    notes = [line for line in simulated(trace, *WRONG).out.splitlines() if line.startswith("note: ")]
    assert notes[0] == "note: no job reported its progress (--progress silent)"
    assert "sigma ln 4 (--declared-error 4)" in notes[1]
    assert "told the true run time, made wrong like the others" in notes[2]


@pytest.mark.parametrize("factor", ["0.5", "nan", "x", "1001", "-2"])
def test_a_factor_that_cannot_be_is_one_line(tmp_path: Path, factor: str) -> None:
    said = simulated(made(tmp_path, jobs=6), "--declared-error", factor)
    assert (said.code, f"'{factor}' is no factor from 1 to 1000" in said.complaint) == (2, True)


@pytest.mark.usefixtures("here")
def test_a_seed_of_a_sweep_draws_what_that_run_of_simulate_draws(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=20)
    assert swept(trace, "--policy", "srtf", "--seed", "0-1", *WRONG).code == 0
    runs = [run for (run,) in asked(file_of(trace), "select jct_mean_s from runs order by seed")]
    (repeated,) = document(trace, "--policy", "srtf", "--repeat", "2", *WRONG)["results"]
    assert runs[0] == repeated["jct_mean_s"]
    assert sum(runs) / 2 == pytest.approx(repeated["repeated"]["mean"]["jct_mean_s"], rel=1e-12)
    said = swept(trace, "--policy", "srtf")
    assert "with --declared-error 4.0, and this one is without" in said.complaint
