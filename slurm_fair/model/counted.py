"""Numbers of things in words."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
