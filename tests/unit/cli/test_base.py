"""Shared by all commands: which configuration is in force, and outcomes as one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest

from slurm_fair.cli import base
from slurm_fair.cli.base import (
    OneLineErrors,
    Site,
    complain,
    ended_in_one_line,
    find_config,
    make_directory,
    need_writable,
    open_site,
    site_of,
)
from slurm_fair.cli.main import cli
from slurm_fair.config.sections import Config
from slurm_fair.errors import ConfigError, InputError, NotHere, SlurmFairError, StoreError
from slurm_fair.host.state_folder import Places
from slurm_fair.store import open_journal

# -- the configuration ----------------------------------------------------------------------------------------


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual place of the configuration, where nothing lies yet; the environment names none."""
    place = tmp_path / "usual.toml"
    monkeypatch.setattr(base, "DEFAULT_PATH", place)
    monkeypatch.delenv("SLURM_FAIR_CONFIG", raising=False)
    return place


def test_an_option_goes_before_the_environment_and_that_before_the_usual_place(
    usual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_config(None) is None
    usual.write_text("")
    assert find_config(None) == usual
    assert find_config("") == usual
    monkeypatch.setenv("SLURM_FAIR_CONFIG", "named.toml")
    assert find_config(None) == Path("named.toml"), "whether it is there shows when it is read"
    assert find_config("given.toml") == Path("given.toml")
    monkeypatch.setenv("SLURM_FAIR_CONFIG", "")
    assert find_config(None) == usual


@pytest.mark.usefixtures("usual")
def test_without_any_file_the_defaults_hold() -> None:
    site = open_site(None)
    assert site.config == Config()
    assert site.places.directory == Path(Config().storage.dir)


def test_a_site_is_that_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[storage]\ndir = "{tmp_path / "kept"}"\n')
    assert open_site(str(file)).places.journal.parent == tmp_path / "kept"


def test_a_command_reads_its_configuration_once_and_those_below_it_share_it(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[policy]\nname = "las"\n')
    root = click.Context(click.Group("slurm-fair"))
    root.params["config"] = str(file)
    below = click.Context(click.Command("tenants"), parent=click.Context(click.Group("report"), parent=root))
    first = site_of(below)
    file.unlink()
    assert first.config.policy.name == "las"
    assert site_of(root) is first


# -- the journal and its folder -------------------------------------------------------------------------------


def test_a_journal_that_is_not_there_says_how_to_start_or_find_one(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NotHere, match=r"no journal yet: start the daemon with `slurm-fair run`, or name"):
            Site(Config(), Places(folder)).reader()


def test_a_journal_that_is_there_is_read(tmp_path: Path) -> None:
    places = Places(tmp_path / "s")
    open_journal(places.journal).close()
    with Site(Config(), places).reader() as journal:
        assert list(journal.events(0.0, 1e12)) == []


def test_the_folder_of_a_first_start_is_made_with_those_above_it_and_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_directory(folder)
    assert folder.stat().st_mode & 0o027 == 0
    make_directory(folder)


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_told_with_the_reason_and_a_cure(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(
        ConfigError, match=r"cannot be made \(.+\): make it \(mode 0750\) or set \[storage\] dir"
    ):
        make_directory(tmp_path / name)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_must_be_there_before_anything_is_switched(tmp_path: Path) -> None:
    need_writable(tmp_path)
    with pytest.raises(NotHere, match="no such directory, so no daemon runs here"):
        need_writable(tmp_path / "absent")


def test_what_lies_below_a_file_is_not_said_to_be_absent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not writable for you"):
        need_writable(tmp_path / "file" / "below")


# -- outcomes -------------------------------------------------------------------------------------------------


def raising(problem: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise problem

    return run


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (SlurmFairError("it failed"), 1, "slurm-fair: it failed"),
        (InputError("wrong\n  and\tlong"), 2, "slurm-fair: wrong and long"),
        (NotHere("nobody"), 3, "slurm-fair: nobody"),
        (click.UsageError("no\nsuch thing"), 2, "slurm-fair: no such thing"),
        (click.ClickException("odd"), 1, "slurm-fair: odd"),
        (click.Abort(), 130, "slurm-fair: stopped"),
        (KeyboardInterrupt(), 130, "slurm-fair: stopped"),
    ],
)
def test_an_outcome_that_a_person_can_cause_is_one_line_and_a_code(
    problem: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_in_one_line(raising(problem)) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{said}\n")


def test_a_wrong_use_is_told_by_the_program_that_was_called(capsys: pytest.CaptureFixture[str]) -> None:
    top = click.Context(click.Command("fair-sbatch"), info_name="fair-sbatch")
    below = click.Context(click.Command("x"), info_name="x", parent=top)
    assert ended_in_one_line(raising(click.UsageError("no script", below))) == 2
    assert capsys.readouterr().err == "fair-sbatch: no script\n"


@pytest.mark.parametrize("rest", [["report", "tenants"], ["report"], ["status"]])
def test_who_gives_the_configuration_to_a_command_is_told_where_it_goes(
    rest: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    args = [*rest, "--config", "x.toml"]
    code = ended_in_one_line(lambda: cli.main(args, prog_name="slurm-fair", standalone_mode=False))
    where = f"It goes before the command: slurm-fair --config FILE {' '.join(rest)}"
    assert (code, capsys.readouterr().err) == (2, f"slurm-fair: No such option '--config'. {where}\n")


def test_a_program_without_a_configuration_names_no_place_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    lone = click.Command("lone")
    run = partial(lone.main, ["--config", "x"], prog_name="lone", standalone_mode=False)
    assert ended_in_one_line(run) == 2
    assert capsys.readouterr().err == "lone: No such option '--config'.\n"


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1), (5, 5), ("words", 0)])
def test_a_command_that_ends_by_itself_says_its_code(result: object, code: int) -> None:
    assert ended_in_one_line(lambda: result) == code


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_an_output_that_nothing_more_fits_into_is_one_line(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it is replaced, and put back after the test
    assert ended_in_one_line(raising(OSError(number, os.strerror(number)))) == 1
    sys.stdout.close()
    assert capsys.readouterr().err == f"slurm-fair: the output cannot be written: {os.strerror(number)}\n"


@pytest.mark.parametrize(
    "problem", [OSError(errno.ENOSPC, "full", "a file"), OSError(errno.EBADF, "bad"), ValueError("ours")]
)
def test_a_fault_of_ours_is_not_hidden(problem: Exception) -> None:
    with pytest.raises(type(problem)):
        ended_in_one_line(raising(problem))


def test_a_problem_is_told_in_one_line_with_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(ConfigError("c.toml:3:\n    no such key")) == 2
    assert capsys.readouterr().err == "slurm-fair: c.toml:3: no such key\n"


# -- commands that are loaded when they are called --------------------------------------------------------------


def group() -> OneLineErrors:
    """A group of a command that is there, one that would be imported, and one that cannot be."""
    made = OneLineErrors(
        "top", lazy={"check": "slurm_fair.cli.check:check", "broken": "slurm_fair.nowhere:x"}
    )
    made.add_command(click.Command("here", callback=lambda: 7))
    return made


def test_commands_are_listed_in_the_order_given_without_being_imported() -> None:
    assert group().list_commands(click.Context(group())) == ["check", "broken", "here"]


def test_a_command_is_imported_when_it_is_asked_for() -> None:
    top = group()
    context = click.Context(top)
    check, here = top.get_command(context, "check"), top.get_command(context, "here")
    assert check is not None
    assert here is not None
    assert (check.name, here.name, top.get_command(context, "nosuch")) == ("check", "here", None)
    with pytest.raises(ModuleNotFoundError):
        top.get_command(context, "broken")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("chek", "top: no command 'chek'; did you mean 'check'?\n"),
        ("zzzz", "top: no command 'zzzz'; see slurm-fair --help\n"),
    ],
)
def test_a_mistyped_command_names_the_nearest_one(
    word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_in_one_line(lambda: group().main([word], "top", standalone_mode=False)) == 2
    assert capsys.readouterr().err == said


def test_the_result_of_a_command_is_its_code() -> None:
    assert ended_in_one_line(lambda: group().main(["here"], "top", standalone_mode=False)) == 7
