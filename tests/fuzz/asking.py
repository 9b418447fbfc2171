"""The call of a parser, and the samples with which it is asked."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slurm_fair.slurm.command import CommandResult, Commands

FOLDER = Path(tempfile.mkdtemp(prefix="slurm-fair-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser, and samples of what it can read."""

    ask: Callable[[str], object]
    samples: tuple[str, ...]


class Saying(Commands):
    """Every program says this text."""

    def __init__(self, text: str, unfold: str = "--array-unique") -> None:
        super().__init__(unfold=unfold, draw=lambda: "")
        self.text = text.encode("utf-8", "replace").decode()  # as Commands reads what a program says

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The text, as a whole answer."""
        return CommandResult(argv, 0, self.text, "", 0.0)


def file_of(name: str, ask: Callable[[Path], object]) -> Callable[[str], object]:
    """The parser of a file."""
    path = FOLDER / name

    def asked(text: str) -> object:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return ask(path)

    return asked
