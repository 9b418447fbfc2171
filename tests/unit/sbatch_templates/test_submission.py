"""sbatch's command line, the stamp and the gate, and fair-sbatch itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_fair.errors import TemplateError
from slurm_fair_templates import (
    Options,
    StampWords,
    directives,
    gpus_asked,
    script_hash,
    script_of_wrap,
    split,
    stamped,
    submit_argv,
)

NOW = 1_700_000_000.0
SCRIPT = """#!/bin/bash -l
#SBATCH --job-name=vision
#SBATCH --gres=gpu:2   # two of them

# a comment
#SBATCH -t 10
srun python train.py "$@"
#SBATCH --hold
"""


def named(words: list[str]) -> list[tuple[str, str | None]]:
    """Names and values of the options in a command line."""
    return [(option.name, option.value) for option in split(words).options]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-N2", "-n", "4", "s"], [("nodes", "2"), ("ntasks", "4")]),
        (["-HN2", "s"], [("hold", None), ("nodes", "2")]),
        (["-HN", "2", "s"], [("hold", None), ("nodes", "2")]),
        (["--comment=a b", "--begin", "now+1", "s"], [("comment", "a b"), ("begin", "now+1")]),
        (["--comm", "x", "--arr=1-3", "s"], [("comment", "x"), ("array", "1-3")]),
        (["--exclusive", "--nice=5", "-k", "s"], [("exclusive", None), ("nice", "5"), ("no-kill", None)]),
        (
            ["--from-a-plugin=3", "--flag-of-a-plugin", "s"],
            [("from-a-plugin", "3"), ("flag-of-a-plugin", None)],
        ),
        (["-b", "uts9", "-o", "-", "--", "s"], [("begin", "uts9"), ("output", "-")]),
    ],
)
def test_the_command_line_is_read_as_sbatch_reads_it(
    words: list[str], options: list[tuple[str, str | None]]
) -> None:
    assert named(words) == options
    assert split(words).script == "s"
    given_words = [word for option in split(words).options for word in option.words]
    assert given_words == [word for word in words if word not in ("--", "s")]


def test_what_follows_the_script_is_its_own() -> None:
    line = split(["-N1", "s.sh", "--comment=mine", "-H", "--"])
    assert (line.script, line.arguments) == ("s.sh", ("--comment=mine", "-H", "--"))
    assert split(["-N1"]).script is None


def test_directives_end_at_the_first_command() -> None:
    found = [(option.name, option.value) for option in directives(SCRIPT)]
    assert found == [("job-name", "vision"), ("gres", "gpu:2"), ("time", "10")]


GPU = "--gres=gpu:2"
STAMP = "slurm_fair:v1,signal=USR2,grace=120"
OURS = (f"--comment={STAMP},gate=uts1700001800", "--begin=uts1700001800", "--requeue", "--open-mode=append")


@pytest.mark.parametrize(
    ("what", "words", "script", "options", "argv"),
    [
        ("a GPU job is gated", [GPU, "s"], "", Options(), (GPU, *OURS, "--job-name=s")),
        (
            "a GPU job by its own lines too",
            ["d/s.sh"],
            "#SBATCH --gpus=1",
            Options(),
            (*OURS, "--job-name=s.sh"),
        ),
        (
            "under the hold gate it is held",
            ["-G1", "s"],
            "",
            Options(gate="hold"),
            (
                "-G1",
                f"--comment={STAMP},gate=hold",
                "--hold",
                "--requeue",
                "--open-mode=append",
                "--job-name=s",
            ),
        ),
        (
            "a job without GPUs is stamped, not gated",
            ["-n4", "s"],
            "",
            Options(),
            ("-n4", f"--comment={STAMP}", "--requeue", "--open-mode=append", "--job-name=s"),
        ),
        (
            "its user's begin time stands",
            [GPU, "-b", "now+9", "s"],
            "",
            Options(),
            (GPU, "-b", "now+9", f"--comment={STAMP}", "--requeue", "--open-mode=append", "--job-name=s"),
        ),
        (
            "so does a hold in its lines",
            [GPU, "s"],
            "#SBATCH -H",
            Options(),
            (GPU, f"--comment={STAMP}", "--requeue", "--open-mode=append", "--job-name=s"),
        ),
        (
            "a dependency is no wish of time",
            ["-d", "after:1", GPU, "s"],
            "",
            Options(),
            ("-d", "after:1", GPU, *OURS, "--job-name=s"),
        ),
        (
            "without a gate",
            [GPU, "s"],
            "",
            Options(gate="none", signal="USR1", grace_seconds=9),
            (
                GPU,
                "--comment=slurm_fair:v1,signal=USR1,grace=9",
                "--requeue",
                "--open-mode=append",
                "--job-name=s",
            ),
        ),
        (
            "what the user says of requeue, output and name stands",
            ["--no-requeue", "--open-mode=truncate", "-Jx", "s"],
            "",
            Options(),
            ("--no-requeue", "--open-mode=truncate", "-Jx", f"--comment={STAMP}"),
        ),
        (
            "the user's comment is kept, of the command line before that of the lines",
            ["--comment=mine and yours", "s"],
            "#SBATCH --comment=other\n#SBATCH --requeue",
            Options(),
            (
                "--comment=mine and yours",
                f"--comment=mine and yours {STAMP}",
                "--open-mode=append",
                "--job-name=s",
            ),
        ),
    ],
)
def test_sbatch_gets(
    what: str, words: list[str], script: str, options: Options, argv: tuple[str, ...]
) -> None:
    assert submit_argv(split(words), f"#!/bin/sh\n{script}\n", options, NOW, {}) == argv, what


def test_what_the_environment_asks_counts_as_asked() -> None:
    line, script = split(["s"]), "#!/bin/sh\n"
    environ = {"SBATCH_GPUS": "2", "SBATCH_OPEN_MODE": "truncate", "SBATCH_JOB_NAME": "x"}
    assert submit_argv(line, script, Options(), NOW, environ) == OURS[:3]
    assert submit_argv(line, script, Options(), NOW, {**environ, "SBATCH_NO_REQUEUE": "1"}) == OURS[:2]


def test_heterogeneous_command_lines_are_refused() -> None:
    with pytest.raises(TemplateError, match="heterogeneous"):
        split(["-N1", ":", "-N2", "s"])


def test_a_wrapped_command_is_a_script() -> None:
    line = split(["--wrap=echo $HOME", "-G1"])
    assert script_of_wrap(line) == "#!/bin/sh\necho $HOME\n"
    assert submit_argv(line, "#!/bin/sh\n", Options(), NOW, {}) == ("-G1", *OURS, "--job-name=wrap")
    assert script_of_wrap(split(["s"])) is None


@pytest.mark.parametrize(
    ("words", "gpus"),
    [
        (["-G4"], 4),
        (["--gpus=a100:4"], 4),
        (["--gpus=a100:4,h100:2"], 6),
        (["--gpus-per-node=2", "-N3"], 6),
        (["--gres=gpu:2", "-N2-4"], 4),
        (["--gres=gpu"], 1),
        (["--gres=shard:3,gpu:a100:2"], 2),
        (["--gres=gpu_mem:3"], 0),
        (["--gpus-per-task=1", "-n8"], 8),
        (["--tres-per-task=cpu=2,gres/gpu=2", "-n2"], 4),
        (["--tres-per-task=gres/gpu:a100:2"], 2),
        (["-N2"], 0),
    ],
)
def test_gpus_are_counted_from_the_options(words: list[str], gpus: int) -> None:
    assert gpus_asked(split([*words, "s"]).options, {}) == gpus


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("", "slurm_fair:v1,signal=USR2,grace=60"),
        ("my  own", "my  own slurm_fair:v1,signal=USR2,grace=60"),
        ("a slurm_fair:v1,gate=uts5 b", "a b slurm_fair:v1,signal=USR2,grace=60"),
        ("slurm_fair:rules", "slurm_fair:rules slurm_fair:v1,signal=USR2,grace=60"),
    ],
)
def test_the_stamp_stands_behind_the_users_own_words(comment: str, text: str) -> None:
    assert stamped(comment, StampWords("USR2", 60)) == text


STUB = """#!/bin/sh
cat >"$STUB_OUT/script"
for word; do printf '%s\\n' "$word"; done >"$STUB_OUT/argv"
echo "Submitted batch job 5"
echo "sbatch: error: from sbatch itself" >&2
exit ${STUB_CODE:-0}
"""


def fair_sbatch(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command, with a stub in sbatch's place."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "sbatch").write_text(STUB)
    (programs / "sbatch").chmod(0o755)
    call = (
        "import sys; from slurm_fair.cli.fair_sbatch import fair_sbatch; fair_sbatch(prog_name='fair-sbatch')"
    )
    return subprocess.run(
        [sys.executable, "-c", call, *words],
        cwd=folder,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "STUB_OUT": str(folder), "HOME": str(folder), **env},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_fair_sbatch_hands_sbatch_the_options_as_they_were_and_the_wrapped_script(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n#SBATCH --gres=gpu:4\ntrue\n")
    done = fair_sbatch(
        tmp_path,
        "-N",
        "2",
        "--app",
        "my app",
        "--weird=a b",
        "--gpus-choices=3-9:3",
        "--gres=gpu:3",
        "--no-gate",
        "s.sh",
        "--app",
        "x",
    )
    assert (done.returncode, done.stdout) == (0, "Submitted batch job 5\n")
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv[:4] == ["-N", "2", "--weird=a b", "--gres=gpu:3"]
    of_script = script_hash((tmp_path / "s.sh").read_text())
    comment = f"--comment={STAMP},gpus=3+6+9,script={of_script}"
    assert argv[4:] == [comment, "--requeue", "--open-mode=append", "--job-name=s.sh"]
    script = (tmp_path / "script").read_text()
    assert '"$slurm_fair_script" --app x' in script
    assert "SLURM_FAIR_APP='my app'" in script
    assert "SLURM_FAIR_GPUS_REFERENCE=6" in script, "as on the command line, not as in the script"
    assert re.search(r"SLURM_FAIR_LEASE_PY=\S+/lease\.py\n", script)


def test_the_stamp_names_the_script_and_neither_its_arguments_nor_its_options(tmp_path: Path) -> None:
    comments = []
    for name, text, words in (
        ("a.sh", "#!/bin/sh\n", ["-G1"]),
        ("b.sh", "#!/bin/sh\n", ["-G2"]),
        ("c.sh", "#!/bin/bash\n", []),
    ):
        (tmp_path / name).write_text(text)
        assert fair_sbatch(tmp_path, *words, "--no-gate", name, "--lr", name).returncode == 0
        comments += [
            word for word in (tmp_path / "argv").read_text().splitlines() if word.startswith("--comment")
        ]
    first, second, third = comments
    assert re.fullmatch(rf"--comment={re.escape(STAMP)},script=[0-9a-f]{{16}}", first)
    assert (first == second, first == third) == (True, False)


@pytest.mark.parametrize("said", ["0" * 15, "0" * 17, "g" * 16, "0123456789abcde\n"])
def test_a_hash_that_is_none_is_refused(said: str) -> None:
    with pytest.raises(TemplateError, match="script-hash"):
        Options(script_hash=said)


def test_sbatchs_own_errors_and_exit_code_go_through(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n")
    done = fair_sbatch(tmp_path, "s.sh", STUB_CODE="42")
    assert (done.returncode, done.stderr) == (42, "sbatch: error: from sbatch itself\n")


def test_print_shows_the_script_and_submits_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n#SBATCH -G1\necho mine\n")
    done = fair_sbatch(tmp_path, "--print", "s.sh")
    assert done.returncode == 0
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH -G1\n")
    assert "fair-sbatch:" not in done.stdout
    assert not (tmp_path / "argv").exists()


def test_print_shows_on_standard_error_the_options_with_which_it_would_be_submitted(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n#SBATCH -G1\n")
    words = ["--no-gate", "-t", "5", "--comment=it's\nmine", "--job-name=a b"]
    shown = fair_sbatch(tmp_path, "--print", *words, "s.sh").stderr
    assert re.fullmatch(r"fair-sbatch: the script goes to: sbatch [^\n]+\n", shown)
    (tmp_path / "try.sh").write_text(f"printf '%s\\n' {shown.partition(': sbatch ')[2]}")
    asked = subprocess.run(["bash", str(tmp_path / "try.sh")], capture_output=True, text=True, check=True)
    assert fair_sbatch(tmp_path, *words, "s.sh").returncode == 0
    assert asked.stdout == (tmp_path / "argv").read_text()


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_bytes(b'#!/bin/sh\necho "\xff\xfe"\n')
    assert fair_sbatch(tmp_path, "s.sh").returncode == 0
    assert b'echo "\xff\xfe"' in (tmp_path / "script").read_bytes()


@pytest.mark.parametrize(
    ("words", "env", "gate"),
    [
        ([], {}, r"--begin=uts\d+"),
        (["--gate-seconds", "60"], {}, r"--begin=uts\d+"),
        ([], {"SLURM_FAIR_GATE": "hold"}, r"--hold"),
    ],
)
def test_the_gate_is_the_sites(tmp_path: Path, words: list[str], env: dict[str, str], gate: str) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    assert fair_sbatch(tmp_path, *words, "-G1", "s.sh", **env).returncode == 0
    assert any(re.fullmatch(gate, word) for word in (tmp_path / "argv").read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no script given"),
        (["-N1"], "no script given"),
        (["absent.sh"], "absent.sh: No such file"),
        (["."], "Is a directory"),
        (["--wrap=true", "s.sh"], "exclude each other"),
        (["-N1", ":", "s.sh"], "heterogeneous"),
        (["--template=nosuch", "s.sh"], "not found in"),
        (["--grace=0", "s.sh"], "grace is 0, but must be at least 1 second"),
        (["--grace=99999999999999999999999", "s.sh"], "but must be at most 2592000 seconds"),
        (["--gpus-choices=x", "s.sh"], "numbers such as"),
        (["--gpus-choices=4-2", "s.sh"], "MIN-MAX or MIN-MAX:STEP"),
        (["--gpus-choices=2-8:0", "s.sh"], "MIN-MAX or MIN-MAX:STEP"),
        (["--gpus-choices=0,1", "--gpus=1", "s.sh"], "numbers from 1 up"),
        (["--gpus-choices=1-99999", "--gpus=1", "s.sh"], "at most 16 sizes, not 99999: give a larger step"),
        (["--gpus-choices=2-9:2", "--gpus=2", "s.sh"], "steps that end at 9; these end at 8"),
        (["--gpus-choices=1,2,4", "--gres=gpu:3", "s.sh"], "1,2,4, and the job asks for 3 GPUs"),
        (["--gpus-choices=1,2,4", "s.sh"], "jobs that ask for GPUs"),
        (["pipe"], "script: the first line must be #!"),
        (["/dev/zero"], "script /dev/zero: is longer than any script"),
    ],
)
def test_wrong_use_ends_with_2_and_one_line(tmp_path: Path, words: list[str], reason: str) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    os.mkfifo(tmp_path / "pipe")
    done = fair_sbatch(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.startswith("fair-sbatch: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "argv").exists()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("90", 90), ("5m", 300), ("1.5h", 5400), ("15:00", 900), ("1:00:30", 3630), ("0.2s", 1)],
)
def test_a_grace_is_written_as_slurm_or_people_write_durations(
    tmp_path: Path, said: str, seconds: int
) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    assert fair_sbatch(tmp_path, f"--grace={said}", "s.sh").returncode == 0
    assert f"grace={seconds}" in (tmp_path / "argv").read_text()


@pytest.mark.parametrize(
    "words", [["--checkpoint-signal=KILL", "s.sh"], ["--grace", "soon", "s.sh"], ["--grace", "nan", "s.sh"]]
)
def test_words_that_click_refuses_end_with_2(tmp_path: Path, words: list[str]) -> None:
    done = fair_sbatch(tmp_path, *words)
    assert done.returncode == 2
    assert "Invalid value" in done.stderr


def test_without_sbatch_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    done = fair_sbatch(tmp_path, "s.sh", PATH=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "sbatch is not on the PATH" in done.stderr


def test_help_names_every_option_that_is_promised(tmp_path: Path) -> None:
    done = fair_sbatch(tmp_path, "-N1", "--help")
    assert done.returncode == 0
    for option in ("--template", "--gpus-choices", "--app", "--checkpoint-signal", "--print", "--no-gate"):
        assert option in done.stdout
