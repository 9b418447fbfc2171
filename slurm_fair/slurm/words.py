"""Slurm's words for times, durations, sizes and TRES, read once at the edge."""

from __future__ import annotations

import math
import re

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.columns import Ints

_NOTHING = frozenset({"", "N/A", "NONE", "(null)", "None", "Unknown", "n/a"})
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)[cn]?")
_MEGABYTES = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_TASKS = re.compile(r"\[?([0-9,:\-]+)(?:%(\d+))?\]?")


def is_nothing(text: str) -> bool:
    """Slurm's many ways to say that a field is empty."""
    return text in _NOTHING


def epoch(text: str) -> float:
    """Epoch seconds; 0 for an unset time."""
    if text in _NOTHING:
        return 0.0
    try:
        return float(int(text))
    except ValueError:
        raise SlurmTextError(f"'{text[:40]}' is no time in epoch seconds") from None


def number(text: str) -> int:
    """A whole number; 0 for an empty field. Slurm abbreviates node counts as 1K only when unasked."""
    if text in _NOTHING:
        return 0
    try:
        return int(text.split("-")[0])
    except ValueError:
        raise SlurmTextError(f"'{text[:40]}' is no whole number") from None


def duration_seconds(text: str) -> float:
    """`[D-]HH:MM:SS` or `MM:SS`; inf where there is no limit."""
    if text in _NOTHING or text in ("UNLIMITED", "NOT_SET", "INVALID", "Partition_Limit", "INFINITE"):
        return math.inf
    match = _DURATION.fullmatch(text)
    if match is None:
        raise SlurmTextError(f"'{text[:40]}' is no duration")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def megabytes(text: str) -> int:
    """`512000M`, `64G`; 0 for an empty field."""
    if text in _NOTHING:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SlurmTextError(f"'{text[:40]}' is no memory size")
    return int(float(match[1]) * _MEGABYTES[match[2]])


def tres(text: str) -> dict[str, str]:
    """`cpu=4,mem=256G,gres/gpu:a100=4` as a mapping."""
    if text in _NOTHING:
        return {}
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}


def tres_gpus(counts: dict[str, str]) -> tuple[int, str]:
    """GPUs and their type ("" = any, "+" = several) in a TRES mapping."""
    typed = {name.split(":", 1)[1]: int(n) for name, n in counts.items() if name.startswith("gres/gpu:")}
    plain = int(counts.get("gres/gpu", 0))
    named = [name for name, n in typed.items() if n]
    kind = named[0] if len(named) == 1 else ("+" if named else "")
    return max(plain, sum(typed.values())), kind


def gres_gpus(text: str) -> tuple[int, str]:
    """GPUs and type in `gres:gpu:a100:4`, `gres/gpu:4`, `gpu:a100:8(S:0-1)`, alone or in a list."""
    total, kinds = 0, set()
    for part in re.split(r",(?![^(]*\))", text):
        name = re.sub(r"\(.*\)$", "", re.sub(r"^gres[:/]", "", part.strip()))
        pieces = name.split(":") if "=" not in name else name.replace("=", ":").split(":")
        if pieces[0] != "gpu":
            continue
        count = int(pieces[-1]) if len(pieces) > 1 and pieces[-1].isdigit() else 1
        kind = pieces[1] if len(pieces) > 1 and not pieces[1].isdigit() else ""
        total += count
        kinds |= {kind} if kind and count else set()
    return total, kinds.pop() if len(kinds) == 1 else ("+" if kinds else "")


def task_numbers(text: str) -> tuple[Ints, int]:
    """Tasks and %limit of an unsplit array: `0-5,9,10-20:2%3`."""
    match = _TASKS.fullmatch(text)
    if match is None:
        raise SlurmTextError(f"'{text[:60]}' is no list of array tasks")
    numbers: list[Ints] = []
    for piece in match[1].split(","):
        span, _, step = piece.partition(":")
        first, dash, last = span.partition("-")
        numbers.append(np.arange(int(first), int(last if dash else first) + 1, int(step or 1)))
    return np.concatenate(numbers).astype(np.int64), int(match[2] or 0)
