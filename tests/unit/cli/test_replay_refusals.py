"""`slurm-fair replay` of saved sacct files with runs that cannot be, or without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import call
from tests.support.pasts import run, saved


def test_a_run_that_ends_before_it_starts_is_a_bad_row(tmp_path: Path) -> None:
    path = saved(tmp_path / "sacct.txt", [run("1", 0, 0, 100), run("2", 0, 50, 10)])
    said = call("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo")
    assert (said.code, ":3: row: End: the run ends before it starts" in said.complaint) == (2, True)


def test_a_run_that_starts_before_its_submission_is_a_bad_row(tmp_path: Path) -> None:
    path = saved(tmp_path / "sacct.txt", [run("1", 0, 0, 100), run("2", 500, 50, 600)])
    options = ("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo")
    said = call(*options)
    assert (said.code, said.out) == (2, "")
    assert ":3: row: Start: the run starts before its job is submitted (" in said.complaint
    skipping = call(*options, "--skip-bad")
    assert (skipping.code, ":3: row: Start: " in skipping.err) == (0, True)


def test_a_requeued_job_whose_next_run_was_submitted_later_is_no_bad_row(tmp_path: Path) -> None:
    runs = [
        run("1", 0, 0, 100, state="REQUEUED"),
        run("1", 100, 130, 300),
        run("2", 5, 5, None, state="RUNNING"),
    ]
    path = saved(tmp_path / "sacct.txt", [*runs, run("3", 7, None, 9, state="CANCELLED by 0")])
    assert call("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo").code == 0


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([(0, None, None, "PENDING")], "no GPU job of it ever ran"),
        (
            [(0, 50, None, "RUNNING"), (0, 50, None, "RUNNING"), (0, None, None, "PENDING")],
            "no GPU job of it has ended yet, and it knows of no second that 2 jobs ran: give a longer history",
        ),
        ([(0, 0, 0, "FAILED")], "no GPU job of it ran for a second: give a longer history"),
    ],
)
def test_a_past_without_a_run_says_what_there_is(
    tmp_path: Path, runs: list[tuple[int, int | None, int | None, str]], words: str
) -> None:
    rows = [run(str(at), *known[:3], state=known[3]) for at, known in enumerate(runs, start=1)]
    path = saved(tmp_path / "sacct.txt", rows)
    said = call("replay", "--sacct", str(path), "--gpus", "8", "--policy", "fifo")
    assert (said.code, said.complaint.rstrip()) == (2, f"slurm-fair: {path}: {words}")
