"""GPUs per node of running jobs: an even split where it must be one, Slurm's own word where it may not be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm import hostlist, words
from slurm_fair.slurm.command import Commands

_SEGMENT = re.compile(r" Nodes=(\S+) CPU_IDs=\S* Mem=\d+ GRES=(\S*)")
Layout = tuple[tuple[str, int], ...]


class LayoutBook:
    """Remembers the layout of each run by (record, restarts)."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[int, int], Layout] = {}

    def learn(self, uneven: Mapping[tuple[int, int], tuple[tuple[str, ...], int]]) -> None:
        """Ask once for each uneven run; a run that Slurm does not explain is split as evenly as it goes."""
        self._known = {who: known for who, known in self._known.items() if who in uneven}
        for who, (nodes, gpus) in uneven.items():
            if who not in self._known:
                self._known[who] = self._ask(who[0], nodes, gpus) or spread(nodes, gpus)

    def of(self, record: int, restarts: int) -> Layout | None:
        """The layout of an uneven run."""
        return self._known.get((record, restarts))

    def _ask(self, record: int, nodes: tuple[str, ...], gpus: int) -> Layout | None:
        answer = self._commands.run("scontrol", "-d", "-o", "show", "job", str(record))
        if not answer.whole:
            return None
        # The id of an array's first record lists the whole array.
        mine = [line for line in answer.out.splitlines() if line.startswith(f"JobId={record} ")]
        return read_layout(mine[0], nodes, gpus) if mine else None


def read_layout(text: str, nodes: Iterable[str], gpus: int) -> Layout | None:
    """The segments of `scontrol -d show job`, if they account for exactly these nodes and GPUs."""
    try:
        found = [
            (name, words.gres_gpus(gres)[0])
            for names, gres in _SEGMENT.findall(text)
            for name in hostlist.expand(names)
        ]
    except SlurmTextError:
        return None
    whole = {name for name, _ in found} == set(nodes) and sum(count for _, count in found) == gpus
    return tuple(found) if whole else None


def spread(nodes: tuple[str, ...], gpus: int) -> Layout:
    """As even as it goes, the first nodes one more."""
    share, rest = divmod(gpus, max(len(nodes), 1))
    return tuple((name, share + (row < rest)) for row, name in enumerate(nodes))
