"""Slurm's node lists: `n[001-004,7],login1`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slurm_fair.errors import SlurmTextError

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST = 200_000
_MOST_LETTERS = 64 * _MOST  # no name of a host is longer
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def expand(text: str, most: int = _MOST) -> tuple[str, ...]:
    """Every name of a list, in its order; one of too many is refused unexpanded."""
    text = text.strip()
    if not text or text in ("(null)", "None assigned", "N/A"):
        return ()
    names: list[str] = []
    for part in _split(text):
        names.extend(_expand_part(part, most))
        _check_count(len(names), text, most)
    return tuple(names)


def _check_count(count: int, text: str, most: int, length: int = 0) -> None:
    if count > most:
        raise SlurmTextError(f"node list '{text[:60]}' names more than {most} nodes")
    if count * length > _MOST_LETTERS:
        raise SlurmTextError(f"node list '{text[:60]}' has names that are too long for {count} nodes")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise SlurmTextError(f"node list '{text[:60]}' has a bracket too many")
    return [*parts, text[start:]]


def _expand_part(part: str, most: int) -> list[str]:
    """One name or one bracketed expression, which may have several brackets."""
    names, tail = [""], ""  # what every name ends with is added once, however many pieces it has
    for piece in re.split(r"(\[[^\[\]]*\])", part):
        ends = _numbers(piece[1:-1], part, most) if piece.startswith("[") and piece.endswith("]") else [piece]
        if len(ends) == 1:
            tail += ends[0]
        else:
            _check_count(len(names) * len(ends), part, most, len(names[-1]) + len(tail))
            names, tail = [f"{name}{tail}{end}" for name in names for end in ends], ""
    _check_count(len(names), part, most, len(names[-1]) + len(tail))
    names = [name + tail for name in names]
    if not all(names) or any(letter in name for name in (names[0], names[-1]) for letter in "[]"):
        raise SlurmTextError(f"node list: '{part[:60]}' is no node name")
    return names


def _numbers(inside: str, part: str, most: int) -> list[str]:
    numbers: list[str] = []
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or last < first:
            raise SlurmTextError(f"node list '{part[:60]}': '{piece[:20]}' is no range that can be")
        _check_count(len(numbers) + last - first + 1, part, most)
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return numbers


def join(names: Iterable[str]) -> str:
    """A plain comma list for a command; only names that Slurm itself could have listed."""
    names = list(names)
    for name in names:
        if not NODE_NAME.fullmatch(name):
            raise SlurmTextError(f"'{name}' is no node name")
    return ",".join(names)
