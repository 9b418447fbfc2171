"""The most nodes of a waiting job, which the listing lacks: it shows one node for `-N1` and without `-N` alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.scontrol_show import show_jobs

_AS_IT_TAKES = 0
_AT_ONCE = 500
_AGAIN_SECONDS, _AGAIN_AT_ONCE = 60.0, 100
_ASKED = re.compile(r" NumNodes=([0-9]{1,9})(?:-([0-9]{1,9}))? NumCPUs=[0-9]")


class NodeLimits:
    """Remembers the most nodes of each job by (record, restarts). Slurm refuses a longer node list, for good."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[int, int], tuple[int, float]] = {}  # and when Slurm said so

    def learn(self, identities: Iterable[tuple[int, int]], now: float = 0.0) -> None:
        """Ask for each, and some again after a while: owners may change it. Unanswered, the old one stands."""
        wanted = set(identities)
        self._known = {who: known for who, known in self._known.items() if who in wanted}
        missing = sorted(wanted - self._known.keys())[:_AT_ONCE]
        aged = {
            who: since for who, (_, since) in self._known.items() if not 0 <= now - since < _AGAIN_SECONDS
        }
        missing += sorted(aged, key=aged.__getitem__)[:_AGAIN_AT_ONCE]
        if not missing:
            return
        shown = show_jobs(self._commands, dict.fromkeys(record for record, _ in missing))
        self._known |= {who: (most_nodes(shown[who[0]]), now) for who in missing if who[0] in shown}

    def forget(self, runs: Iterable[tuple[int, int]]) -> None:
        """Ask anew for these: their records bear other jobs."""
        for who in runs:
            self._known.pop(who, None)

    def of(self, record: int, restarts: int) -> int:
        """The most nodes of a job, 0 = as many as it takes; one where that is not known."""
        return self._known.get((record, restarts), (1, 0.0))[0]


def most_nodes(line: str) -> int:
    """The most nodes by a line of `scontrol -o show job`; 1 where its user's words name a second number."""
    said = _ASKED.findall(line)
    return int(said[0][1] or _AS_IT_TAKES) if len(said) == 1 else 1
