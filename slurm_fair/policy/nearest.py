"""What to say when a name is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def known_names(wrong: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or all of them."""
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known are {', '.join(names)}" if names else "none is known"
