"""Files of virtual counters say what their runs did, as those of real ones would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.demo.counters import leave_behind
from slurm_fair.demo.proofs import evidence
from slurm_fair.demo.scenario import STEP_SECONDS, DemoJob
from slurm_fair.sim import Run
from slurm_fair_templates.demo_counter import chain

JOB = DemoJob("a-01", "a", 1, 2, 0.0, 10)


def run(restarts: int, first: float, last: float, saved: float, word: str = "REQUEUED") -> Run:
    """A run from one step to another that saved one; a part of a step is work of it that is not done."""
    seconds = (steps * STEP_SECONDS for steps in (first, last, saved))
    resumed, reached, kept = seconds
    return Run(1, restarts, "a", "a", 2, 0.0, 1.0, ("n1", "n2"), resumed, 5.0, reached, kept, word)


def left(folder: Path, *runs: Run, job: DemoJob = JOB) -> dict[str, str]:
    """Names and texts of the files of the job."""
    leave_behind(job, runs, folder)
    return {path.name: path.read_text() for path in sorted((folder / job.name).iterdir())}


def result(folder: Path, *runs: Run) -> dict[str, object]:
    said: dict[str, object] = json.loads(left(folder, *runs)["result.json"])
    return said


def test_a_job_that_never_ran_leaves_empty_logs_and_no_result(tmp_path: Path) -> None:
    assert left(tmp_path) == {"steps.log": "", "starts.log": ""}


def test_each_step_and_each_start_is_a_line_of_the_log(tmp_path: Path) -> None:
    files = left(tmp_path, run(0, 0, 2, 2), run(3, 2, 4, 4))
    assert files["steps.log"] == "0 1\n0 2\n3 3\n3 4\n"
    assert files["starts.log"] == "0 n1 1.000 0\n3 n1 1.000 2\n"


def test_a_run_that_made_no_step_leaves_a_start_alone(tmp_path: Path) -> None:
    files = left(tmp_path, run(0, 0, 0, 0))
    assert (files["steps.log"], files["starts.log"]) == ("", "0 n1 1.000 0\n")


@pytest.mark.parametrize("reached", [1.999, 1.9999999, 2.0, 2.0000001, 2.9])
def test_a_step_counts_once_it_is_done_but_for_what_rounding_takes(reached: float, tmp_path: Path) -> None:
    steps = len(left(tmp_path, run(0, 0, reached, reached))["steps.log"].splitlines())
    assert steps == (1 if reached == 1.999 else 2)


def test_three_steps_of_a_fifth_of_a_second_are_three(tmp_path: Path) -> None:
    """0.1 + 0.2 + 0.3 is more than 0.6 in floats, and 3 * 0.2 is more than that."""
    assert 3 * STEP_SECONDS != 0.6
    short = Run(1, 0, "a", "a", 2, 0.0, 1.0, ("n1",), 0.0, 5.0, 0.6, 0.6, "REQUEUED")
    assert len(left(tmp_path, short)["steps.log"].splitlines()) == 3


def test_the_result_of_whole_work_is_that_of_a_counter_that_nobody_stopped(tmp_path: Path) -> None:
    assert result(tmp_path, run(0, 0, 4, 4), run(1, 4, 10, 10, "COMPLETED")) == {
        "steps": 10, "hash": chain(10), "restarts": 1, "executed_steps": 10, "lost_steps": 0,
    }  # fmt: skip


def test_steps_that_were_done_again_are_executed_twice_and_lost_once(tmp_path: Path) -> None:
    said = result(tmp_path, run(0, 0, 7, 4), run(1, 4, 10, 10, "COMPLETED"))
    assert (said["executed_steps"], said["lost_steps"], said["hash"]) == (13, 3, chain(10))


def test_a_run_that_goes_back_to_an_early_snapshot_is_right_all_the_same(tmp_path: Path) -> None:
    runs = run(0, 0, 3, 3), run(1, 3, 6, 6), run(2, 3, 10, 10, "COMPLETED")
    assert result(tmp_path, *runs)["hash"] == chain(10)


@pytest.mark.parametrize("first", [5, 9])
def test_a_run_that_goes_on_where_nothing_was_saved_has_another_hash(first: int, tmp_path: Path) -> None:
    said = result(tmp_path, run(0, 0, 7, 4), run(1, first, 10, 10, "COMPLETED"))
    assert said["steps"] == 10
    assert said["hash"] != chain(10)


@pytest.mark.parametrize("word", ["CANCELLED", "NODE_FAIL", "FAILED", "REQUEUED", "completed", ""])
def test_only_a_run_that_ended_well_leaves_a_result(word: str, tmp_path: Path) -> None:
    assert "result.json" not in left(tmp_path, run(0, 0, 10, 10, word))


def test_a_job_that_ended_well_once_and_ran_again_has_no_result(tmp_path: Path) -> None:
    assert "result.json" not in left(tmp_path, run(0, 0, 10, 10, "COMPLETED"), run(1, 0, 2, 2))


def test_what_is_left_behind_is_what_the_proofs_read(tmp_path: Path) -> None:
    leave_behind(JOB, [run(0, 0, 4, 4), run(1, 4, 10, 10, "COMPLETED")], tmp_path)
    found = evidence(JOB, tmp_path)
    assert (found.right, found.repeated, found.starts) == (True, 0, (0, 1))


def test_each_job_has_a_folder_of_its_own_and_none_is_written_twice(tmp_path: Path) -> None:
    other = DemoJob("b-01", "b", 1, 2, 0.0, 10)
    left(tmp_path / "jobs", run(0, 0, 1, 1))
    left(tmp_path / "jobs", job=other)
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == {"a-01", "b-01"}
    with pytest.raises(FileExistsError):
        leave_behind(other, [], tmp_path / "jobs")
