"""Slurm's words for times, durations, sizes and TRES, read once at the edge."""

from __future__ import annotations

import math
import re

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.columns import Ints
from slurm_fair.slurm_text.durations import UNLIMITED, clock_seconds

_NOTHING = frozenset({"", "N/A", "NONE", "(null)", "None", "Unknown", "n/a"})
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_MOST_GPUS, _MOST_COUNT = 10**6, 10**10  # of one job; more is no demand but a slip or an attack
_LAST_INSTANT = 253_402_300_799.0  # the end of the year 9999, where calendars end
_RANGE_END = re.compile(r"(?<=[0-9])-[0-9]{1,18}\Z")
_DIGITS = re.compile(r"-?[0-9]+")
_PART_OF_A_SECOND = re.compile(r"\.[0-9]+\Z")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTP]?)[cn]?")
_MEGABYTES = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_GRES = re.compile(
    r"(?:[^,(]|\([^()]*\)|\()+"
)  # between commas outside of brackets; a letter is read twice at most


def is_nothing(text: str) -> bool:
    """Slurm's many ways to say that a field is empty."""
    return text in _NOTHING


def epoch(text: str) -> float:
    """Epoch seconds; 0 for an unset time."""
    if text in _NOTHING:
        return 0.0
    if not _WHOLE.fullmatch(text) or not 0 <= int(text) <= _LAST_INSTANT:
        raise SlurmTextError(f"'{text[:40]}' is no time in epoch seconds")
    return float(int(text))


def number(text: str) -> int:
    """A whole number, the lower end of a range; 0 for an empty field."""
    if text in _NOTHING:
        return 0
    first = _RANGE_END.sub("", text) if "-" in text else text
    if not _WHOLE.fullmatch(first):
        raise SlurmTextError(f"'{text[:40]}' is no whole number")
    return int(first)


def count(text: str, most: int = _MOST_COUNT) -> int:
    """A number of things, refused where no cluster could have so many."""
    found = number(text)
    if not 0 <= found <= most:
        raise SlurmTextError(f"'{text[:40]}' is a number that cannot be: at most {most} would be believed")
    return found


def duration_seconds(text: str) -> float:
    """`[D-]HH:MM:SS` or `MM:SS`; inf where there is no limit."""
    if text in _NOTHING or text in UNLIMITED:
        return math.inf
    seconds = clock_seconds(_PART_OF_A_SECOND.sub("", text))
    if seconds is None:
        raise SlurmTextError(f"'{text[:40]}' is no duration")
    return float(seconds)


def megabytes(text: str) -> int:
    """`512000M`, `64G`; 0 for an empty field."""
    if text in _NOTHING:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SlurmTextError(f"'{text[:40]}' is no memory size")
    size = float(match[1]) * _MEGABYTES[match[2]]
    if size > 10**15:
        raise SlurmTextError(f"'{text[:40]}' is more memory than any cluster has")
    return int(size)


def tres(text: str) -> dict[str, str]:
    """`cpu=4,mem=256G,gres/gpu:a100=4` as a mapping."""
    if text in _NOTHING:
        return {}
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}


def gpus(text: str) -> int:
    """A number of GPUs."""
    return count(text, _MOST_GPUS)


def tres_gpus(counts: dict[str, str]) -> tuple[int, str]:
    """GPUs and their type ("" = any, "+" = several) in a TRES mapping."""
    typed = {name.split(":", 1)[1]: gpus(n) for name, n in counts.items() if name.startswith("gres/gpu:")}
    plain = gpus(counts.get("gres/gpu", "0"))
    named = [name for name, n in typed.items() if n]
    kind = named[0] if len(named) == 1 else ("+" if named else "")
    return max(plain, sum(typed.values())), kind


def gres_gpus(text: str) -> tuple[int, str]:
    """GPUs and type in `gres:gpu:a100:4`, `gres/gpu:4`, `gpu:a100:8(S:0-1)`, alone or in a list.

    The text may be anything (slurm-facts: gpu-text-is-the-users, slurm-facts: gres-text-is-short).
    """
    if text in _NOTHING:
        return 0, ""
    total, kinds = 0, set()
    for part in _GRES.findall(text):
        name = re.sub(r"^gres[:/]", "", part.strip())
        name = name.partition("(")[0] if name.endswith(")") else name
        pieces = name.split(":") if "=" not in name else name.replace("=", ":").split(":")
        if pieces[0] != "gpu":
            continue
        numbered = len(pieces) > 1 and _DIGITS.fullmatch(pieces[-1])
        many = gpus(pieces[-1]) if numbered else 1
        kind = pieces[1] if len(pieces) > 1 and not _DIGITS.fullmatch(pieces[1]) else ""
        total += many
        kinds |= {kind} if kind and many else set()
    return total, kinds.pop() if len(kinds) == 1 else ("+" if kinds else "")


def task_list(numbers: Ints) -> str:
    """Task numbers as Slurm writes them: `0-5,9`."""
    ordered = np.unique(numbers)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in parts if len(run))
