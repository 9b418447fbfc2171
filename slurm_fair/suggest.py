"""The known name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LETTERS = 80  # comparing takes time with the square of the length
_HALF_ALIKE = 0.5


def nearest(wrong: str, known: Iterable[str], alike: float = _HALF_ALIKE) -> str:
    """The known name that is most like a wrong one, and at least so much; empty where none is.

    Small and capital letters are alike.
    """
    by_letters = {name.lower(): name for name in reversed(list(known))}
    close = get_close_matches(wrong[:_MOST_LETTERS].lower(), list(by_letters), n=1, cutoff=alike)
    return by_letters[close[0]] if close else ""


def did_you_mean(wrong: str, known: Iterable[str], otherwise: str = "") -> str:
    """The known name that is most like a wrong one, as a question; where none is half alike, `otherwise`.

    That is all of them, in the order given, where nothing else is said.
    """
    names = list(known)
    if close := nearest(wrong, names):
        return f"did you mean '{close}'?"
    return otherwise or (f"known are {', '.join(names)}" if names else "none is known")
