"""`slurm-fair init`: the configuration, the submit hook and the systemd units; no word of the site's is lost."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.site_files import GATE_CALL, HOOK, KINDS, WAKE, File, InitChoices, files, folders
from slurm_fair.config.checks import CHOICES
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import DEFAULT_PATH, load_config
from slurm_fair.doctor.hook import HOOK_ANEW
from slurm_fair.doctor.storage import TIMER
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.output import copy_beside, write_text
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.private_conf import USUAL, site_conf
from slurm_fair.slurm.reading.nodes import read_nodes

_LOOK_SECONDS = 5.0
_SERVICE_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")  # systemd's

_WRONG_PLACE = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG,
)  # fmt: skip


@click.command()
@click.option("--dir", "root", default="/", metavar="DIR", help="Write below DIR instead of /.")
@click.option(
    "--config-path", default=str(DEFAULT_PATH), show_default=True, help="Path of the configuration."
)
@click.option(
    "--gate",
    type=click.Choice(CHOICES["slurm.gate"]),
    help="The gate of waiting jobs.  [default: begin]",
)
@click.option("--account", default="slurm-fair", show_default=True, help="Unix account of the daemon.")
@click.option("--only", type=click.Choice(KINDS), multiple=True, help="Only these files.")
@click.option("--print", "to_screen", is_flag=True, help="Show the files, write nothing.")
@click.option("--force", is_flag=True, help="Replace files that are there and differ; copies stay.")
@click.pass_context
def init(
    context: click.Context,
    /,
    root: str,
    config_path: str,
    gate: str | None,
    account: str,
    only: tuple[str, ...],
    to_screen: bool,
    force: bool,
) -> None:
    """Write a commented configuration, the submit hook (job_submit.lua) and systemd units.

    A file that is there and differs is left as it is, and then nothing is written at all, unless --force is given.
    Then it is replaced, and a copy of it stays beside it (NAME.old, NAME.old-2 and so on).
    A job_submit.lua that does not call slurm_fair_gate is the site's own, and is never replaced.
    """
    given = context.find_root().params.get("config")
    if given:
        raise InputError(
            f"--config {given} is of the other commands: `slurm-fair init --config-path {given}`"
        )
    if not root:
        raise InputError("--dir is empty: name a folder, or leave it out for /")
    if not os.path.isabs(config_path):
        raise InputError(
            f"--config-path {config_path} must be absolute: the services start in another folder"
        )
    _refuse_lost_conf()
    wishes = _wishes(root, Path(config_path), gate, account, to_screen and "config" in only)
    if force and not to_screen and (not only or "config" in only):
        wishes = replace(wishes, config=_replaced(wishes))
    wanted = _wanted(root, wishes, only)
    if to_screen:
        _show(wanted)
        return
    fresh = _sorted_out(wanted, force)
    for file in fresh:
        _write(file)
    missing = [] if only else _make_folders(wishes, root)
    if fresh or (missing and root == "/"):
        click.echo(_next(wishes, missing))
    else:
        click.echo("everything is there already")


def _next(wishes: InitChoices, missing: list[str]) -> str:
    """The steps that are left, and who takes them."""
    account, program = wishes.account, f"slurm-fair --config {wishes.config_path}"
    if wishes.config_path == DEFAULT_PATH:
        program = "slurm-fair"
    steps = {
        "the account": [
            f"useradd --system {account}        # here and, with the same uid, on slurmctld's machine",
            f"sacctmgr -i add user {account} account=root adminlevel=operator",
        ],
        "its folders": missing,
        "look": [f"sudo -u {account} {program} check"],
        "shadow mode": [
            f"sudo -u {account} {program} run --dry-run        # plans and explains, acts on nothing"
        ],
        "go live": [f"systemctl enable --now slurm-fair.service {TIMER}        # both run as {account}"],
        "the hook": [
            f"{wishes.plugin_dir / HOOK} and {GATE_CALL}.lua lie beside slurm.conf on slurmctld's machine",
            "JobSubmitPlugins=lua in slurm.conf puts them in force: jobs without a template are gated too",
            f"EpilogSlurmctld={wishes.plugin_dir / WAKE} there (optional): the end of a job is seen at once",
            f"after a change of [scope], [lease] term or [slurm] gate: {HOOK_ANEW}",
        ],
    }
    lines = ["", "Next, as root:"]
    for name, todo in steps.items():
        lines += [f"  {name if at == 0 else '':<13} {line}" for at, line in enumerate(todo)]
    return "\n".join(lines)


def _make_folders(wishes: InitChoices, root: str) -> list[str]:
    """Make the daemon's folders; where that cannot be done here, the lines that do it."""
    missing = []
    for name, mode in folders(wishes.config):
        folder = Path(name)
        if os.path.isdir(folder):
            continue
        if root == "/" and os.geteuid() == 0 and _is_account(wishes.account):
            _make_folder(folder, int(mode, 8), wishes.account)
            click.echo(f"{'new':<9} {folder}/")
        else:
            missing.append(f"install -d -o {wishes.account} -m {mode} {folder}")
    return missing


