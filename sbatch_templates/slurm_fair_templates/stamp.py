"""The token in a job's Slurm comment by which the job says that it speaks our protocol."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

PREFIX = "slurm_fair:"
SIGNALS = ("USR2", "USR1", "TERM")
_TOKEN = re.compile(r"slurm_fair:v[0-9]+(?:,[a-z_]+=[A-Za-z0-9_+.-]*)*")

_OF_HASH = 16  # characters
_WORD = re.compile(r"\s?\S+|\s")  # with the space before it


@dataclass(frozen=True, slots=True)
class StampWords:
    """The words of the comment: how to ask, how long to wait, which begin time is ours.

    gpus: numbers of GPUs with which it can run, where it is elastic.
    script: hash of the batch script.
    profile: its speed is to be measured on each GPU type.
    gate: `uts<epoch>` or `+<seconds>` (the --begin that was given with it), `hold` (-H), or empty (none is ours).
    """

    signal: str
    grace_seconds: int
    gate: str = ""
    gpus: tuple[int, ...] = ()
    script: str = ""
    profile: bool = False

    def __str__(self) -> str:
        """The token as it stands in the comment."""
        gate = f",gate={self.gate}" if self.gate else ""
        gpus = f",gpus={'+'.join(map(str, self.gpus))}" if self.gpus else ""
        script = f",script={self.script}" if self.script else ""
        profile = ",profile=1" if self.profile else ""
        return f"{PREFIX}v1,signal={self.signal},grace={self.grace_seconds}{gate}{gpus}{script}{profile}"


def script_hash(script: str) -> str:
    """Jobs of one script share it, whatever else is on the command line."""
    return hashlib.sha256(script.encode("utf-8", "surrogateescape")).hexdigest()[:_OF_HASH]


def stamped(comment: str, stamp: StampWords) -> str:
    """The user's own comment with our token behind it, in place of any older one."""
    own = "".join(word for word in _WORD.findall(comment) if not _TOKEN.fullmatch(word.strip()))
    return f"{own} {stamp}".lstrip(" ")
