"""A cheap question to slurmctld: has something happened since it was asked before?

`sdiag` answers with counters, at the same small price for every length of the queue (slurm-facts: sdiag-counts).
Each submission, start, end, update and registration moves one of them. What only reads moves others, which tell
the price of a look. Slurm itself writes all of these lines; the names of users come behind them and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from slurm_fair.slurm.command import Commands

_TYPES, _USERS = "statistics by message type", "statistics by user"
_ROW = re.compile(r"^\t(\S+)\s+\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)", re.MULTILINE)
_JOBS = re.compile(r"^(Jobs (?:submitted|started|completed|canceled|failed)):\s*(\d+)\s*$", re.MULTILINE)
# Readers, steps of jobs that run, and connections: no job waits, starts or ends by them.
_CHANGES_NOTHING = re.compile(
    r"REQUEST_(?:\w+_)?INFO(?:_\w+)?|REQUEST_(?:PING|CONTROL_STATUS|PRIORITY_FACTORS|JOB_READY|JOB_STATE|CONFIG"
    r"|BATCH_SCRIPT|STEP_\w+|JOB_STEP_\w+|JOB_SBCAST_CRED|HOSTLIST_EXPANSION|PERSIST_INIT\w*|AUTH_TOKEN|DBD_RELAY)"
)
_INFO = re.compile(r"REQUEST_(?:\w+_)?INFO(?:_\w+)?")
_MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of slurmctld since it started, or since midnight."""

    moved: Mapping[str, int]
    reads: Mapping[str, tuple[int, int]]  # how many, and their microseconds

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The counters in what sdiag says; None where these are not in it."""
        head, found, rest = text.partition(_TYPES)
        jobs = {name: int(count) for name, count in _JOBS.findall(head)}
        rows = _ROW.findall(rest.partition(_USERS)[0])
        if not (found and jobs and rows):
            return None
        moved = {name: int(count) for name, count, _ in rows if not _CHANGES_NOTHING.fullmatch(name)}
        reads = {name: (int(count), int(time)) for name, count, time in rows if _INFO.fullmatch(name)}
        return cls(jobs | moved, reads)

    def read_seconds_since(self, before: Counters) -> float:
        """Mean seconds that the dearest kind of question took slurmctld since then; 0 where none was asked."""
        dearest = 0.0
        for name, (count, time) in self.reads.items():
            old_count, old_time = before.reads.get(name, (0, 0))
            if count > old_count and time >= old_time:
                dearest = max(dearest, (time - old_time) / (count - old_count) * _MICROSECOND)
        return dearest


@dataclass(slots=True)
class Changes:
    """Asks whether something has changed since it was noted."""

    commands: Commands
    read_seconds: float = 0.0  # what the dearest question of the last look took slurmctld
    complaint: str = ""  # why there is no answer
    _noted: Counters | None = field(default=None)

    def note(self) -> None:
        """Note what has happened so far: the look that follows shows it."""
        self._noted = self._ask()

    def since_noted(self) -> bool | None:
        """True if something has changed since; None if nobody can say."""
        before, now = self._noted, self._ask()
        if now is None:
            return None
        if before is None:
            return True
        self.read_seconds = now.read_seconds_since(before) or self.read_seconds
        return now.moved != before.moved

    def _ask(self) -> Counters | None:
        answer = self.commands.run("sdiag")
        counters = Counters.read(answer.out) if answer.whole else None
        self.complaint = (
            "" if counters else (answer.complaint if not answer.whole else "sdiag has no counters")
        )
        return counters
