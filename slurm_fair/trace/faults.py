"""Rows that cannot be used: where, which column, what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from slurm_fair.errors import InputError
from slurm_fair.suggest import did_you_mean

_MOST_SHOWN = 60
_MOST_NAMES = 40


@dataclass(frozen=True, slots=True)
class Fault:
    """One bad row; `place` follows the file's name: `:12`, or `: entry 12` where lines say nothing."""

    place: str
    column: str
    what: str

    def words(self, path: object) -> str:
        """The fault in one line for a person."""
        return f"{path}{self.place}: {self.column}: {self.what}"


class BadCell(InputError):
    """A cell that cannot be read; the column is added by whoever knows it."""

    def __init__(self, what: str, column: str = "") -> None:
        super().__init__(what)
        self.what, self.column = what, column


def shown(text: str) -> str:
    """A foreign text in quotes, cut short, without what could move a terminal's cursor."""
    return f"'{_plain(text)}'"


def _plain(text: str) -> str:
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: _MOST_SHOWN + 1])
    return f"{clean[:_MOST_SHOWN]}..." if len(clean) > _MOST_SHOWN else clean


def nearest_of(name: str, known: Iterable[str], there: str = "known are") -> str:
    """The nearest name as a question, or all of them; they may be foreign too."""
    names = [_plain(name) for name in islice(known, _MOST_NAMES)]
    return did_you_mean(name, names, f"{there} {', '.join(names)}")


def refuse(path: object, faults: Sequence[Fault], cure: str = "--skip-bad leaves bad rows out") -> None:
    """Raise for the first bad row, and say how many more there are."""
    if not faults:
        return
    more = f"{_rows(len(faults) - 1)}; " if len(faults) > 1 else ""
    raise InputError(f"{faults[0].words(path)} ({more}{cure})")


def _rows(count: int) -> str:
    return "1 more bad row follows" if count == 1 else f"{count} more bad rows follow"
