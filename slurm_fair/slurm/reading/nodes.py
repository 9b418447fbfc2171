"""The nodes and partitions as sinfo lists them, and the reservations that bar nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END
from slurm_fair.slurm_text import hostlist

_FIELDS = (
    "NodeList", "PartitionName", "Available", "Gres", "GresUsed", "StateComplete", "CPUsState", "Memory",
    "AllocMem", "features_act",
)  # fmt: skip
_FORMAT = ",".join(f"{name}:{BETWEEN}" for name in _FIELDS[:-1]) + f",{_FIELDS[-1]}:{ROW_END}"

# A node can take work when every flag of its state is among these; an unknown word means it cannot.
_USABLE = frozenset(
    (
        "idle",
        "mixed",
        "allocated",
        "completing",
        "planned",
        "cloud",
        "powered_down",
        "powering_up",
        "reserved",
        "dynamic_norm",
    )
)


@dataclass(frozen=True, slots=True)
class RawNode:
    """One node as listed."""

    name: str
    gpus: int
    gpu_type: str  # "" untyped, "+" several types
    gpus_used: int
    cpus: int
    cpus_used: int
    memory_mb: int
    memory_used_mb: int
    state: str
    features: frozenset[str] = frozenset()  # active ones

    @property
    def why_unusable(self) -> str:
        """Slurm's word for what keeps work away; empty when nothing does."""
        flags = set(self.state.rstrip("*~#!%$@^-+").split("+"))
        if self.state.endswith("*"):
            return "not responding"
        return ",".join(sorted(flags - _USABLE))


@dataclass(frozen=True, slots=True)
class NodeListing:
    """All nodes, by name, and which partition has which."""

    nodes: dict[str, RawNode]
    partitions: dict[str, tuple[str, ...]]
    up: dict[str, bool]
    unreadable: tuple[str, ...] = ()  # what is wrong with rows of nodes that are left out


def read_nodes(commands: Commands) -> NodeListing | str:
    """Nodes and partitions, or why the answer is not valid."""
    answer = commands.run("sinfo", "-h", "-N", "-a", "-O", _FORMAT)
    if not answer.whole:
        return answer.complaint
    lines = answer.out.split(ROW_END)
    if lines.pop().strip():
        return "sinfo: the last row is cut off"
    nodes: dict[str, RawNode] = {}
    members: dict[str, dict[str, None]] = {}
    up: dict[str, bool] = {}
    wrong: dict[str, None] = {}
    for line in lines:
        row = line.lstrip("\n").split(BETWEEN)
        try:
            _need_columns(row)
            node = nodes.get(row[0]) or _node(row)
        except SlurmTextError as why:
            wrong[str(why)] = None
            continue
        nodes[node.name] = node
        members.setdefault(row[1], {})[node.name] = None
        up[row[1]] = row[2] == "up"
    if wrong and not nodes:
        return f"sinfo: {next(iter(wrong))}"
    return NodeListing(nodes, {name: tuple(names) for name, names in members.items()}, up, tuple(wrong))


def _need_columns(row: list[str]) -> None:
    if len(row) != len(_FIELDS):
        raise SlurmTextError(
            f"the row of node {row[0][:60]} has {len(row)} columns instead of {len(_FIELDS)}"
        )


def _node(row: list[str]) -> RawNode:
    name, _, _, gres, used, state, cpus, memory, allocated, features = row
    if not hostlist.NODE_NAME.fullmatch(name):
        raise SlurmTextError(f"'{name[:60]}' is no node name")
    gpus, kind = values.gres_gpus("" if values.is_nothing(gres) else gres)
    busy, _ = values.gres_gpus("" if values.is_nothing(used) else used)
    counts = [values.count(part) for part in cpus.split("/")]
    if len(counts) != 4:
        raise SlurmTextError(f"'{cpus[:40]}' is no CPU count of node {name}")
    return RawNode(
        name,
        gpus,
        kind,
        busy,
        counts[3],
        counts[0],
        values.megabytes(memory),
        values.megabytes(allocated),
        state.lower(),
        frozenset(() if values.is_nothing(features) else features.split(",")),
    )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes kept for somebody; one that keeps only some cores bars its nodes too, to be safe."""

    name: str
    start: float
    end: float
    nodes: tuple[str, ...]


_PAIR = re.compile(r"\b(\w+)=(\S*)")


def read_reservations(commands: Commands) -> tuple[Reservation, ...] | str:
    """Reservations, or why the answer is not valid."""
    answer = commands.run("scontrol", "-o", "show", "reservation")
    if not answer.whole:
        return answer.complaint
    if answer.out.startswith("No reservations in the system"):
        return ()
    wrong: list[str] = []
    found = tuple(_reservations(answer.out.splitlines(), wrong.append))
    return f"scontrol show reservation: {wrong[0]}" if wrong and not found else found


def _reservations(lines: Iterable[str], complain: Callable[[str], object]) -> Iterable[Reservation]:
    """The reservations that can be read; Slurm itself keeps jobs out of the others."""
    for line in lines:
        pairs = dict(reversed(_PAIR.findall(line)))  # a comment at the end may repeat a key: the first counts
        if "ReservationName" not in pairs:
            continue
        try:
            yield Reservation(
                pairs["ReservationName"],
                values.epoch(pairs.get("StartTime", "")),
                values.epoch(pairs.get("EndTime", "")),
                hostlist.expand(pairs.get("Nodes", "")),
            )
        except SlurmTextError as wrong:
            complain(str(wrong))
