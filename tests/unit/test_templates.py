"""Templates, quoting, layers, sbatch's command line, the stamp and fair-sbatch itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import TemplateError
from slurm_fair_templates import (
    Options,
    Stamp,
    directives,
    gpus_asked,
    parse_choices,
    render,
    script_of_wrap,
    split,
    stamped,
    submit_argv,
    wrap,
)
from slurm_fair_templates.quoting import shell
from slurm_fair_templates.rendering import interpreter

GOLDEN = Path(__file__).parents[1] / "golden" / "sbatch"
RECORD = os.environ.get("SLURM_FAIR_RECORD") == "1"  # SLURM_FAIR_RECORD=1 pytest tests/unit/test_templates.py
NOWHERE = (Path("/nonexistent/user"), Path("/nonexistent/site"))
NOW = 1_700_000_000.0
SCRIPT = """#!/bin/bash -l
#SBATCH --job-name=vision
#SBATCH --gres=gpu:2   # two of them

# a comment
#SBATCH -t 10
srun python train.py "$@"
#SBATCH --hold
"""
HOSTILE = st.text(
    st.sampled_from("a \n\r\t'\"\\$`#{}%;|&<>*-=\u2028\x1b\x0b\x85é") | st.characters(codec="utf-8")
)


def golden(name: str, text: str) -> None:
    """Hold a text to its recorded file."""
    file = GOLDEN / name
    if RECORD:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), f"{file} differs; look, then record with SLURM_FAIR_RECORD=1"


FULL = Options(
    signal="USR1",
    grace_seconds=300,
    gpus_choices=(1, 2, 4),
    gpus_reference=2,
    lr_rule="1=0.1,2=0.2",
    app="sweep 1",
    checkpoint_command="touch 'my file'",
    pass_on="steps",
    exits_when_saved=True,
    lease_py="/opt/slurm fair/lease.py",
    publish_dir="/shared/leases",
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrapped.sh", wrap(SCRIPT, ["--lr", "0.1", "it's"], Options(), NOWHERE)),
        ("wrapped-with-every-option.sh", wrap("#!/usr/bin/env python3\nprint(1)", ["a\nb"], FULL, NOWHERE)),
        (
            "rendered.sh",
            render(
                "generic",
                "python train.py\n",
                Options(),
                sbatch={"gres": "gpu:4", "comment": "my own"},
                search=NOWHERE,
            ),
        ),
        ("rendered-hold.sh", render("generic", "python train.py\n", Options(gate="hold"), search=NOWHERE)),
    ],
)
def test_scripts_are_as_recorded_and_bash_reads_them(name: str, text: str) -> None:
    golden(name, text)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def sbatch_lines(script: str) -> list[str]:
    """The lines that sbatch would read options from."""
    head = re.split(r"\n(?!#|\s*\n)", script, maxsplit=1)[0]
    return [line for line in head.split("\n") if line.startswith("#SBATCH")]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_value_adds_a_line_or_an_option(app: str, argument: str, command: str) -> None:
    values = [text.replace("\0", "") for text in (app, argument, command)]
    plain = wrap(SCRIPT, ["x"], Options(app="x", checkpoint_command="x"), NOWHERE)
    hostile = wrap(SCRIPT, [values[1]], Options(app=values[0], checkpoint_command=values[2]), NOWHERE)
    assert hostile.count("\n") == plain.count("\n")
    assert sbatch_lines(hostile) == sbatch_lines(plain)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(HOSTILE.map(lambda text: text.replace("\0", "")), max_size=4))
def test_bash_reads_every_quoted_word_back(words: list[str]) -> None:
    script = "printf '%s\\0' _ " + " ".join(shell(word) for word in words)
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=20, check=True)
    assert done.stdout.decode().split("\0")[1:-1] == words


@pytest.mark.parametrize("value", ["x\n#SBATCH --uid=root", "a\rb", "a\0b"])
def test_the_value_of_a_directive_has_no_line_end(value: str) -> None:
    with pytest.raises(TemplateError, match="no line end") as caught:
        render("generic", "true", Options(), sbatch={"job-name": value}, search=NOWHERE)
    assert "\n" not in str(caught.value)


def submit(script: str) -> tuple[str, tuple[str, ...]]:
    """All that is done with a script."""
    argv = submit_argv(split(["s.sh"]), script, Options(), NOW, {})
    return wrap(script, (), Options(), NOWHERE), argv


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "first line must be #!"),
        ("python train.py\n", "first line must be #!"),
        ("#!/bin/sh\r\ntrue\r\n", "dos2unix"),
        ("#!/bin/sh\n\0", "zero byte"),
        ("#!/bin/sh\n#SBATCH --comment='open\n", "close the quotation"),
        ("#!/bin/sh\n#SBATCH hetjob\n", "heterogeneous"),
    ],
)
def test_scripts_that_sbatch_would_refuse_are_refused_in_one_line(script: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason) as caught:
        submit(script)
    assert "\n" not in str(caught.value)


def test_a_script_cannot_end_its_own_quotation(tmp_path: Path) -> None:
    script = "#!/bin/sh\necho whole\n"
    for _ in range(3):  # a script that holds the delimiter of the script before it
        (mark,) = re.findall(r"<<'(SLURM_FAIR_\w+)'", wrap(script, (), Options(), NOWHERE))
        script = f"#!/bin/sh\n: {mark}\n{mark}\necho whole\n"
    (mark,) = re.findall(r"<<'(SLURM_FAIR_\w+)'", wrap(script, (), Options(), NOWHERE))
    assert mark not in script


@pytest.mark.parametrize(
    ("first_line", "words"),
    [
        ("#!/bin/bash", ("/bin/bash",)),
        ("#! /bin/bash -l -x ", ("/bin/bash", "-l -x")),
        ("#!/usr/bin/env -S python3 -u", ("/usr/bin/env", "-S python3 -u")),
        ("echo no interpreter", ("/bin/bash",)),
    ],
)
def test_the_interpreter_line_is_read_as_the_kernel_does(first_line: str, words: tuple[str, ...]) -> None:
    assert interpreter(first_line + "\n") == words


def layers(tmp_path: Path, user: str = "", site: str = "") -> tuple[Path, Path]:
    """A user's and a site's folder with a template of one name each."""
    for name, text in (("user", user), ("site", site)):
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "mine.sbatch.j2").write_text(text)
    return tmp_path / "user", tmp_path / "site"


def test_a_users_template_stands_on_the_sites_and_that_on_ours(tmp_path: Path) -> None:
    site = "{% extends 'package/generic.sbatch.j2' %}{% block setup %}module load cuda{% endblock %}"
    user = (
        "{% extends 'site/mine.sbatch.j2' %}{% block setup %}{{ super() }}\nexport A={{ app }}{% endblock %}"
    )
    script = wrap("#!/bin/sh\ntrue\n", (), Options(template="mine", app="a b"), layers(tmp_path, user, site))
    assert "module load cuda\nexport A='a b'" in script
    assert "slurm_fair_main" in script


def test_a_template_that_forgets_to_quote_is_quoted_all_the_same(tmp_path: Path) -> None:
    folders = layers(tmp_path, "#SBATCH --job-name={{ app }}\necho {{ app ~ 'x' }}\n")
    text = render("mine", "true", Options(app="a\n#SBATCH --uid=0; rm"), search=folders)
    assert text == "#SBATCH --job-name=$'a\\012#SBATCH --uid=0; rm'\necho $'a\\012#SBATCH --uid=0; rmx'\n"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "unsafe|undefined"),
        ("{{ ''.__class__.__mro__ }}", "unsafe|undefined"),
        ("{{ directives.append(1) }}", "unsafe"),
        ("{{ forgotten }}", "'forgotten' is undefined"),
        ("line\n{% if %}", r"mine.sbatch.j2:2: Expected an expression"),
        ("{% include '../../etc/passwd' %}", "not found"),
    ],
)
def test_bad_templates_are_refused_in_one_line(tmp_path: Path, template: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason) as caught:
        wrap("#!/bin/sh\ntrue", (), Options(template="mine"), layers(tmp_path, template))
    assert "\n" not in str(caught.value)


def test_an_unknown_template_names_the_places() -> None:
    with pytest.raises(
        TemplateError, match=r"nosuch\.sbatch\.j2: not found in /nonexistent/user, /nonexistent/site"
    ):
        wrap("#!/bin/sh\ntrue", (), Options(template="nosuch"), NOWHERE)


@pytest.mark.parametrize(
    "bad",
    [
        {"template": "../x"},
        {"signal": "KILL"},
        {"gate": "wall"},
        {"pass_on": "all"},
        {"grace_seconds": 0},
        {"gate_seconds": -1},
        {"gpus_choices": (0,)},
        {"lr_rule": "cubic"},
        {"app": "\0"},
    ],
)
def test_options_that_cannot_work_are_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(TemplateError, match=next(iter(bad)).replace("_", "-").removesuffix("-seconds")):
        Options(**bad)


def test_choices_are_numbers() -> None:
    assert parse_choices("1,2|8") == (1, 2, 8)
    assert parse_choices("") == ()
    with pytest.raises(TemplateError, match="numbers such as"):
        parse_choices("1,two")


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
    assert stamped(comment, Stamp("USR2", 60)) == text


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
        "--gpus-choices=1,2",
        "--no-gate",
        "s.sh",
        "--app",
        "x",
    )
    assert (done.returncode, done.stdout) == (0, "Submitted batch job 5\n")
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv[:3] == ["-N", "2", "--weird=a b"]
    assert argv[3:] == [f"--comment={STAMP}", "--requeue", "--open-mode=append", "--job-name=s.sh"]
    script = (tmp_path / "script").read_text()
    assert '"$slurm_fair_script" --app x' in script
    assert "SLURM_FAIR_APP='my app'" in script
    assert "SLURM_FAIR_GPUS_REFERENCE=8" in script
    assert re.search(r"SLURM_FAIR_LEASE_PY=\S+/lease\.py\n", script)


def test_sbatchs_own_errors_and_exit_code_go_through(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n")
    done = fair_sbatch(tmp_path, "s.sh", STUB_CODE="42")
    assert (done.returncode, done.stderr) == (42, "sbatch: error: from sbatch itself\n")


def test_print_shows_the_script_and_submits_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/bash\n#SBATCH -G1\necho mine\n")
    done = fair_sbatch(tmp_path, "--print", "s.sh")
    assert done.returncode == 0
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH -G1\n")
    assert not (tmp_path / "argv").exists()


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_bytes(b"#!/bin/sh\necho '\xff\xfe'\n")
    assert fair_sbatch(tmp_path, "s.sh").returncode == 0
    assert b"echo '\xff\xfe'\n" in (tmp_path / "script").read_bytes()


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
        (["--gpus-choices=x", "s.sh"], "numbers such as"),
    ],
)
def test_wrong_use_ends_with_2_and_one_line(tmp_path: Path, words: list[str], reason: str) -> None:
    (tmp_path / "s.sh").write_text("#!/bin/sh\n")
    done = fair_sbatch(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.startswith("fair-sbatch: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "argv").exists()


@pytest.mark.parametrize("words", [["--checkpoint-signal=KILL", "s.sh"], ["--grace", "soon", "s.sh"]])
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
