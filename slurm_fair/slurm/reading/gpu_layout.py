"""GPUs per node of running jobs: an even split where it must be one, Slurm's own word where it may not be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.scontrol_show import show_jobs
from slurm_fair.slurm_text import hostlist

_SEGMENT = re.compile(r" Nodes=(\S+) CPU_IDs=\S* Mem=\d+ GRES=(\S*)")
_AT_ONCE = 500
Layout: TypeAlias = tuple[tuple[str, int], ...]
GpusOfNodes: TypeAlias = Mapping[str, int]  # GPUs that each node has


class GpuLayouts:
    """Remembers the layout of each run by (record, restarts)."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[int, int], Layout] = {}
        self._guessed: set[tuple[int, int]] = set()  # runs that Slurm did not answer for: asked again

    def learn(self, uneven: Mapping[tuple[int, int], tuple[tuple[str, ...], int]], room: GpusOfNodes) -> None:
        """Ask once for each uneven run; a run that Slurm does not explain is split as evenly as it goes."""
        kept = uneven.keys() - self._guessed
        self._known, self._guessed = {who: known for who, known in self._known.items() if who in kept}, set()
        missing = [who for who in uneven if who not in self._known]
        for first in range(0, len(missing), _AT_ONCE):
            some = missing[first : first + _AT_ONCE]
            shown = show_jobs(self._commands, dict.fromkeys(record for record, _ in some), "-d")
            for who in some:
                nodes, gpus = uneven[who]
                said = read_layout(shown.get(who[0], ""), nodes, gpus, room)
                self._known[who] = said or laid_evenly(nodes, gpus, room)
                if who[0] not in shown:
                    self._guessed.add(who)

    def forget(self, runs: Iterable[tuple[int, int]]) -> None:
        """Ask anew for these: their records bear other jobs."""
        self._guessed |= self._known.keys() & set(runs)

    def of(self, record: int, restarts: int) -> Layout | None:
        """The layout of an uneven run."""
        return self._known.get((record, restarts))


def read_layout(text: str, nodes: Iterable[str], gpus: int, room: GpusOfNodes) -> Layout | None:
    """The segments of one line of `scontrol -d show job`, if they account for exactly these nodes and GPUs.

    The job's name and other words of its user stand in the line too. They can add segments and take none away: a
    line that names a node twice, or more GPUs than the node has, is not believed.
    """
    segments, allowed = _SEGMENT.findall(text), set(nodes)
    if len(segments) > len(allowed):
        return None
    try:
        found = [
            (name, values.gres_gpus(gres)[0])
            for listed, gres in segments
            for name in hostlist.expand(listed, most=len(allowed))
        ]
    except SlurmTextError:
        return None
    names = [name for name, _ in found]
    once = len(names) == len(allowed) and set(names) == allowed
    fits = all(count <= room.get(name, 0) for name, count in found)
    return tuple(found) if once and fits and sum(count for _, count in found) == gpus else None


def laid_evenly(nodes: tuple[str, ...], gpus: int, room: GpusOfNodes) -> Layout:
    """A layout as even as it goes: no node gives more than it has, the first nodes give one more."""
    share: dict[str, int] = {}
    left = gpus
    for at, name in enumerate(sorted(nodes, key=lambda name: room.get(name, gpus))):
        share[name] = min(room.get(name, gpus), -(-left // (len(nodes) - at)))
        left -= share[name]
    return tuple((name, share[name]) for name in nodes)
