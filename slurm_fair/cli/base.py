"""Shared by all commands: finding the configuration, and errors as one line with a cure."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slurm_fair.cli.outlet import readers_may_leave
from slurm_fair.cli.stopping import code_and_words
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import DEFAULT_PATH, load_config
from slurm_fair.errors import ConfigError, NotHere, SlurmFairError, StoreError
from slurm_fair.host.state_folder import Places
from slurm_fair.suggest import did_you_mean

if TYPE_CHECKING:
    from slurm_fair.store import Reader

_FULL = (errno.ENOSPC, errno.EIO, errno.EDQUOT)


def our_version() -> str:
    try:
        return version("slurm_fair")
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True, slots=True)
class Site:
    """The configuration in force for this command."""

    config: Config
    places: Places

    def reader(self) -> Reader:
        """The journal, to read; only who reads one waits for its library."""
        from slurm_fair.store import open_reader

        if _is_absent(self.places.journal):
            raise NotHere(
                f"{self.places.journal}: no journal yet: start the daemon with `slurm-fair run`, "
                "or name the configuration it uses with --config"
            )
        if not os.access(self.places.journal, os.R_OK):
            raise StoreError(
                f"{self.places.journal}: you may not read it: run as the daemon's account or as root"
            )
        return open_reader(self.places.journal)


def find_config(given: str | None) -> Path | None:
    """--config, $SLURM_FAIR_CONFIG, or the usual place if a file is there."""
    named = given or os.environ.get("SLURM_FAIR_CONFIG")
    if named:
        return Path(named)
    return DEFAULT_PATH if os.path.exists(DEFAULT_PATH) else None


def configuration_read(context: click.Context | None) -> list[Path]:
    """The configuration of the running command, which no output may replace."""
    path = find_config(context.find_root().params.get("config") if context else None)
    return [path] if path else []


def open_site(given: str | None) -> Site:
    """The site of a command; without any file the built-in defaults hold."""
    path = find_config(given)
    config = load_config(path) if path else Config()
    return Site(config, Places(Path(config.storage.dir)))


def site_of(context: click.Context) -> Site:
    """The site of the running command."""
    found = context.find_root()
    if not isinstance(found.obj, Site):
        found.obj = open_site(found.params.get("config"))
    return found.obj


def complain(problem: SlurmFairError, program: str = "slurm-fair") -> int:
    """Say what is wrong on standard error and give the exit code."""
    _say(program, str(problem))
    return problem.exit_code


def _say(program: str, words: str) -> None:
    """One line on standard error, whatever line breaks there are in it."""
    click.echo(f"{program}: {' '.join(words.split())}", err=True)


class OneLineErrors(click.Group):
    """A group whose commands end our errors in one line, and load only when they are called."""

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were given."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command when it is asked for."""
        where = self._lazy.get(cmd_name)
        if where is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = where.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A mistyped command names the nearest one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx), "see slurm-fair --help")
            raise click.UsageError(f"no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


def ended_in_one_line(run: Callable[[], Any]) -> int:
    """Run a click command; every outcome a person can cause is a line and an exit code, never a traceback."""
    with readers_may_leave():
        return _code_of(run)


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _code_of(run: Callable[[], Any]) -> int:
    try:
        result = run()
    except SlurmFairError as problem:
        return complain(problem)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        return 0
    except click.UsageError as problem:
        program = problem.ctx.find_root().info_name if problem.ctx else None
        _say(program or "slurm-fair", f"{problem.format_message()}{_cure_of(problem)}")
        return 2
    except click.ClickException as problem:
        _say("slurm-fair", problem.format_message())
        return problem.exit_code
    except (click.Abort, KeyboardInterrupt) as problem:
        code, words = code_and_words(problem)
        with contextlib.suppress(OSError):  # a terminal that was closed
            _say("slurm-fair", words)
        return code
    except OSError as problem:
        if isinstance(problem, FileNotFoundError) and _is_nowhere():
            click.echo("slurm-fair: the folder that this runs in was removed: cd elsewhere first", err=True)
            return 1
        if problem.errno not in _FULL or problem.filename is not None:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  what was not written yet never will be
        click.echo(f"slurm-fair: the output cannot be written: {problem.strerror}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _cure_of(problem: click.UsageError) -> str:
    """The place of --config, for who gives it to a command that has none."""
    if not isinstance(problem, click.NoSuchOption) or problem.option_name != "--config" or not problem.ctx:
        return ""
    root = problem.ctx.find_root()
    if not any("--config" in option.opts for option in root.command.params):
        return ""
    behind = problem.ctx.command_path.removeprefix(f"{root.info_name} ")
    return f" It goes before the command: {root.info_name} --config FILE {behind}"


def make_directory(directory: Path) -> None:
    """The storage directory of a first start."""
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(
            f"{directory}: cannot be made ({problem.strerror}): make it (mode 0750) or set [storage] dir"
        ) from None


def need_writable(directory: Path) -> None:
    """Refuse before anything is half done."""
    if _is_absent(directory):
        raise NotHere(
            f"{directory}: no such directory, so no daemon runs here: "
            "name the configuration it uses with --config, or start it with `slurm-fair run`"
        )
    if not os.access(directory, os.W_OK):
        raise StoreError(f"{directory}: not writable for you: run as the daemon's account")


def _is_absent(path: Path) -> bool:
    """Not there for certain: a folder that is closed to us may hold it."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
