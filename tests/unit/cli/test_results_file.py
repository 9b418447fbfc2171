"""The file of a sweep where several commands write it at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.results_file import About, ResultsFile
from slurm_fair.cli.sweep.task import Row
from slurm_fair.errors import InputError
from tests.support.command_line import call

ABOUT = About({"sha256": "a", "path": "t.csv", "jobs": 1}, {"gpus": 1}, {})
RUN = SweepRun("fifo", 900.0, 1.0, 0)
RUNS_EACH = 60


def row(jct: float) -> Row:
    account = {"tenant": "a", "had_gpu_seconds": 1.0, "owed_gpu_seconds": 1.0, "rho": 1.0}
    return {"jct_mean_s": jct, "tenants": [account]}


def write_many(path: Path, policy: str) -> None:
    """One command that makes the file, or finds it, and writes its runs as fast as it can."""
    with ResultsFile.to_write(path) as results:
        results.belong(ABOUT, {})
        for seed in range(RUNS_EACH):
            results.keep(
                SweepRun(policy, 900.0, 1.0, seed), row(float(seed)) | {f"{policy}_number": 1.0}, "1"
            )


def test_commands_that_make_and_write_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    policies = ("a", "b", "c")
    fork = multiprocessing.get_context("fork")
    commands = [fork.Process(target=write_many, args=(path, policy)) for policy in policies]
    for command in commands:
        command.start()
    for command in commands:
        command.join(60)
    assert [command.exitcode for command in commands] == [0, 0, 0]
    with ResultsFile.to_read(path) as results:
        assert len(results.done()) == len(policies) * RUNS_EACH


def test_a_failure_does_not_take_the_place_of_a_result(tmp_path: Path) -> None:
    with ResultsFile.to_write(tmp_path / "sweep.db") as results:
        results.belong(ABOUT, {})
        results.fail(RUN, "no room", "1")
        assert [each["state"] for each in results.rows()] == ["failed"]
        results.keep(RUN, row(5.0), "1")
        results.fail(RUN, "no room", "1")
        assert [(each["state"], each["jct_mean_s"]) for each in results.rows()] == [("done", 5.0)]


def test_runs_of_several_releases_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    with ResultsFile.to_write(path) as results:
        results.belong(ABOUT, {})
        for seed, version in enumerate(("0.1", "0.2", "0.2")):
            results.keep(SweepRun("fifo", 900.0, 1.0, seed), row(5.0), version)
    said = call("sweep", "table", str(path), "--metric", "jct_mean_s")
    assert said.code == 0
    assert "note: the runs are of several releases: 0.1 (1 run), 0.2 (2 runs)" in said.err


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder: name the file of a sweep"):
        ResultsFile.to_read(tmp_path)
