"""The files of `slurm-fair init` as values: the configuration, the submit hook, the systemd units."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_fair.board.health import hooks_file
from slurm_fair.config.sections import Config
from slurm_fair.config.words import commented_file
from slurm_fair.doctor.storage import TIMER
from slurm_fair.errors import InputError
from slurm_fair.looks.bell import place

SOURCES = Path(__file__).parent / "files"
STATE_ROOT, RUN_ROOT = Path("/var/lib"), Path("/run")
UNITS = Path("/etc/systemd/system")
HOOK, WAKE = "job_submit.lua", "slurm_fair_wake.sh"
GATE_CALL = "slurm_fair_gate"  # a hook with this word in it calls ours, whoever wrote it
KINDS = ("config", "plugin", "units")
_PLAIN = re.compile(r"[A-Za-z0-9_@%:,./+-]+")
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class File:
    """One file to write."""

    kind: str
    path: Path
    text: str
    mode: int = 0o644  # slurmctld and every user read it, whatever the umask


@dataclass(frozen=True, slots=True)
class InitChoices:
    """The admin's choices; `config` is what holds after the files are written."""

    config: Config
    config_path: Path
    plugin_dir: Path
    account: str
    given: Mapping[str, Any]
    partitions: tuple[str, ...] = ()
    slurm_conf: Path | None = None  # where Slurm would not find it by itself


def files(wishes: InitChoices) -> tuple[File, ...]:
    """All files, by their final paths."""
    if not _ACCOUNT.fullmatch(wishes.account):
        raise InputError(f"--account: '{wishes.account}' is no name of a Unix account")
    return (
        File("config", wishes.config_path, commented_file(wishes.given, wishes.partitions)),
        File("plugin", wishes.plugin_dir / "slurm_fair_gate.lua", source("slurm_fair_gate.lua")),
        File("plugin", wishes.plugin_dir / HOOK, hook_text(wishes.config)),
        *(File("units", UNITS / name, unit(name, wishes)) for name in _UNIT_NAMES),
        File("plugin", wishes.plugin_dir / WAKE, wake_script(wishes.config), 0o755),
    )


_UNIT_NAMES = ("slurm-fair.service", "slurm-fair-deadman.service", TIMER)


def source(name: str) -> str:
    """A file that came with us."""
    return (SOURCES / name).read_text()


def hook_text(config: Config) -> str:
    """job_submit.lua with this site's settings in it."""
    health = hooks_file(config.slurm.gate, config.lease.publish_dir)
    settings = {
        "partitions = {},": f"partitions = {_lua_list(config.scope.partitions)},",
        "accounts = {},": f"accounts = {_lua_list(config.scope.accounts)},",
        "qos = {},": f"qos = {_lua_list(config.scope.qos)},",
        'gate = "begin",': f'gate = "{config.slurm.gate}",',
        "gate_seconds = 1800,": f"gate_seconds = {round(2 * config.lease.term)},",
        "near_seconds = 20,": f"near_seconds = {config.lease.near_seconds},",
        'plain = "quota",': f'plain = "{config.scope.plain}",',
        'interactive = "leave",': f'interactive = "{config.scope.interactive}",',
        'unplanned = "leave",': f'unplanned = "{config.scope.unplanned}",',
        'health = "",': f"health = {json.dumps(health, ensure_ascii=False)},",
        'wake = "",': f"wake = {json.dumps(place(config.lease.publish_dir), ensure_ascii=False)},",
    }
    return _filled(source(HOOK), settings)


def wake_script(config: Config) -> str:
    """The script that wakes the daemon at the end of a job."""
    path = place(config.lease.publish_dir)
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return _filled(source(WAKE), {"@WAKE@": quoted})


def _lua_list(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(json.dumps(name, ensure_ascii=False) for name in names) + "}"


def unit(name: str, wishes: InitChoices) -> str:
    """A systemd unit for this site."""
    words = {
        "@ACCOUNT@": wishes.account,
        "@PROGRAM@": f"{_word(sys.executable)} -I -m slurm_fair.cli",
        "@CONFIG@": _of_command(str(wishes.config_path)),
        "@STATE@": _state(wishes.config),
        "@PUBLISHED@": _published(wishes.config),
        "@ENVIRONMENT@": _environment(wishes.slurm_conf),
        "@SECONDS@": str(deadman_seconds(wishes.config)),
    }
    text = source(f"systemd/{name}.in")
    return _filled(text, {word: value for word, value in words.items() if word in text})


def deadman_seconds(config: Config) -> int:
    """Seconds between looks of the dead-man, to free jobs within a lease of the daemon's last sign of life."""
    return max(1, min(60, int(config.lease.term / 10)))


def _state(config: Config) -> str:
    """The journal's folder, which the daemon and its dead-man may write."""
    storage = Path(config.storage.dir)
    below = _below(STATE_ROOT, storage)
    if below:
        return f"StateDirectory={_word(below)}\nStateDirectoryMode=0750"
    return f"ReadWritePaths={_word(str(storage))}"


def _published(config: Config) -> str:
    """The folder that users read, made at the daemon's start where it lies below /run; it outlives the daemon."""
    folder = config.lease.publish_dir
    if not folder:
        return ""
    below = _below(RUN_ROOT, Path(folder))
    if below:
        return f"RuntimeDirectory={_word(below)}\nRuntimeDirectoryMode=0755\nRuntimeDirectoryPreserve=yes"
    return f"ReadWritePaths={_word('-' + folder)}"  # a missing one keeps nobody from starting


def _below(root: Path, folder: Path) -> str:
    return str(folder.relative_to(root)) if folder.is_relative_to(root) and folder != root else ""


def _environment(slurm_conf: Path | None) -> str:
    if slurm_conf is None:
        return ""
    return f"Environment={_word(f'SLURM_CONF={slurm_conf}')}"


def _word(text: str) -> str:
    """One word of a line of a systemd unit: quoted where it must be, and without systemd's own %-words."""
    text = text.replace("%", "%%")
    if _PLAIN.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _of_command(text: str) -> str:
    """The same in a line that is a command, where $ begins a variable."""
    return _word(text).replace("$", "$$")


def folders(config: Config) -> tuple[tuple[str, str], ...]:
    """The folders that the daemon's account needs: a folder and its mode, each its own."""
    published = config.lease.publish_dir
    return ((config.storage.dir, "0750"), *(((published, "0755"),) if published else ()))


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Every word filled in; a source that lost one must not go out half filled."""
    for word in words:
        if word not in text:
            raise InputError(f"a file of this installation has no {word}: install slurm_fair again")
    # At once, so that a value is never taken for a word.
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text) if words else text
