"""`benchmarks/simulate.py`: a wrong word or file is one line and exit code 2, and repeats count for each seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.simulate import HEADS, main, medians, options_of, rows_of
from slurm_fair.errors import InputError
from tests.support.simulations import written

WRONG = {
    "a trace that is not there": (("--trace", "{tmp}/gone.csv"), "gone.csv: cannot be read"),
    "a directory as trace": (("--trace", "{tmp}"), "cannot be read: Is a directory"),
    "a word as scale": (("--scale", "x"), "--scale: 'x' is no whole number above 0"),
    "a scale of nothing": (("--scale", "0"), "--scale: '0' is no whole number above 0"),
    "no repeat": (("--repeat", "0"), "--repeat: '0' is no whole number above 0"),
    "repeats below 0": (("--repeat", "-1"), "--repeat"),
    "no seed": (("--seeds", "0"), "--seeds: '0' is no whole number above 0"),
    "no job": (("--jobs", "0"), "--jobs: '0' is no whole number above 0"),
    "no GPU": (("--gpus", "0"), "--gpus: '0' is no whole number above 0"),
    "an empty policy": (("--policy", "fifo,"), "an empty name"),
    "an option that there is not": (("--polcy", "fifo"), "unrecognized arguments: --polcy fifo"),
    "an unknown policy": (("--trace", "{trace}", "--policy", "fifoo"), "did you mean 'fifo'?"),
    "a lease below 0": (("--trace", "{trace}", "--lease", "-1"), "--lease"),
    "a lease of 0": (("--trace", "{trace}", "--lease", "0"), "--lease"),
    "a cluster that is too small": (("--trace", "{trace}", "--gpus", "1"), "1 of 1 job wants more GPUs"),
    "wrong arguments": (("--trace", "{trace}", "--arguments=--no-such"), "--no-such"),
    "arguments that print no result": (("--trace", "{trace}", "--arguments=--help"), "give no --help"),
}


@pytest.mark.parametrize(("words", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_word_is_refused(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    trace = written(tmp_path, "1,a,0,2,10")
    with pytest.raises(InputError) as refused:
        main(["--repeat", "1", *(word.format(tmp=tmp_path, trace=trace) for word in words)])
    assert why in str(refused.value)


def test_the_program_ends_in_one_line() -> None:
    program = Path(__file__).parents[3] / "benchmarks" / "simulate.py"
    done = subprocess.run(
        [sys.executable, program, "--scale", "x"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_repeats_are_those_of_one_seed() -> None:
    options = options_of(["--seeds", "2", "--repeat", "1", "--jobs", "4", "--gpus", "16", "--policy", "fifo"])
    (line,) = medians(rows_of(options))
    assert line[HEADS.index("repeats")] == "1"
