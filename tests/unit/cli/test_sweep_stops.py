"""A sweep that is stopped, and runs that fail: what was done is kept, and the same command goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.cli.sweep import command
from tests.support import sweeps
from tests.support.command_line import call
from tests.support.simulations import made
from tests.support.sweeps import asked, file_of, here, interrupted, swept

__all__ = ["here"]
STATES = "select seed, state from runs order by seed"


@pytest.mark.usefixtures("here")
def test_a_run_that_fails_costs_its_row_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = made(tmp_path, jobs=6)
    with monkeypatch.context() as patch:
        patch.setattr(command, "simulated_metrics", sweeps.refuses)
        said = swept(trace, "--policy", "srtf", "--seed", "0-2")
    assert said.code == 1
    line = "failed: srtf, lease 900 s, load 1, seed 1: the dice fell badly"
    assert said.err.splitlines() == [
        line,
        f"{file_of(trace)}: 1 of 3 runs failed: the same command tries them again",
    ]
    assert said.out.splitlines()[-1] == line
    assert "2 (1 failed)" in said.out
    assert asked(file_of(trace), STATES) == [(0, "done"), (1, "failed"), (2, "done")]
    again = swept(trace, "--policy", "srtf", "--seed", "0-2")
    assert (again.code, again.err) == (0, f"{file_of(trace)}: 2 of 3 runs are there already\n")
    assert asked(file_of(trace), STATES) == [(0, "done"), (1, "done"), (2, "done")]
    assert asked(file_of(trace), "select distinct problem from runs") == [("",)]


def test_a_process_that_dies_takes_no_other_run_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = made(tmp_path, jobs=6)
    monkeypatch.setattr(command, "simulated_metrics", sweeps.dies)
    said = swept(trace, "--policy", "srtf", "--seed", "0-2", "--processes", "2")
    assert said.code == 1
    assert asked(file_of(trace), STATES) == [(0, "done"), (1, "failed"), (2, "done")]
    ((problem,),) = asked(file_of(trace), "select problem from runs where seed = 1")
    assert problem.endswith(
        "its process ended with code -9 before it was done: was there memory enough? try fewer --processes"
    )
    assert problem in said.err


def test_ctrl_c_leaves_a_file_that_can_be_read_and_gone_on_with(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=100)
    arguments = ("--policy", "astraea", "--seed", "0-2", "--lease", "60", "--processes", "1")
    code, err = interrupted(trace, *arguments)
    assert code == 130
    done = asked(file_of(trace), "select count(*) from runs")[0][0]
    assert 1 <= done < 3
    assert [line for line in err.splitlines() if line] == [
        f"{file_of(trace)}: {done} of 3 runs done and kept: the same command goes on",
        "slurm-fair: stopped",
    ]
    assert call("sweep", "table", str(file_of(trace))).code == 0
    again = swept(trace, *arguments)
    assert again.err.splitlines()[0] == f"{file_of(trace)}: {done} of 3 runs are there already"
    assert asked(file_of(trace), STATES) == [(0, "done"), (1, "done"), (2, "done")]
