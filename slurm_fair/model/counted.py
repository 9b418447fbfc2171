"""Numbers of things, and lists of names, in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, thing: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def one_of(thing: str) -> str:
    """`a set`, `an object`."""
    return f"{'an' if thing[:1].lower() in 'aeiou' else 'a'} {thing}"


def first_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: so many names at most."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_sayings(sayings: Sequence[str], most: int, of: int | None = None) -> str:
    """`a: why; b: why; and 3 more`: so many at most, of as many as there are or as `of` says."""
    left = (len(sayings) if of is None else of) - min(len(sayings), most)
    return "; ".join([*sayings[:most], *([f"and {left} more"] if left else [])])


def cut_at_word(text: str, most: int) -> str:
    """So many characters of a text at most; what is cut off goes at a word, and three dots say so."""
    if len(text) <= most:
        return text
    kept = text[: most - 2]
    whole = kept.rpartition(" ")[0] or kept[:-1]
    return f"{whole[: most - 3]}..."
