"""Over how many nodes a waiting job may lie: the listing shows one node alike for `-N1` and for no `-N` at all."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slurm_fair.slurm.command import Commands

ANY, ONE = 0, 1
_AT_ONCE = 500
_ASKED = re.compile(r" NumNodes=([0-9]{1,9})(?:-([0-9]{1,9}))? NumCPUs=[0-9]")


class SpanBook:
    """Remembers the most nodes of each job by (record, restarts). Slurm refuses a longer node list, for good."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[int, int], int] = {}

    def learn(self, identities: Iterable[tuple[int, int]]) -> None:
        """Ask once for each; what Slurm does not answer well is asked again at the next look."""
        wanted = set(identities)
        self._known = {who: most for who, most in self._known.items() if who in wanted}
        missing = sorted(wanted - self._known.keys())[:_AT_ONCE]
        if not missing:
            return
        lines = [f"show job {record}" for record, _ in missing]
        answer = self._commands.run("scontrol", "-o", stdin="\n".join([*lines, "exit", ""]))
        found = most_nodes(answer.out) if not answer.timed_out else {}
        self._known |= {who: found[who[0]] for who in missing if who[0] in found}

    def of(self, record: int, restarts: int) -> int:
        """The most nodes of a job, 0 = as many as it takes; one where that is not known."""
        return self._known.get((record, restarts), ONE)


def most_nodes(text: str) -> dict[int, int]:
    """By record, of `scontrol -o show job`. Users' words stand in these lines: who says it twice has one node."""
    found: dict[int, int] = {}
    for line in text.splitlines():
        number = re.match(r"JobId=([1-9][0-9]{0,9}) ", line)
        if number is None:
            continue
        record, said = int(number[1]), _ASKED.findall(line)
        doubtful = len(said) != 1 or record in found
        found[record] = ONE if doubtful else int(said[0][1] or ANY)
    return found
