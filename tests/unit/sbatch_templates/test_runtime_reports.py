"""Reports that travel in the job's own comment, where the controller does not see its files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurm_fair.slurm.reading.report_comments import read_report
from slurm_fair_templates import Options, wrap
from tests.support.job_runs import BASH, NOWHERE

SQUEUE = '#!/bin/sh\ncat "$HOME/comment"\n'
SCONTROL = '#!/bin/sh\nprintf "%s\\n" "${3#Comment=}" >"$HOME/comment"\necho "$3" >>"$HOME/calls"\n'
PROGRAM = f"""#!{sys.executable}
import sys, time
sys.path[:0] = {sys.path!r}
from slurm_fair import lease
lease.REPORT_SECONDS = 0.0
for step in range(1, 4):
    lease.report(step=step, steps=3, batch_size=8, loss=0.5, model="mine; rm -rf")
    time.sleep(SLEEP)
"""
HURRY = (
    ("every=60", "every=1"),
    ("slurm_fair_report_seconds=900", "slurm_fair_report_seconds=1"),
    ("sleep 5", "sleep 0.2"),
)


def run(folder: Path, reports: str, comment: str, sleep: float = 1.5) -> list[str]:
    """The words that scontrol was told in the life of a job that reports three steps."""
    bin_dir = folder / "bin"
    bin_dir.mkdir()
    for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
        (bin_dir / name).write_text(text)
        (bin_dir / name).chmod(0o755)
    (folder / "comment").write_text(comment + "\n")
    script = wrap(PROGRAM.replace("SLEEP", str(sleep)), (), Options(reports=reports), NOWHERE)
    for usual, quick in HURRY:
        assert usual in script
        script = script.replace(usual, quick)
    (folder / "batch").write_text(script)
    done = subprocess.run(
        [BASH, folder / "batch"],
        cwd=folder,
        env={"PATH": f"{bin_dir}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "HOME": str(folder)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def test_numbers_of_a_report_stand_in_the_comment_beside_the_users_words(tmp_path: Path) -> None:
    began = time.time()
    calls = run(tmp_path, "comment", "my own slurm_fair:v1,signal=USR2")
    assert len(calls) >= 2, "at first, and anew as it goes on"
    assert all(
        call.startswith("Comment=my own slurm_fair:v1,signal=USR2 slurm_fair_report:job=7,") for call in calls
    )
    assert all(call.count("slurm_fair_report") == 1 for call in calls), "each in the place of the last"
    said = read_report(calls[-1].removeprefix("Comment="), "7")
    assert {key: said[key] for key in ("restart", "steps", "batch_size")} == {
        "restart": 0,
        "steps": 3,
        "batch_size": 8,
    }
    assert said["step"] in (2, 3)
    assert isinstance(said["time"], float)
    assert began - 1 <= said["time"] <= time.time() + 1
    assert "rm -rf" not in calls[-1]
    assert not (tmp_path / ".slurm-fair" / "7" / ".comment").exists()


@pytest.mark.parametrize("reports", ["file", "none"])
def test_where_the_site_does_not_want_it_no_comment_is_touched(tmp_path: Path, reports: str) -> None:
    assert run(tmp_path, reports, "mine", sleep=0.7) == []
