"""Arguments that several benchmarks take, checked before any work: what is wrong is one line and exit code 2."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Shows the first part of a module's docstring as it is written, and says what is wrong in one line."""

    def __init__(self, description: str | None) -> None:
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: {message}: --help lists the options\n")


def count(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def whole(text: str) -> int:
    """A whole number of 0 or more, such as a seed."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def number(text: str) -> float:
    """A number above 0."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return found


def page(text: str) -> Path:
    """A file that can be written, whether it is there or not."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text!r} is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path


def known_page(text: str) -> Path:
    """A page that is there, and whose last section is written anew."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(
            f"there is no page {text!r}, whose last section could be written anew"
        )
    return page(text)


def lacking(folder: Path, names: Iterable[str]) -> str:
    """The complaint about traces that a folder lacks; empty where all are there."""
    missing = [name for name in names if not (folder / name).is_file()]
    return f"argument --traces: {str(folder)!r} has no {', '.join(missing)}" if missing else ""
