"""The stamp: a token in a job's Comment by which it says that it speaks the checkpoint protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_fair.model import Gate

_TOKEN = re.compile(r"(?:^|\s)slurm_fair:v([0-9])((?:,[a-z]+=[A-Za-z0-9+]+)*)(?=\s|$)", re.ASCII)
_SCRIPT = re.compile(r"[0-9a-f]{16}")  # the hash of a batch script
_SIZES = re.compile(r"[0-9]{1,5}(?:\+[0-9]{1,5}){0,63}")
MOST_SIZES = 16  # that one job may name
_MOST_SAID = 60  # characters of a wrong value that messages show
SIGNALS = ("USR1", "USR2", "TERM")
_SLACK_SECONDS = 3.0  # `now+600` is computed by sbatch, before Slurm notes the submission


@dataclass(frozen=True, slots=True)
class Stamp:
    """The words of a job's submitter. Version 0 is gated by us at submission but cannot checkpoint."""

    version: int = 0
    signal: str = "USR2"
    grace_seconds: float = 0.0  # 0 = the site's own
    gate: str = ""  # uts<epoch> | +<seconds> | hold
    sizes: tuple[int, ...] = ()  # numbers of GPUs with which it can run, ascending
    bad_sizes: str = ""  # what stands there instead and cannot be read
    script: str = ""  # the hash of its batch script, as its submitter says; empty = not said
    profile: bool = False  # its speed is to be measured on each GPU type
    begin: str = ""  # uts<epoch>: a begin time that the submit hook noted as its owner's own

    @property
    def checkpoints(self) -> bool:
        """True if the job may be asked."""
        return self.version >= 1

    @property
    def is_hold(self) -> bool:
        """True if the job was submitted with a hold as our gate."""
        return self.gate == Gate.HOLD

    def is_gate(self, eligible: float, submit: float) -> bool:
        """True if a begin time is the one that we set at submission, not a wish of the job's owner."""
        if self.gate.startswith("uts"):
            return _is_at(eligible, self.gate)
        if self.gate.startswith("+"):
            return -_SLACK_SECONDS <= eligible - submit - float(self.gate[1:]) <= 1.0
        return False

    def is_own_begin(self, eligible: float) -> bool:
        """True if a begin time is the one that was noted as its owner's own."""
        return self.begin != "" and _is_at(eligible, self.begin)


def _is_at(eligible: float, uts: str) -> bool:
    return abs(eligible - float(uts[3:])) <= 1.0


def read_stamp(comment: str) -> Stamp | None:
    """The stamp in a comment; None without one. A malformed one is none: the job is then never asked.

    A bare note of a begin time is none either: the hook leaves it on jobs that are nobody's to gate.
    """
    match = _TOKEN.search(comment)
    if match is None:
        return None
    keys = dict(pair.split("=", 1) for pair in match[2].split(",") if pair)
    signal, grace, gate = keys.get("signal", "USR2"), keys.get("grace", "0"), keys.get("gate", "")
    if (
        signal not in SIGNALS
        or not re.fullmatch(r"[0-9]{1,6}", grace)
        or not re.fullmatch(r"|uts[0-9]{1,12}|\+[0-9]{1,9}|hold", gate)
    ):
        return None
    begin = keys.get("begin", "")
    if match[1] == "0" and keys.keys() == {"begin"}:
        return None
    sizes = _sizes(keys.get("gpus", ""))
    bad = "" if sizes else keys.get("gpus", "")
    said = keys.get("script", "")
    script = said if _SCRIPT.fullmatch(said) else ""
    profile = keys.get("profile") == "1"
    own_begin = begin if re.fullmatch(r"uts[0-9]{1,12}", begin) else ""
    return Stamp(
        min(int(match[1]), 1), signal, float(grace), gate, sizes, bad[:_MOST_SAID], script, profile, own_begin
    )


def _sizes(text: str) -> tuple[int, ...]:
    """`1+2+4` as numbers; none where it is anything else."""
    if not _SIZES.fullmatch(text):
        return ()
    sizes = sorted({int(word) for word in text.split("+")})
    return tuple(sizes) if len(sizes) <= MOST_SIZES and sizes[0] >= 1 else ()
