"""Rows of a trace that were left out, told on standard error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.trace import read_trace
from slurm_fair.trace.faults import Fault
from tests.support.simulations import written


@pytest.mark.parametrize(
    ("bad", "lines", "last"), [(0, 0, ""), (1, 1, "0"), (20, 20, "19"), (23, 21, "3 more bad rows")]
)
def test_the_first_twenty_are_listed_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: int, lines: int, last: str
) -> None:
    reading = read_trace(written(tmp_path, "1,a,0,1,60", header="job_id,tenant,submit_s,gpus,duration_s"))
    faults = tuple(Fault(f":{number}", "gpus", f"is \x1b[2J{number}") for number in range(bad))
    list_bad(Path("jobs.csv"), replace(reading, bad=faults))
    said = capsys.readouterr()
    assert said.out == ""
    assert "\x1b" not in said.err
    told = said.err.splitlines()
    assert len(told) == lines
    assert not told or told[-1].endswith(last)
    assert all(line.startswith("left out: ") for line in told)
