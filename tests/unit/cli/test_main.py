"""Every command says what it is for, and ends a mistake in one line with the right exit code."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from slurm_fair.cli.base import ended_in_one_line, our_version
from slurm_fair.cli.fair_sbatch import fair_sbatch
from slurm_fair.cli.main import _COMMANDS, cli, report_main
from slurm_fair.store import open_journal
from tests.support.command_line import Said, call

COMMANDS = sorted(_COMMANDS)


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    """A configuration whose storage is not there and whose Slurm has no commands."""
    path = tmp_path / "slurm-fair.toml"
    path.write_text(
        f'[storage]\ndir = "{tmp_path}/absent"\n[slurm]\nbin_dir = "{tmp_path}/empty"\ntimeout = 5\n'
    )
    return str(path)


def command(name: str) -> click.Command:
    """A command by its name."""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_a_command_is_for(name: str) -> None:
    said = call(name, "--help")
    assert (said.code, said.err) == (0, "")
    purpose = (command(name).help or "").strip().splitlines()[0]
    assert len(purpose) > 15
    assert " ".join(purpose.split()[:4]) in " ".join(said.out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_says_what_it_is_for(name: str) -> None:
    dumb = [
        option.opts
        for option in command(name).params
        if isinstance(option, click.Option) and not (option.help or option.hidden)
    ]
    assert dumb == []


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_is_not_known_is_one_line_and_exit_code_2(name: str) -> None:
    said = call(name, "--no-such-option")
    assert said.code == 2
    assert said.complaint.startswith("slurm-fair: No such")


def test_the_list_of_commands_says_what_each_is_for() -> None:
    said = call("--help")
    assert (said.code, said.err) == (0, "")
    for name in COMMANDS:
        line = next(line for line in said.out.splitlines() if line.strip().startswith(f"{name} "))
        assert len(line.split()) > 3, line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plan"], 1, "not found"),
        (["status"], 3, "start the daemon"),
        (["queue"], 3, "start the daemon"),
        (["explain", "nonsense"], 2, "nonsense"),
        (["explain", "12"], 3, "start the daemon"),
        (["pause"], 3, "no such directory"),
        (["resume"], 3, "no such directory"),
        (["fail-open"], 3, "no such directory"),
        (["deadman", "--once"], 3, "no such directory"),
        (["report", "tenants"], 3, "start the daemon"),
        (["report", "export"], 3, "start the daemon"),
        (["check"], 1, "errors were found"),
        (["init", "--gate", "fence"], 2, "fence"),
        (["replay-tick", "1"], 3, "start the daemon"),
        (["staus"], 2, "did you mean 'status'"),
        (["zzzz"], 2, "slurm-fair --help"),
    ],
)
def test_a_mistake_is_one_line_with_the_right_exit_code(
    nowhere: str, arguments: list[str], code: int, words: str
) -> None:
    said = call("--config", nowhere, *arguments)
    assert words in said.complaint
    assert said.complaint.startswith("slurm-fair: ")
    assert said.code == code


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = call("--config", str(tmp_path / "gone.toml"), "status")
    assert (said.code, "gone.toml" in said.complaint) == (2, True)


def test_run_refuses_a_policy_that_is_not_there_before_it_opens_anything(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f'[policy]\nname = "astrea"\n[storage]\ndir = "{tmp_path}/absent"\n')
    said = call("--config", str(path), "run", "--once")
    assert (said.code, "astraea" in said.complaint) == (2, True)
    assert not (tmp_path / "absent").exists()


def program(*argv: str, tmp_path: Path) -> Said:
    """A real process, as a person starts it."""
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    return Said(done.returncode, done.stdout, done.stderr)


FAIR_SBATCH = (sys.executable, "-c", "from slurm_fair.cli import fair_sbatch_main; fair_sbatch_main()")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "no script given"),
        (["nowhere.sh"], 2, "nowhere.sh"),
        (["--checkpoint-signal", "KILL", "x.sh"], 2, "KILL"),
        (["--gpus-choices", "one", "x.sh"], 2, "one"),
        (["--template", "nosuch", "--wrap", "true"], 2, "nosuch"),
        (["--wrap", "true"], 1, "sbatch is not on the PATH"),
    ],
)
def test_fair_sbatch_ends_a_mistake_in_one_line(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "x.sh").write_text("#!/bin/bash\ntrue\n")
    said = program(*FAIR_SBATCH, *arguments, tmp_path=tmp_path)
    assert words in said.complaint
    assert said.complaint.startswith("fair-sbatch: ")
    assert (said.code, said.out) == (code, "")


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--usage"], ["-J", "x", "-h"]], ids=" ".join)
def test_fair_sbatch_says_what_it_is_for_and_what_each_option_does(tmp_path: Path, words: list[str]) -> None:
    said = program(*FAIR_SBATCH, *words, tmp_path=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert "Submit a batch script" in said.out
    assert all(option.help for option in fair_sbatch.params if isinstance(option, click.Option))


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_fair_sbatch_tells_its_version(tmp_path: Path, word: str) -> None:
    said = program(*FAIR_SBATCH, word, tmp_path=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"fair-sbatch, version {our_version()}\n"


def test_python_m_slurm_fair_is_the_same_command(tmp_path: Path) -> None:
    said = program(sys.executable, "-m", "slurm_fair.cli", "status", "--nope", tmp_path=tmp_path)
    assert (said.code, said.complaint) == (2, "slurm-fair: No such option '--nope'.")


@pytest.mark.parametrize("arguments", [[], ["report"], ["trace"]], ids=" ".join)
def test_a_command_without_arguments_prints_its_help_as_it_is(arguments: list[str]) -> None:
    said = call(*arguments)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[0].startswith(f"Usage: {' '.join(['slurm-fair', *arguments])} [OPTIONS]")
    assert len(said.out.splitlines()) > 10
    assert "\nCommands:\n" in said.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")
def test_a_report_for_whom_the_journal_is_closed_says_who_may_and_how(tmp_path: Path) -> None:
    """In a process of its own, which gives its rights away once everything is loaded."""
    storage = tmp_path / "s"
    open_journal(storage / "journal.db").close()
    os.chown(storage, 1, 1)
    for place in (tmp_path, *tmp_path.parents):
        if not place.stat().st_mode & 0o005:
            place.chmod(place.stat().st_mode | 0o055)
    config = tmp_path / "c.toml"
    config.write_text(f'[storage]\ndir = "{storage}"\n')
    script = (
        "import os, sys; from slurm_fair.cli.report import report; from slurm_fair.cli import main\n"
        f"os.setgid(65534); os.setuid(65534); sys.argv = ['x', '--config', {str(config)!r}, 'report', 'tenants']\n"
        "sys.exit(main())"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (1, "", 1)
    for words in (
        "which daemon and root read",
        "sudo -u daemon slurm-fair report tenants --html",
        "report export",
    ):
        assert words in said.stderr


def test_a_reader_that_went_away_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Gone())
    arguments = ["init", "--print"]
    code = ended_in_one_line(lambda: cli.main(arguments, prog_name="slurm-fair", standalone_mode=False))
    assert code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("slurm_fair.cli --help", 0),
        ("slurm_fair.cli queue --help", 0),
        ("slurm_fair.cli init --print", 0),
        ("slurm_fair.cli --config {config} check", 1),
    ],
)
def test_a_reader_that_goes_away_changes_no_exit_code(tmp_path: Path, words: str, code: int) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f'[slurm]\nbin_dir = "{tmp_path}"\n[storage]\ndir = "{tmp_path / "s"}"\n')
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", *words.format(config=config).split()]
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("words", "code"), [("--help", 0), ("--config {config} check", 1), ("explain one", 2), ("nosuch", 2)]
)
def test_a_standard_stream_that_is_closed_changes_no_exit_code(
    nowhere: str, closed: str, words: str, code: int
) -> None:
    line = f"exec {sys.executable} -m slurm_fair.cli {words.format(config=nowhere)} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr, "Error" in done.stderr) == (code, False, False)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--config {config} check", 1, "errors were found"),
        ("--config {config} status", 3, "no journal yet"),
        ("--config {config} report tenants --html page.html", 1, "the folder that this runs in was removed"),
        ("trace describe nosuch.csv", 2, "cannot be read"),
    ],
)
def test_in_a_folder_that_was_removed_a_command_ends_in_one_line(
    nowhere: str, tmp_path: Path, words: str, code: int, said: str
) -> None:
    command = f"{sys.executable} -I -m slurm_fair.cli {words.format(config=nowhere)}"
    line = f"mkdir gone && cd gone && rmdir ../gone && {command}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert said in done.stderr


def test_the_other_name_of_reports_tells_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["slurm-fair-acct", "--version"])
    with pytest.raises(SystemExit) as caught:
        report_main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"slurm-fair-acct, version {our_version()}\n"
