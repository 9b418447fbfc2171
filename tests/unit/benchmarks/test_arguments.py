"""Arguments of the benchmarks: what cannot be measured is refused in one line, with exit code 2, at once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.arguments import count, known_page, lacking, number, page, whole
from benchmarks.fidelity_stage import WAYS
from benchmarks.fidelity_trace import planned

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
WRONG = {
    "traces that are not there": (
        ("estimator.py", "--traces", "{tmp}"),
        "has no sia_pollux_step_times.csv.gz",
    ),
    "traces that a page of speeds lacks": (
        ("speed.py", "--traces", "{tmp}"),
        "has no philly_sia_2week.csv.gz",
    ),
    "traces that one part lacks": (
        ("reproduce.py", "--traces", "{tmp}", "--parts", "shockwave"),
        "has no shockwave_120.csv.gz, shockwave_120_regimes.jsonl.gz",
    ),
    "a size of no trace": (
        ("reproduce.py", "--traces", "{tmp}", "--parts", "shockwave", "--sizes", "1"),
        "argument --sizes: invalid choice: 1",
    ),
    "a case that there is not": (("hops.py", "--cases", "zzz"), "no case begins with zzz; there are: "),
    "a page that is not there": (
        ("hops.py", "--write", "{tmp}/gone.md"),
        "gone.md', whose last section could be written anew",
    ),
    "a page in no folder": (("reproduce_hops.py", "--write", "{tmp}/gone/page.md"), "there is no folder"),
    "no job": (("astraea.py", "--jobs", "0"), "argument --jobs: '0' is no whole number above 0"),
    "recordings of other jobs": (
        ("fidelity.py", "--folder", "{tmp}/runs", "--jobs", "7"),
        "aligned-1/recording.json was recorded with other arguments",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_one_line_before_any_work(tmp_path: Path, wrong: str) -> None:
    run = tmp_path / "runs" / "aligned-1"
    run.mkdir(parents=True)
    jobs = [asdict(job) for job in planned(8, 220.0, 1.25, 1)]
    (run / "recording.json").write_text(json.dumps({"way": asdict(WAYS[0]), "jobs": jobs}))
    (script, *words), told = WRONG[wrong]
    command = [sys.executable, str(BENCHMARKS / script), *(word.format(tmp=tmp_path) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert told in done.stderr


def test_numbers_and_pages_are_what_they_should_be(tmp_path: Path) -> None:
    there = tmp_path / "page.md"
    there.touch()
    assert (count("3"), whole("0"), number("0.5")) == (3, 0, 0.5)
    assert page(str(there)) == known_page(str(there)) == there
    assert page(str(tmp_path / "new.md")) == tmp_path / "new.md"
    assert lacking(tmp_path, ["page.md"]) == ""
