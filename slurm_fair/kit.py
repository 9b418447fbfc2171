"""What a site gets from `slurm-fair init`: the configuration, the submit hook, the systemd units. Values only."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_fair.config import Config
from slurm_fair.config_words import commented_file
from slurm_fair.errors import InputError

SOURCES = Path(__file__).parent / "cli" / "files"
STATE_ROOT = Path("/var/lib")
UNITS = Path("/etc/systemd/system")
HOOK = "job_submit.lua"
GATE_CALL = "slurm_fair_gate"  # a hook with this word in it calls ours, whoever wrote it
KINDS = ("config", "plugin", "units")
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class File:
    """One file to write."""

    kind: str
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the admin chose; `config` is what holds after the files are written."""

    config: Config
    config_path: Path
    plugin_dir: Path
    account: str
    given: Mapping[str, Any]
    partitions: tuple[str, ...] = ()


def files(wishes: Wishes) -> tuple[File, ...]:
    """All files, by their final paths."""
    if not _ACCOUNT.fullmatch(wishes.account):
        raise InputError(f"--account: '{wishes.account}' is no name of a Unix account")
    return (
        File("config", wishes.config_path, commented_file(wishes.given, wishes.partitions)),
        File("plugin", wishes.plugin_dir / "slurm_fair_gate.lua", source("slurm_fair_gate.lua")),
        File("plugin", wishes.plugin_dir / HOOK, hook(wishes.config)),
        *(File("units", UNITS / name, unit(name, wishes)) for name in _UNIT_NAMES),
    )


_UNIT_NAMES = ("slurm-fair.service", "slurm-fair-deadman.service", "slurm-fair-deadman.timer")


def source(name: str) -> str:
    """A file that came with us."""
    return (SOURCES / name).read_text()


def hook(config: Config) -> str:
    """job_submit.lua with this site's settings in it."""
    settings = {
        "partitions = {},": f"partitions = {_lua_list(config.scope.partitions)},",
        "accounts = {},": f"accounts = {_lua_list(config.scope.accounts)},",
        'gate = "begin",': f'gate = "{config.slurm.gate}",',
        "gate_seconds = 1800,": f"gate_seconds = {round(2 * config.lease.term)},",
    }
    return _filled(source(HOOK), settings)


def _lua_list(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(json.dumps(name, ensure_ascii=False) for name in names) + "}"


def unit(name: str, wishes: Wishes) -> str:
    """A systemd unit for this site."""
    words = {
        "@ACCOUNT@": wishes.account,
        "@PROGRAM@": f"{shlex.quote(sys.executable)} -I -m slurm_fair.cli",
        "@CONFIG@": shlex.quote(str(wishes.config_path)),
        "@STATE@": _state(wishes.config),
        "@SECONDS@": str(look_seconds(wishes.config)),
    }
    text = source(f"systemd/{name}.in")
    return _filled(text, {word: value for word, value in words.items() if word in text})


def look_seconds(config: Config) -> int:
    """How often the dead-man looks, so that jobs are free within a lease of the daemon's last sign of life."""
    return max(1, min(60, int(config.lease.term / 10)))


def _state(config: Config) -> str:
    """The one place that the daemon may write, and the folder it publishes in."""
    storage, published = Path(config.storage.dir), config.lease.publish_dir
    below = storage.relative_to(STATE_ROOT) if storage.is_relative_to(STATE_ROOT) else None
    named = f"StateDirectory={below}\nStateDirectoryMode=0750" if below and below.parts else ""
    lines = [named or f"ReadWritePaths={shlex.quote(str(storage))}"]
    lines += [f"ReadWritePaths={shlex.quote(published)}"] if published else []
    return "\n".join(lines)


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Every word filled in; a source that lost one must not go out half filled."""
    for word, value in words.items():
        if word not in text:
            raise InputError(f"a file of this installation has no {word}: install slurm_fair again")
        text = text.replace(word, value)
    return text
