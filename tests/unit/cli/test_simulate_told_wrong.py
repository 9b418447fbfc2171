"""`--progress` and `--declared-error`: what policies are told changes, what is measured does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulations import HEADER, document, made, only, results, simulated, written
from tests.support.sweeps import asked, file_of, here, swept

__all__ = ["here"]
WRONG = ("--declared-error", "4", "--progress", "silent")


def test_they_change_policies_that_go_by_run_times_and_no_others(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=80)
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
    assert notes_of(trace, *WRONG) == [
        "no job reported its progress (--progress silent)",
        "10 jobs without declared_s: policies were told the true run time, made wrong by lognormal factors, "
        "sigma ln 4 (--declared-error 4) (--undeclared unknown tells them nothing)",
    ]


def notes_of(trace: Path, *arguments: str) -> list[str]:
    lines = simulated(trace, *arguments).out.splitlines()
    return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]


def test_a_trace_in_which_no_job_declares_has_none_declared_wrong(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    assert notes_of(trace, "--declared-error", "2", "--undeclared", "unknown")[0] == (
        "no job has a declared_s: --declared-error changes nothing"
    )
    one = written(tmp_path, "1,a,0,2,600,700", "2,a,0,2,600,", header=f"{HEADER},declared_s", name="one.csv")
    assert notes_of(one, "--declared-error", "2", "--undeclared", "unknown")[0] == (
        "declared run times were wrong by lognormal factors, sigma ln 2 (--declared-error 2)"
    )


@pytest.mark.usefixtures("here")
def test_a_sweep_says_the_same(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    said = [line for line in swept(trace, *WRONG).out.splitlines() if line.startswith("note: ")]
    assert [line.removeprefix("note: ") for line in said] == notes_of(trace, *WRONG)


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
