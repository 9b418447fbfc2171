"""Numbers of things, and lists of names, in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, thing: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def first_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: so many names at most."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
