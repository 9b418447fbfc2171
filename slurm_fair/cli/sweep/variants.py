"""The settings of each policy of a sweep: where several values of one are listed, each is a policy of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from slurm_fair.cli.simulate.setups import given_settings
from slurm_fair.errors import InputError
from slurm_fair.trace.faults import shown

_OPEN, _CLOSE, _QUOTES = "[{", "]}", "'\""


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy with some settings; its name tells those of which the sweep has several."""

    name: str
    policy: str
    settings: tuple[str, ...]  # as --set takes them


def variants_of(given: Sequence[str], policies: Sequence[str]) -> list[Variant]:
    """Every combination of the values that --set lists, policy by policy."""
    lists = [list(_each(text)) for text in given]
    given_settings([texts[0] for texts in lists], policies)  # it refuses what is no setting of these policies
    found = []
    for policy in policies:
        mine = [texts for texts in lists if texts[0].partition(".")[0].strip() == policy]
        varied = [len(texts) > 1 for texts in mine]
        for texts in product(*mine):
            values = (text.partition(".")[2] for text, one in zip(texts, varied, strict=True) if one)
            found.append(Variant(" ".join([policy, *values]), policy, texts))
    return found


def base_of(name: str) -> str:
    """The policy of a variant."""
    return name.partition(" ")[0]


def _each(text: str) -> Iterator[str]:
    """`policy.key=A,B` as one text for each value; commas within brackets and quotes belong to a value."""
    path, equals, value = text.partition("=")
    policy, dot, key = path.strip().partition(".")
    values = _split(value)
    if not (equals and dot and key) or len(values) == 1:
        yield text
        return
    met: list[object] = []
    for one in values:
        if not one:
            raise InputError(f"--set {shown(text)}: an empty value: write {policy}.{key}=A,B")
        each = f"{policy}.{key}={one}"
        parsed = given_settings([each], [policy])[policy][key]
        if any(_same(parsed, other) for other in met):
            raise InputError(f"--set {shown(text)}: {shown(one)} is there twice: keep one of them")
        met.append(parsed)
        yield each


def _same(one: object, other: object) -> bool:
    """True for equal values; true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _split(text: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        else:
            depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
