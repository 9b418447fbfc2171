"""Arrays as squeue lists them where it has no --array-unique: a row per task, and no %limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import values

_NEW_AT_ONCE = 64  # arrays whose limit nobody knows yet
_AGAIN = 4  # limits that are asked again at each look: their users may change them
_OWN_ROW = re.compile(r"[0-9]{1,10}_[0-9]{1,7}")  # an array and a task that has no record of its own
# It stands before every text of a user, and the answer is about one array only.
_LIMIT = re.compile(r"JobId=[0-9]+ ArrayJobId=([0-9]{1,10}) ArrayTaskId=\S+ ArrayTaskThrottle=([0-9]{1,9}) ")


@dataclass(slots=True)
class TaskRows:
    """Writes the rows of a record as one again, as --array-unique would have listed it."""

    commands: Commands
    between: str
    _limits: dict[int, int] = field(default_factory=dict)  # by array, the one asked longest ago first

    def by_record(self, lines: Sequence[str], ask_limits: bool) -> list[str]:
        """One line a record. A record with one task looks like a split task, and is treated like one."""
        single: list[str] = []
        arrays: dict[tuple[str, str], list[str]] = {}
        for line in lines:
            parts = line.split(self.between, 3)
            if len(parts) == 4 and parts[0] == parts[1] and _OWN_ROW.fullmatch(f"{parts[0]}_{parts[2]}"):
                arrays.setdefault((parts[0], parts[3]), []).append(parts[2])
            else:
                single.append(line)
        if ask_limits:
            self._learn({int(base): tasks[0] for (base, _), tasks in arrays.items() if len(tasks) > 1})
        return single + [
            self.between.join((base, base, self._listed(base, tasks), rest))
            for (base, rest), tasks in arrays.items()
        ]

    def _listed(self, base: str, tasks: list[str]) -> str:
        if len(tasks) == 1:
            return tasks[0]
        limit = self._limits.get(int(base), 0)
        return values.task_list(np.array(tasks, dtype=np.int64)) + (f"%{limit}" if limit else "")

    def _learn(self, arrays: dict[int, str]) -> None:
        """Ask for limits by any task of each array; one that gets no answer is asked at the next look."""
        self._limits = {base: limit for base, limit in self._limits.items() if base in arrays}
        new = [base for base in arrays if base not in self._limits][:_NEW_AT_ONCE]
        for base in new + list(islice(self._limits, _AGAIN)):
            answer = self.commands.run("scontrol", "-o", "show", "job", f"{base}_{arrays[base]}")
            if answer.whole:
                self._limits.pop(base, None)
                found = _LIMIT.match(answer.out)
                self._limits[base] = int(found[2]) if found and int(found[1]) == base else 0
