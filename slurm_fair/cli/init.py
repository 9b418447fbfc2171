"""`slurm-fair init`: the configuration, the submit hook and the systemd units, written once and never over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from slurm_fair.config import DEFAULT_PATH, Config, load
from slurm_fair.errors import SlurmFairError
from slurm_fair.kit import GATE_CALL, HOOK, KINDS, File, Wishes, files
from slurm_fair.places import write_whole
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.nodes import read_machines
from slurm_fair.slurm.private_conf import site_conf

_LOOK_SECONDS = 5.0


@click.command()
@click.option("--dir", "root", default="/", metavar="DIR", help="Write below DIR instead of /.")
@click.option(
    "--config-path", default=str(DEFAULT_PATH), show_default=True, help="Where the configuration goes."
)
@click.option(
    "--gate", type=click.Choice(("begin", "hold")), help="What keeps waiting jobs back.  [default: begin]"
)
@click.option("--account", default="slurm-fair", show_default=True, help="Unix account of the daemon.")
@click.option("--only", type=click.Choice(KINDS), multiple=True, help="Only these files.")
@click.option("--print", "to_screen", is_flag=True, help="Show the files, write nothing.")
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def init(
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
    A job_submit.lua of the site's own is never replaced.
    """
    wanted = _wanted(root, Path(config_path), gate, account, only, to_screen)
    if to_screen:
        _show(wanted)
        return
    fresh = _sorted_out(wanted, force)
    for file in fresh:
        _write(file)
    click.echo(_NEXT.format(account=account, config=config_path) if fresh else "everything is there already")


_NEXT = """
Next:
  the account   useradd --system {account}; sacctmgr add user {account} account=root adminlevel=operator
  look          slurm-fair --config {config} check
  shadow mode   slurm-fair --config {config} run --dry-run    (plans and explains, acts on nothing)
  go live       systemctl enable --now slurm-fair.service slurm-fair-deadman.timer
  optional      JobSubmitPlugins=lua in slurm.conf, so that jobs without a template are gated from the start"""


def _wanted(
    root: str, config_path: Path, gate: str | None, account: str, only: tuple[str, ...], to_screen: bool
) -> list[File]:
    """The files, below the root; a configuration that is there already decides what the others say."""
    there = _below(root, config_path)
    kept = load(there) if there.is_file() and not (to_screen and "config" in only) else None
    config = kept or Config()
    given: dict[str, Any] = {"slurm.gate": gate} if gate and gate != "begin" else {}
    if gate:
        config = replace(config, slurm=replace(config.slurm, gate=gate))
    conf = site_conf(config.slurm.conf)
    wishes = Wishes(
        config=config,
        config_path=config_path,
        plugin_dir=conf.parent if conf else DEFAULT_PATH.parent,
        account=account,
        given=given,
        partitions=_partitions(conf, config),
    )
    chosen = [file for file in files(wishes) if not only or file.kind in only]
    return [replace(file, path=_below(root, file.path)) for file in chosen]


def _below(root: str, path: Path) -> Path:
    return Path(root) / path.relative_to("/") if path.is_absolute() else path


def _partitions(conf: Path | None, config: Config) -> tuple[str, ...]:
    """Partitions with GPUs, when Slurm answers."""
    bin_dir = Path(config.slurm.bin_dir) if config.slurm.bin_dir else None
    try:
        machines = read_machines(Commands(conf, _LOOK_SECONDS, bin_dir))
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


def _sorted_out(wanted: list[File], force: bool) -> list[File]:
    """Say what becomes of each file; those to write, or an error when one is in the way."""
    fresh, in_the_way = [], []
    for file in wanted:
        state = _state(file)
        click.echo(f"{state:<9} {file.path}")
        if state == "new" or (state == "differs" and force):
            fresh.append(file)
        elif state == "differs":
            in_the_way.append(file.path)
        elif state == "your own":
            click.echo(
                f"          to gate jobs in it, dofile() and call {GATE_CALL} as --print --only plugin shows"
            )
    if in_the_way:
        listed = ", ".join(map(str, in_the_way))
        raise SlurmFairError(
            f"nothing is written: {listed} differs from what would be written; look with --print, "
            "leave it out with --only, or replace it with --force"
        )
    return fresh


def _state(file: File) -> str:
    """new, same, differs, or your own: a hook of the site that does not call ours."""
    try:
        text = file.path.read_text(errors="surrogateescape")
    except FileNotFoundError:
        return "new"
    except OSError as problem:
        raise SlurmFairError(f"{file.path}: cannot be read: {problem.strerror}") from None
    if text == file.text:
        return "same"
    if file.path.name == HOOK and GATE_CALL not in text:
        return "your own"
    return "differs"


def _write(file: File) -> None:
    try:
        file.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(file.path, file.text, 0o644)
        file.path.chmod(0o644)  # slurmctld and every user read them, whatever the umask
    except OSError as problem:
        raise SlurmFairError(f"{file.path}: cannot be written: {problem.strerror}") from None
