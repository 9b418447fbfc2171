"""The configuration: a frozen tree read from TOML; an unknown key is refused with the nearest known one."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from slurm_fair.config.checks import check
from slurm_fair.config.sections import Config, PolicySection
from slurm_fair.config.values import typed
from slurm_fair.errors import ConfigError
from slurm_fair.policy.registry import names
from slurm_fair.suggest import did_you_mean

DEFAULT_PATH = Path("/etc/slurm/slurm-fair.toml")
_MOST_BYTES = 1 << 20  # of a file; one without an end must not fill memory


def load_config(path: Path) -> Config:
    """The configuration in a file; every mistake is one ConfigError that names the key and the cure."""
    try:
        text = _content(path)
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}; write one with `slurm-fair init`") from None
    except ValueError:
        raise ConfigError(f"{str(path)!r}: is no name of a file") from None
    if len(text) == _MOST_BYTES:
        raise ConfigError(f"{path}: more than {_MOST_BYTES >> 20} MB: is it the right file?")
    try:
        tree = tomllib.loads(text.decode())
    except ValueError as problem:  # not TOML, not UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path}: not TOML: {_twice(problem, text.decode(errors='replace'))}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: no key takes more than a table in a table") from None
    return from_tree(tree, str(path))


def _content(path: Path) -> bytes:
    """The content of a regular file; a pipe or a device could keep us waiting for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"{path}: is no regular file: name the configuration itself")
        return file.read(_MOST_BYTES)


def from_tree(tree: Mapping[str, Any], source: str) -> Config:
    """The configuration in a parsed TOML document."""
    sections = {f.name: f for f in fields(Config) if f.name != "source"}
    built: dict[str, Any] = {"source": source}
    for name, value in tree.items():
        if name not in sections and not isinstance(value, dict):
            raise ConfigError(f"{source}: {name} stands in no section{_whose(name)}")
        if name not in sections:
            raise ConfigError(f"{source}: unknown section [{name}]; {did_you_mean(name, sections)}")
        if not isinstance(value, dict):
            raise ConfigError(f"{source}: {name} must be a section: write [{name}]")
        built[name] = _policy(value, source) if name == "policy" else _section(name, value, source)
    config = Config(**built)
    check(config)
    return config


def _whose(key: str) -> str:
    """The section that has such a key, as a cure."""
    parts = ((each.name, getattr(Config(), each.name)) for each in fields(Config))
    having = [name for name, part in parts if is_dataclass(part) and key in get_type_hints(type(part))]
    return f": write it below [{having[0]}]" if having else ": there is no such key in any section"


def _twice(problem: ValueError, text: str) -> str:
    """TOML's complaint, with the key that is set twice: that it does not say."""
    line = re.search(r"Cannot overwrite a value \(at line ([0-9]+)", str(problem))
    if line is None:
        return str(problem)
    key = text.split("\n")[int(line[1]) - 1].partition("=")[0].strip()
    return f"{key[:60]} is set twice, again in line {line[1]}: keep one of them"


def _policy(tree: Mapping[str, Any], source: str) -> PolicySection:
    hints = get_type_hints(PolicySection)
    settings = {name: value for name, value in tree.items() if isinstance(value, dict) and name not in hints}
    plain = {name: value for name, value in tree.items() if name not in settings}
    for name in plain:
        if name not in hints or name == "settings":
            raise ConfigError(
                f"{source}: unknown key policy.{name}: a policy's settings go into [policy.<name>]"
            )
    for other in settings:
        if other not in names():
            raise ConfigError(
                f"{source}: [policy.{other}]: there is no such policy: {did_you_mean(other, names())}"
            )
    values = {key: typed(value, hints[key], f"{source}: policy.{key}") for key, value in plain.items()}
    return PolicySection(settings=settings, **values)


def _section(name: str, tree: Mapping[str, Any], source: str) -> Any:
    kind = type(getattr(Config(), name))
    hints = get_type_hints(kind)
    values = {}
    for key, value in tree.items():
        if key not in hints:
            raise ConfigError(f"{source}: unknown key {name}.{key}; {did_you_mean(key, hints)}")
        values[key] = typed(value, hints[key], f"{source}: {name}.{key}")
    return kind(**values)
