"""Slurm's node lists: `n[001-004,7],login1`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slurm_fair.errors import SlurmTextError

_PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_MOST = 200_000
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def expand(text: str) -> tuple[str, ...]:
    """Every name of a list, in its order."""
    text = text.strip()
    if not text or text in ("(null)", "None assigned", "N/A"):
        return ()
    names: list[str] = []
    for part in _split(text):
        names.extend(_expand_part(part))
        if len(names) > _MOST:
            raise SlurmTextError(f"node list '{text[:60]}' names more than {_MOST} nodes")
    return tuple(names)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise SlurmTextError(f"node list '{text[:60]}' has an open bracket")
    return [*parts, text[start:]]


def _expand_part(part: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [head]
    inside, _, tail = rest.partition("]")
    tails = _expand_part(tail) if tail else [""]
    numbers = [number for piece in inside.split(",") for number in _numbers(piece, part)]
    return [f"{head}{number}{end}" for number in numbers for end in tails]


def _numbers(piece: str, part: str) -> list[str]:
    first, dash, last = piece.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise SlurmTextError(f"node list '{part[:60]}': '{piece}' is no number or range")
    if not dash:
        return [first]
    if int(last) - int(first) > _MOST:
        raise SlurmTextError(f"node list '{part[:60]}' is too long")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def join(names: Iterable[str]) -> str:
    """A plain comma list for a command; only names that Slurm itself could have listed."""
    names = list(names)
    for name in names:
        if not NODE_NAME.fullmatch(name):
            raise SlurmTextError(f"'{name}' is no node name")
    return ",".join(names)
