"""Requests for GPUs whose number Slurm changes as a whole: how many, on how many nodes, with what beside them.

A request says how many GPUs it wants on each node (`--gres=gpu:2`, `--gpus-per-node=2`), or in all (`--gpus=2`).
Slurm takes another number in that very field, and in no other (slurm-facts: one-gpu-field). It writes the field as
its version writes it, and takes only that way (slurm-facts: gres-prefix), so the text stays but for its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from slurm_fair.errors import SlurmTextError

PER_NODE, PER_JOB = "trespernode", "tresperjob"
_HEAD = r"gres[:/]gpu(?::[A-Za-z][A-Za-z0-9_.-]{0,39})?:"
_TEXT = re.compile(rf"({_HEAD})([1-9][0-9]{{0,4}})")
_WRITTEN = re.compile(
    rf"({PER_NODE}|{PER_JOB})=({_HEAD})([1-9][0-9]{{0,4}}),nodes=([1-9][0-9]{{0,5}}),"
    r"tasks=([1-9][0-9]{0,6}),cpus=([1-9][0-9]{0,7})"
)
_NOTHING = ("", "N/A", "(null)")
_COLUMNS = {"tres-per-node": PER_NODE, "tres-per-job": PER_JOB}

_ODD = "its request for GPUs is not a plain number of them"
_PER_TASK = "its GPUs are asked for by the task"
_BOTH = "its GPUs are asked for both by the node and in all"
# slurm-facts: cpus-per-gpu-stay
_PER_GPU_CPUS = "its CPUs are asked for by the GPU, and Slurm does not change them along"
_UNEVEN = "its tasks or CPUs do not lie evenly on its nodes"


@dataclass(frozen=True, slots=True)
class SizeRequest:
    """The part of a job's request that says how large its gang is."""

    field: str  # PER_NODE or PER_JOB
    head: str  # the text before the number
    count: int  # GPUs of each node, or in all
    nodes: int
    tasks: int
    cpus: int

    @property
    def gpus(self) -> int:
        """The GPUs of all nodes together."""
        return self.count * self.nodes if self.field == PER_NODE else self.count

    def __str__(self) -> str:
        """The text that marks keep."""
        return f"{self.field}={self.head}{self.count},nodes={self.nodes},tasks={self.tasks},cpus={self.cpus}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The request that was written so; None for any other text."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            return None
        field, head, *numbers = found.groups()
        return cls(field, head, *map(int, numbers))

    def resized(self, gpus: int, nodes: int) -> SizeRequest:
        """The same with so many GPUs on so many nodes; tasks and CPUs of each node stay as they are."""
        if self.field == PER_JOB:  # Slurm finds the number of nodes by itself, from the list of them
            return replace(self, count=gpus)
        if gpus % nodes:
            raise SlurmTextError(f"{gpus} GPUs do not lie evenly on {nodes} nodes")
        tasks, cpus = self.tasks // self.nodes * nodes, self.cpus // self.nodes * nodes
        return replace(self, count=gpus // nodes, nodes=nodes, tasks=tasks, cpus=cpus)

    def words_from(self, now: SizeRequest) -> tuple[str, ...]:
        """The words for scontrol where the request is as `now`: all in one update.

        (slurm-facts: nodes-by-four-fields)
        """
        words: list[str] = []
        if self.nodes != now.nodes and self.field == PER_NODE:
            words += [f"numnodes={self.nodes}-{self.nodes}", f"numtasks={self.tasks}", f"numcpus={self.cpus}"]
        if words or (self.head, self.count) != (now.head, now.count):
            words.append(f"{self.field}={self.head}{self.count}")
        return tuple(words)

    def is_as_large_as(self, other: SizeRequest) -> bool:
        """True if both ask for the same gang, whatever lies beside its GPUs."""
        nodes = self.field == PER_JOB or self.nodes == other.nodes
        return nodes and (self.field, self.head, self.count) == (other.field, other.head, other.count)

    def is_between(self, one: SizeRequest, other: SizeRequest) -> bool:
        """True if each part is that of one of these two: an update from one to the other was cut short."""
        mine = (self.field, self.head, self.count, self.nodes, self.tasks, self.cpus)
        theirs = zip(
            (one.field, one.head, one.count, one.nodes, one.tasks, one.cpus),
            (other.field, other.head, other.count, other.nodes, other.tasks, other.cpus),
            strict=True,
        )
        loose = 3 if self.field == PER_JOB else len(mine)  # what Slurm chooses of the rest is not ours
        return all(part in pair for part, pair in list(zip(mine, theirs, strict=True))[:loose])

    def is_like(self, other: SizeRequest) -> bool:
        """True if both ask for the same; where a gang gives its GPUs in all, Slurm chooses the rest."""
        return self.is_as_large_as(other) if self.field == PER_JOB else self == other


def request_in(columns: Mapping[str, str], nodes: int, tasks: int, cpus: int) -> SizeRequest | str:
    """The request of a row of squeue, or why its size cannot be changed."""
    asked = {name: columns[name] for name in _COLUMNS if columns[name] not in _NOTHING}
    if columns["tres-per-task"] not in _NOTHING:
        return _PER_TASK
    if len(asked) != 1:
        return _BOTH if asked else _ODD
    if columns["cpus-per-tres"] not in _NOTHING:
        return _PER_GPU_CPUS
    ((name, text),) = asked.items()
    found = _TEXT.fullmatch(text)
    if found is None:
        return _ODD
    if _COLUMNS[name] == PER_NODE and (tasks % nodes or cpus % nodes):
        return _UNEVEN
    return SizeRequest(_COLUMNS[name], found[1], int(found[2]), nodes, max(tasks, 1), max(cpus, 1))
