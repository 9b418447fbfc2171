"""fair-sbatch: what it tells a user of his job, and numbers that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.cli.fair_sbatch import NO_PROFILER, NOT_REQUEUED, TOO_BIG
from slurm_fair.slurm.reading.stamp import Stamp, read_stamp
from slurm_fair_templates import Options, gpus_asked, notes, notes_on_size, split, submit_argv


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`fair-sbatch WORDS` in a folder."""
    call = "from slurm_fair.cli import fair_sbatch_main; fair_sbatch_main()"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **more}
    return subprocess.run(
        [sys.executable, "-c", call, *words], cwd=folder, env=env, text=True, capture_output=True, check=False
    )


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ["--gpus", HUGE], ["-N", HUGE, "--gres=gpu:2"], [f"--gres=gpu:{HUGE}"], ["-n", HUGE, "--gpus-per-task=1"],
        ["-G1", f"--deadline=now+{HUGE}"], ["-G1", f"--deadline=uts{HUGE}"], ["-G1", f"--deadline={HUGE}"],
        ["-G1", f"--deadline={HUGE}:00"], ["-G1", f"--deadline=now+{HUGE}days"],
        ["-G1", "--deadline=now+60", "-t", HUGE], ["-G1", "--deadline=now+60", "-t", f"{HUGE}-1"],
        ["-G1", "--deadline=now+60", f"--time=1:{HUGE}:{HUGE}"],
    ],
)  # fmt: skip
def test_numbers_of_thousands_of_digits_go_on_to_sbatch_who_refuses_them(words: list[str]) -> None:
    argv = submit_argv(split(words), "#!/bin/sh\n", Options(), 1_800_000_000.0, {})
    assert argv[: len(words)] == tuple(words)


@given(
    st.sampled_from(("--gpus", "--nodes", "--gres", "--deadline", "--time", "--time-min", "--ntasks")),
    st.from_regex(
        r"(now\\+|uts|gpu:|[a-z]{0,3}[:=])?[0-9\u0660-\u0669]{0,30}([:-][0-9]{0,30}){0,3}(s|days)?",
        fullmatch=True,
    )
    | st.text(),
)
def test_no_word_for_sbatch_breaks_fair_sbatch(option: str, value: str) -> None:
    line = split([f"{option}={value}", "--gpus=1"])
    assert submit_argv(line, "#!/bin/sh\n", Options(), 1_800_000_000.0, {})[0] == f"{option}={value}"
    assert gpus_asked(line.options, {}) >= 1


@pytest.mark.parametrize(
    "words", [["--gpus-choices", HUGE], ["--lr-rule", f"{HUGE}=0.1"], ["--gpus-choices", "\u0663"]]
)
def test_a_number_of_ours_that_is_none_is_refused_in_a_line_of_some_length(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "train.sh").write_text("#!/bin/bash\n")
    done = run(tmp_path, *words, "train.sh")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 400


NO_GPUS, STAYS = "no GPUs are asked for", "never asked to give its GPUs back"


@pytest.mark.parametrize(
    ("words", "script", "environ", "said"),
    [
        (["-G1"], "", {}, []),
        ([], "#SBATCH --gres=gpu:1\n", {}, []),
        ([], "", {"SBATCH_GPUS": "2"}, []),
        ([], "", {}, [NO_GPUS]),
        (["-G1", "--no-requeue"], "", {}, [f"--no-requeue: the job is {STAYS}"]),
        (["-G1"], "#SBATCH --no-requeue\n", {}, [STAYS]),
        (["-G1", "--no-requeue", "--requeue"], "", {}, []),
        (["-G1", "--requeue"], "#SBATCH --no-requeue\n", {"SBATCH_NO_REQUEUE": "1"}, []),
        (
            ["-G1"],
            "#SBATCH --requeue\n",
            {"SBATCH_NO_REQUEUE": "1"},
            [f"SBATCH_NO_REQUEUE: the job is {STAYS}"],
        ),
        (["--no-requeue"], "", {}, [NO_GPUS, STAYS]),
    ],
)
def test_what_will_not_be_as_the_user_may_think_is_said_in_one_line_each(
    words: list[str], script: str, environ: dict[str, str], said: list[str]
) -> None:
    found = notes(split(words), f"#!/bin/sh\n{script}", environ)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def test_notes_stand_on_standard_error_and_the_job_is_submitted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("#!/bin/bash\n")
    done = run(tmp_path, "--print", "--no-requeue", "--gpus=1", "train.sh")
    assert done.returncode == 0
    options, note = done.stderr.splitlines()
    assert options.startswith("fair-sbatch: the script goes to: sbatch --no-requeue --gpus=1 --comment=")
    assert note.startswith("fair-sbatch: --no-requeue: ")
    assert "fair-sbatch:" not in done.stdout