def _make_folder(folder: Path, mode: int, account: str) -> None:
    try:
        for above in _missing(folder.parent):
            above.mkdir()
            above.chmod(0o755)  # whatever the umask
        folder.mkdir(mode=0o700)
        shutil.chown(folder, account)
        folder.chmod(mode)
    except OSError as problem:
        raise SlurmFairError(f"{folder}: cannot be made: {problem.strerror}") from None


def _missing(folder: Path) -> list[Path]:
    """The folders on the way to one, and that one, which are not there; the outermost first."""
    return [place for place in (*reversed(folder.parents), folder) if not os.path.isdir(place)]


def _is_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _wishes(root: str, config_path: Path, gate: str | None, account: str, afresh: bool) -> InitChoices:
    """The settings in force once the files are written; a configuration that is there already decides."""
    there = _below(root, config_path)
    config = load_config(there) if os.path.isfile(there) and not afresh else Config()
    given: dict[str, Any] = {"slurm.gate": gate} if gate and gate != Config().slurm.gate else {}
    conf, bin_dir = site_conf(config.slurm.conf), _bin_dir(config)
    elsewhere = conf if conf is not None and conf != USUAL else None
    given |= {"slurm.conf": str(elsewhere)} if elsewhere else {}
    given |= {"slurm.bin_dir": bin_dir} if bin_dir else {}
    if gate:
        config = replace(config, slurm=replace(config.slurm, gate=gate))
    return InitChoices(
        config=config,
        config_path=config_path,
        plugin_dir=conf.parent if conf else DEFAULT_PATH.parent,
        account=account,
        given=given,
        partitions=_partitions(conf, config),
        slurm_conf=elsewhere,
    )


def _replaced(wishes: InitChoices) -> Config:
    """The settings in force once a configuration that is there is replaced: the hook must not say the old ones."""
    kept = {name.removeprefix("slurm."): value for name, value in wishes.given.items()}
    return Config(slurm=replace(Config().slurm, **kept))


def _bin_dir(config: Config) -> str:
    """The folder of Slurm's commands, if a service would not find them there."""
    found = shutil.which("scontrol")
    folder = config.slurm.bin_dir or (str(Path(found).parent) if found else "")
    return "" if folder in _SERVICE_PATH else folder


def _wanted(root: str, wishes: InitChoices, only: tuple[str, ...]) -> list[File]:
    chosen = [file for file in files(wishes) if not only or file.kind in only]
    return [replace(file, path=_below(root, file.path)) for file in chosen]


def _below(root: str, path: Path) -> Path:
    return Path(root) / path.relative_to("/") if path.is_absolute() else path


def _partitions(conf: Path | None, config: Config) -> tuple[str, ...]:
    """Partitions with GPUs, when Slurm answers."""
    bin_dir = Path(config.slurm.bin_dir) if config.slurm.bin_dir else None
    try:
        machines = read_nodes(Commands(conf, _LOOK_SECONDS, bin_dir))
    except SlurmFairError:
        return ()
    if isinstance(machines, str):
        return ()
    members = machines.partitions.items()
    return tuple(name for name, nodes in members if any(machines.nodes[node].gpus for node in nodes))


