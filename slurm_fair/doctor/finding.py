"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The gravity of a finding."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; whatever is not ok says how to mend it."""

    level: Level
    what: str
    cure: str = ""

    def __post_init__(self) -> None:
        """A complaint without a cure helps nobody."""
        if (self.level is Level.OK) == bool(self.cure):
            raise ValueError(f"{self.level} and cure '{self.cure}' do not go together: {self.what}")


def ok(what: str) -> Finding:
    """A finding that all is as it should be."""
    return Finding(Level.OK, what)


def warning(what: str, cure: str) -> Finding:
    """A finding that something works, but less well than it could."""
    return Finding(Level.WARNING, what, cure)


def error(what: str, cure: str) -> Finding:
    """A finding that something cannot work like this."""
    return Finding(Level.ERROR, what, cure)