def said_of(shown: str) -> str:
    """The lines on standard error without the options of sbatch, which stand first."""
    return shown.partition("\n")[2]


def test_a_job_asks_for_the_profiler_in_its_stamp() -> None:
    asked, usual = (str(Options(profile=profile).stamp("")) for profile in (True, False))
    assert asked == f"{usual},profile=1"
    assert [read_stamp(words) for words in (asked, usual)] == [
        Stamp(1, grace_seconds=120.0, profile=profile) for profile in (True, False)
    ]


@pytest.mark.parametrize(("enabled", "said"), [("true", ""), ("false", f"fair-sbatch: {NO_PROFILER}\n")])
def test_who_asks_a_site_without_a_profiler_is_told(tmp_path: Path, enabled: str, said: str) -> None:
    (tmp_path / "c.toml").write_text(f"[profiler]\nenabled = {enabled}\n")
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    config = {"SLURM_FAIR_CONFIG": str(tmp_path / "c.toml")}
    done = run(tmp_path, "--profile", "--gpus=1", "--time=10", "--print", "s.sh", **config)
    assert (done.returncode, said_of(done.stderr)) == (0, said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpus=4"], []),
        (["--gpus=5"], [TOO_BIG.format(asked="5 GPUs", most=4)]),
        (["--gpus=5", "--gpus-choices=1,5"], [TOO_BIG.format(asked="5 GPUs", most=4)]),
        (
            ["--gpus=4", "--no-requeue"],
            [NOT_REQUEUED, "--no-requeue: the job is never asked to give its GPUs back"],
        ),
    ],
)
def test_who_can_get_no_turn_of_the_profiler_is_told_at_once(
    tmp_path: Path, options: list[str], said: list[str]
) -> None:
    (tmp_path / "c.toml").write_text("[profiler]\nenabled = true\ngpus = 4\n")
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    config = {"SLURM_FAIR_CONFIG": str(tmp_path / "c.toml")}
    done = run(tmp_path, "--profile", *options, "--time=10", "--print", "s.sh", **config)
    lines = said_of(done.stderr).splitlines()
    assert (done.returncode, len(lines)) == (0, len(said))
    assert all(line.startswith(f"fair-sbatch: {each}") for line, each in zip(lines, said, strict=True))


@pytest.mark.parametrize(
    ("words", "script", "environ", "options"),
    [
        (["-G4"], "", {}, []),
        (["-G4", "--cpus-per-gpu=2"], "", {}, ["--cpus-per-gpu"]),
        (["-n4"], "#SBATCH --gpus-per-task=1\n", {}, ["--gpus-per-task"]),
        (["-G4"], "", {"SBATCH_CPUS_PER_GPU": "2"}, ["SBATCH_CPUS_PER_GPU"]),
    ],
)
def test_options_that_keep_a_job_of_several_sizes_at_one_are_named(
    words: list[str], script: str, environ: dict[str, str], options: list[str]
) -> None:
    said = notes_on_size(split(words), f"#!/bin/sh\n{script}", environ)
    assert [note.partition(": ")[0] for note in said] == options
