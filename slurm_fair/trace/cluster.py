"""The machines of a simulated cluster: `[[nodes]]` tables of a TOML file, or so many GPUs all alike.

[[nodes]]
name = "n[001-064]"   # one name, or several with ranges in brackets
gpus = 8
type = "a100"
rack = "r1"
speed = 1.0           # against the reference type of the trace's run times
cpus = 96
memory_gb = 512
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import ConfigError, SlurmTextError
from slurm_fair.model.columns import Columns, Floats, Ints
from slurm_fair.slurm_text import hostlist
from slurm_fair.trace.cells import MOST
from slurm_fair.trace.faults import nearest_of, shown
from slurm_fair.trace.files import reading

USUAL_TYPE = "gpu"
_KEYS: dict[str, Any] = {
    "name": "",
    "gpus": 0,
    "type": USUAL_TYPE,
    "rack": "",
    "speed": 1.0,
    "cpus": 0,
    "memory_gb": 0.0,
}
_NEEDED = ("name", "gpus")
_MOST_NODES = 200_000
_LONGEST_NAME = 255  # letters of a host's name
_MOST_GPUS = 4096  # of one node
_LEAST = {"speed": 1e-12}  # of the others 0 means something
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_SPACES = re.compile(r"(?<=[\[,])\s+|\s+(?=[\],])")  # beside commas and within brackets


@dataclass(frozen=True)
class Machines(Columns):
    """One row per node."""

    names: tuple[str, ...]
    gpus: Ints
    gpu_type: Ints  # index into gpu_types
    rack: Ints  # index into racks
    speed: Floats
    cpus: Ints  # 0 = not limited
    memory_gb: Floats  # 0 = not limited
    gpu_types: tuple[str, ...]
    racks: tuple[str, ...]

    @property
    def total_gpus(self) -> int:
        return int(self.gpus.sum())

    @property
    def capacity(self) -> float:
        """GPUs in terms of the reference type."""
        return float((self.gpus * self.speed).sum())


def uniform(gpus: int, gpus_per_node: int = 8) -> Machines:
    """GPUs all alike, on as many nodes as they need; the last node has the rest."""
    if not (0 < gpus <= _MOST_NODES and 0 < gpus_per_node <= _MOST_NODES):
        raise ConfigError(
            f"{gpus} GPUs, {gpus_per_node} a node: both must be above 0 and at most {_MOST_NODES}"
        )
    count = -(-gpus // gpus_per_node)
    sizes = np.minimum(gpus_per_node, gpus - gpus_per_node * np.arange(count))
    digits = len(str(count))
    zeros = np.zeros(count, dtype=np.int64)
    return Machines(
        names=tuple(f"n{number:0{digits}}" for number in range(1, count + 1)),
        gpus=sizes.astype(np.int64),
        gpu_type=zeros,
        rack=zeros,
        speed=np.ones(count),
        cpus=zeros,
        memory_gb=np.zeros(count),
        gpu_types=(USUAL_TYPE,),
        racks=("",),
    )


def read_machines(path: Path) -> Machines:
    """The nodes of a cluster file; unknown keys are refused with the nearest known one."""
    with reading(path) as text:
        whole = text.read()
    try:
        tree = tomllib.loads(whole)
    except ValueError as problem:
        raise ConfigError(f"{path}: not TOML: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: write [[nodes]] tables with plain keys") from None
    for key in tree:
        if key != "nodes":
            raise ConfigError(f"{path}: unknown key {shown(key)}; write [[nodes]] tables")
    tables = tree.get("nodes")
    if not isinstance(tables, list) or not tables:
        raise ConfigError(f"{path}: no [[nodes]] table: give name and gpus of at least one")
    return _machines(_groups(tables, path), path)


def _groups(tables: list[Any], path: Path) -> list[dict[str, Any]]:
    """The tables as they are checked, with all names; together they name no more nodes than a cluster has."""
    groups: list[dict[str, Any]] = []
    count = 0
    for at, table in enumerate(tables, start=1):
        groups.append(_group(table, f"{path}: nodes table {at}"))
        count += len(groups[-1]["name"])
        if count > _MOST_NODES:
            raise ConfigError(
                f"{path}: nodes table {at}: with it the file names more than {_MOST_NODES} nodes: "
                "name fewer, with more GPUs each if need be"
            )
    return groups


def _machines(groups: list[dict[str, Any]], path: Path) -> Machines:
    names = [name for group in groups for name in group["name"]]
    if len(set(names)) < len(names):
        twice = min(name for name, count in Counter(names).items() if count > 1)
        raise ConfigError(f"{path}: node {twice} is there twice: give each node its own name")
    sizes = [len(group["name"]) for group in groups]
    types, racks = (sorted({group[key] for group in groups}) for key in ("type", "rack"))
    at_type, at_rack = ({name: at for at, name in enumerate(listed)} for listed in (types, racks))

    def column(values: list[float]) -> NDArray[Any]:
        """The value of each table for each of its nodes."""
        return np.repeat(np.array(values), sizes)

    return Machines(
        names=tuple(names),
        gpus=column([group["gpus"] for group in groups]).astype(np.int64),
        gpu_type=column([at_type[group["type"]] for group in groups]).astype(np.int64),
        rack=column([at_rack[group["rack"]] for group in groups]).astype(np.int64),
        speed=column([group["speed"] for group in groups]).astype(np.float64),
        cpus=column([group["cpus"] for group in groups]).astype(np.int64),
        memory_gb=column([group["memory_gb"] for group in groups]).astype(np.float64),
        gpu_types=tuple(types),
        racks=tuple(racks),
    )


def _group(group: Any, where: str) -> dict[str, Any]:
    """The keys of one table, each of its kind."""
    if not isinstance(group, dict):
        raise ConfigError(f"{where}: must be a table: write [[nodes]]")
    for key in group:
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {shown(key)}; {nearest_of(key, _KEYS)}")
    for key in _NEEDED:
        if key not in group:
            raise ConfigError(f"{where}: {key} is missing: each table needs {' and '.join(_NEEDED)}")
    checked = {key: _checked(key, group.get(key, usual), where) for key, usual in _KEYS.items()}
    if checked["gpus"] == 0:
        raise ConfigError(f"{where}: gpus must be above 0")
    if checked["gpus"] > _MOST_GPUS:
        raise ConfigError(f"{where}: gpus must be at most {_MOST_GPUS}: no node has more")
    return checked | {"name": _names(checked["name"], f"{where}: name")}


def _checked(key: str, value: Any, where: str) -> Any:
    usual, least = _KEYS[key], _LEAST.get(key, 0)
    if isinstance(usual, str):
        if not isinstance(value, str) or not value.isprintable():
            raise ConfigError(f"{where}: {key} must be a printable text")
        return value
    wanted = "a whole number" if isinstance(usual, int) else "a number"
    fits = isinstance(value, int if isinstance(usual, int) else (int, float)) and not isinstance(value, bool)
    if not fits or not least <= value <= MOST:
        limits = f"from {least:g} to {MOST:g}" if key in _LEAST else "of 0 or more"
        raise ConfigError(f"{where}: {key} must be {wanted} {limits}, not {repr(value)[:80]}")
    return value


def _names(text: str, where: str) -> tuple[str, ...]:
    """Every name that `n[001-064],login` stands for, in its order."""
    try:
        names = hostlist.expand(_SPACES.sub("", text.strip()), _MOST_NODES)
    except SlurmTextError as wrong:
        raise ConfigError(f'{where}: {wrong}; write it like "n[001-064]"') from None
    if not names or not all(map(_NAME.fullmatch, names)):
        raise ConfigError(f'{where}: {shown(text)} is no node name; write it like "n[001-064]"')
    if len(max(names, key=len)) > _LONGEST_NAME:
        raise ConfigError(
            f"{where}: {shown(text)} has more than {_LONGEST_NAME} letters: write a shorter name"
        )
    return names