def _show(wanted: list[File]) -> None:
    for file in wanted:
        if len(wanted) > 1:
            click.echo(f"==> {file.path} <==")
        click.echo(file.text)


class _Found(StrEnum):
    """A file's place before anything is written, as the command says it."""

    NEW = "new"
    SAME = "same"
    DIFFERS = "differs"
    REPLACED = "replaced"  # it differs, and a copy of it was made
    OWN = "your own"  # a hook of the site that does not call ours


def _sorted_out(wanted: list[File], force: bool) -> list[File]:
    """Say what becomes of each file; those to write, or an error when one is in the way or has no place."""
    states = [(file, _state(file)) for file in wanted]
    if force or all(state is not _Found.DIFFERS for _, state in states):
        _make_places([file for file, state in states if state in (_Found.NEW, _Found.DIFFERS)])
    fresh, in_the_way = [], []
    for file, state in states:
        if state is _Found.DIFFERS and force:
            click.echo(f"{_Found.REPLACED:<9} {file.path}, which is kept as {_kept(file.path)}")
        else:
            click.echo(f"{state:<9} {file.path}")
        if state is _Found.NEW or (state is _Found.DIFFERS and force):
            fresh.append(file)
        elif state is _Found.DIFFERS:
            in_the_way.append(file.path)
        elif state is _Found.OWN:
            click.echo(
                f"          to gate jobs in it, dofile() and call {GATE_CALL} as --print --only plugin shows"
            )
    if in_the_way:
        listed = ", ".join(map(str, in_the_way))
        raise SlurmFairError(
            f"nothing is written: {listed} differs from what would be written; look with --print, "
            "leave it out with --only, or replace it with --force, which keeps a copy beside it"
        )
    return fresh


def _make_places(fresh: list[File]) -> None:
    """Make the folders of files before anything is said of these; all of them, or none."""
    made: list[Path] = []
    for file in fresh:
        for place in _missing(file.path.parent):
            _refuse_dangling(place)
    for file in fresh:
        try:
            for place in _missing(file.path.parent):
                place.mkdir(mode=0o755)
                made.append(place)
        except OSError as problem:
            for place in reversed(made):
                place.rmdir()
            raise _refusal(file.path, "written", problem) from None


def _refuse_dangling(place: Path) -> None:
    """Refuse a link that leads nowhere: no folder can be made in its place."""
    if place.is_symlink():
        raise InputError(
            f"{place} is a link to {place.readlink()}, which is no folder: make that one, or mend the link"
        )


def _refuse_lost_conf() -> None:
    """Refuse a SLURM_CONF that names no file: the services would be written without it."""
    named = os.environ.get("SLURM_CONF", "")
    if named and not os.path.isfile(named):
        raise InputError(f"SLURM_CONF={named} is no file: set it to the site's slurm.conf, or unset it")


def _kept(path: Path) -> Path:
    """The copy of a file that is about to be replaced."""
    try:
        return copy_beside(path)
    except OSError as problem:
        raise _refusal(path, "kept as a copy", problem) from None


def _refusal(path: Path, what: str, problem: OSError) -> SlurmFairError:
    """The error for a file that cannot be dealt with; a wrong place is the caller's mistake."""
    line = f"{path}: cannot be {what}: {problem.strerror}"
    if problem.errno in _WRONG_PLACE:
        return InputError(f"{line}: name a folder that you may write to with --dir, or run it as root")
    return SlurmFairError(line)


def _state(file: File) -> _Found:
    try:
        text = file.path.read_text(errors="surrogateescape")
    except FileNotFoundError:
        return _Found.NEW
    except OSError as problem:
        raise _refusal(file.path, "read", problem) from None
    if text == file.text:
        return _Found.SAME
    if file.path.name == HOOK and GATE_CALL not in text:
        return _Found.OWN
    return _Found.DIFFERS


def _write(file: File) -> None:
    path = file.path
    try:
        write_text(path, file.text, file.mode)
        path.chmod(file.mode)
    except OSError as problem:
        raise _refusal(path, "written", problem) from None
