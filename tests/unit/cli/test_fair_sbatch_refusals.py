"""fair-sbatch refuses options that contradict each other, and names the one of ours that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_fair.cli.fair_sbatch import SiteGate, fair_sbatch, too_long


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in the working folder, of a site without a configuration."""
    (tmp_path / "s.sh").write_text("#!/bin/sh\n#SBATCH -G2\ntrue\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_FAIR_CONFIG", str(tmp_path / "slurm-fair.toml"))


def said(*words: str) -> tuple[int, str]:
    """The exit code of a submission that is only shown, and what is said of it."""
    done = CliRunner().invoke(fair_sbatch, ["--print", *words, "s.sh"], prog_name="fair-sbatch")
    return done.exit_code, done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--no-gate", "--gate-seconds", "5"], "--no-gate and --gate-seconds exclude each other"),
        (
            ["--saves-and-exits", "--checkpoint-command", "x"],
            "--saves-and-exits and --checkpoint-command exclude each other",
        ),
        (["--lr-rule", "linear"], "--lr-rule is for jobs of several sizes"),
        (["--gatesec", "5"], "no option --gatesec, here or of sbatch; did you mean --gate-seconds?"),
        (["--gate-sec", "5"], "did you mean --gate-seconds?"),
        (["--checkpoint-comand", "x"], "did you mean --checkpoint-command?"),
        (["--no-gates"], "did you mean --no-gate?"),
    ],
)
def test_a_contradiction_and_a_misspelt_option_are_one_line(words: list[str], line: str) -> None:
    code, complaint = said(*words)
    assert (code, complaint.count("\n")) == (2, 1)
    assert line in complaint


@pytest.mark.parametrize(
    "words",
    [
        ["--lr-rule", "fixed"],
        ["--lr-rule", "linear", "--gpus-choices", "1,2"],
        ["--saves-and-exits", "--pass-on", "none"],  # lease.py reads the request from a file
        ["--gatesec=5"],  # of a plugin, or sbatch says what is wrong
        ["--gra=5"],
        ["--account", "a"],
        ["--acco", "a"],
    ],
)
def test_what_is_no_contradiction_goes_on(words: list[str]) -> None:
    assert said(*words)[0] == 0


def test_of_a_grace_beyond_what_the_site_gives_it_is_said_what_counts() -> None:
    (note,) = too_long(SiteGate(max_grace=10.0), 356_400)
    assert note == "--grace: 356400 s are more than this site gives: 10 s count ([lease] max_grace)"
    assert too_long(SiteGate(max_grace=10.0), 10) == too_long(SiteGate(), 356_400) == ()
    assert too_long(SiteGate(max_grace=10.0), 120) == (), "nobody asked for the usual one"
