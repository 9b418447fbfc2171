"""The known name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LETTERS = 80  # comparing takes time with the square of the length
_HALF_ALIKE = 0.5


def nearest(wrong: str, known: Iterable[str]) -> str:
    """The known name that is most like a wrong one; empty if none is half alike."""
    close = get_close_matches(wrong[:_MOST_LETTERS], list(known), n=1, cutoff=_HALF_ALIKE)
    return close[0] if close else ""


def known_names(wrong: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or all of them."""
    names = sorted(known)
    if near := nearest(wrong, names):
        return f"did you mean '{near}'?"
    return f"known are {', '.join(names)}" if names else "none is known"
