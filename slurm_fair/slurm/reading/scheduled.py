"""The instant at which Slurm last tried to start a held job tells a submission's hold from a later one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.command import Commands, only_ids
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.queue import BETWEEN

_MOST_IDS = 200  # squeue itself picks several ids out of the whole queue, for each call anew
_LAYOUT = f"JobID:{BETWEEN},LastSchedEval:{BETWEEN}"  # numbers of Slurm's own, and nothing else


@dataclass(slots=True)
class LastScheduled:
    """Kept by (record, restarts), of the jobs of the last question alone: the time moves with each try."""

    commands: Commands
    _known: dict[tuple[int, int], float] = field(default_factory=dict)

    def learn(self, identities: Iterable[tuple[int, int]]) -> str:
        """Ask anew for these jobs; a complaint when Slurm does not answer well."""
        wanted, self._known = sorted(set(identities)), {}
        if not wanted:
            return ""
        ids = list(dict.fromkeys(str(record) for record, _ in wanted))
        answer = self.commands.squeue(
            *(("-j", only_ids(ids)) if len(ids) <= _MOST_IDS else ()), "-O", _LAYOUT
        )
        if not answer.whole and "Invalid job id" in answer.err:
            return ""  # the only job asked for is gone from memory
        if not answer.whole:
            return answer.complaint
        try:
            found = {record: values.epoch(instant) for record, instant in _rows(answer.out)}
        except SlurmTextError as wrong:
            return f"squeue: LastSchedEval: {wrong}"
        self._known = {who: found[str(who[0])] for who in wanted if str(who[0]) in found}
        return ""

    def at(self, record: int, restarts: int) -> float:
        """The instant, 0 where Slurm never tried; inf where nobody asked or Slurm did not say."""
        return self._known.get((record, restarts), math.inf)


def _rows(text: str) -> list[tuple[str, str]]:
    rows = [line.split(BETWEEN) for line in text.splitlines()]
    return [(cells[0], cells[1]) for cells in rows if len(cells) == 3]
