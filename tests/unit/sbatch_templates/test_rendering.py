"""Templates: recorded scripts, quoting, layers, and what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.errors import TemplateError
from slurm_fair_templates import (
    Options,
    parse_choices,
    render,
    split,
    submit_argv,
    wrap,
)
from slurm_fair_templates.quoting import shell
from slurm_fair_templates.rendering import interpreter
from tests.support import recorded

GOLDEN = Path(__file__).parents[2] / "golden" / "sbatch"
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


FULL = Options(
    signal="USR1",
    grace_seconds=300,
    gpus_choices=(1, 2, 4),
    gpus_reference=2,
    lr_rule="1=0.1,2=0.2,4=0.4",
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
        (
            "rendered-hold.sh",
            render("generic", "#SBATCH --gpus=1\npython train.py\n", Options(gate="hold"), search=NOWHERE),
        ),
    ],
)
def test_scripts_are_as_recorded_and_bash_reads_them(name: str, text: str) -> None:
    recorded.same(GOLDEN / name, text)
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


@pytest.mark.parametrize("gate", ["begin", "hold"])
@pytest.mark.parametrize(
    ("line", "sbatch", "gated"),
    [
        ("#SBATCH --cpus-per-task=4", {}, False),
        ("#SBATCH --gres=license:1", {"gpus": "0"}, False),
        ("#SBATCH --gres=gpu:a100:2", {}, True),
        ("#SBATCH --mem=1G", {"gpus-per-node": "1"}, True),
        ("#SBATCH --gpus=1", {"begin": "now+60"}, False),
    ],
)
def test_a_script_that_asks_for_no_gpus_is_kept_back_by_nothing_that_nobody_opens(
    gate: str, line: str, sbatch: dict[str, str], gated: bool
) -> None:
    text = render("generic", f"#!/bin/sh\n{line}\ntrue\n", Options(gate=gate), sbatch=sbatch, search=NOWHERE)
    ours = "#SBATCH --hold" if gate == "hold" else "#SBATCH --begin=now+"
    lines = [one for one in sbatch_lines(text) if one.startswith(ours) and not one.endswith("now+60")]
    assert bool(lines) == gated
    assert ("gate=" in text) == gated


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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTILE.map(lambda text: text.replace("\0", "").replace("\r\n", "\n")))
def test_a_script_cannot_end_its_own_quotation(text: str) -> None:
    script = f"#!/bin/sh\n{text}"
    wrapped = wrap(script, (), Options(), NOWHERE)
    kept = wrapped[wrapped.index("slurm_fair_text=") : wrapped.index("\nslurm_fair_keep_script\n")]
    done = subprocess.run(
        ["bash", "-c", f'{kept}\nprintf %s "$slurm_fair_text"'], capture_output=True, timeout=20, check=True
    )
    assert done.stdout.decode() == script.removesuffix("\n")


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
        {"lr_rule": "1=0"},
        {"lr_rule": "1=-0.1"},
        {"lr_rule": "1=1e999"},
        {"lr_rule": "1=."},
        {"lr_rule": "0=0.1"},
        {"lr_rule": "1=0.1,1=0.2"},
        {"lr_rule": "1=0.1\n"},
        {"app": "\0"},
    ],
)
def test_options_that_cannot_work_are_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(TemplateError, match=next(iter(bad)).replace("_", "-").removesuffix("-seconds")):
        Options(**bad)


@pytest.mark.parametrize(
    ("table", "sizes", "usual", "lacking"),
    [
        ("1=0.1,2=0.2", (1, 2), 2, ""),
        ("1=0.1,2=0.2", (), 4, ""),
        ("1=0.1,2=0.2", (1, 2, 4, 8), 2, "4, 8 GPUs: add 4=LR,8=LR"),
        ("1=0.1,4=0.2", (1, 2, 4), 2, "2 GPUs: add 2=LR"),
        ("linear", (1, 2, 4), 2, ""),
    ],
)
def test_a_table_of_learning_rates_has_one_for_each_size(
    table: str, sizes: tuple[int, ...], usual: int, lacking: str
) -> None:
    if not lacking:
        assert Options(lr_rule=table, gpus_choices=sizes, gpus_reference=usual).lr_rule == table
        return
    with pytest.raises(TemplateError, match=f"says no learning rate for {lacking}"):
        Options(lr_rule=table, gpus_choices=sizes, gpus_reference=usual)


def test_choices_are_numbers() -> None:
    assert parse_choices("1,2|8") == (1, 2, 8)
    assert parse_choices("") == ()
    with pytest.raises(TemplateError, match="numbers such as"):
        parse_choices("1,two")
