"""Samples of the files that traces and what lies beside them are read from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slurm_fair.errors import InputError

DATA = Path(__file__).parents[1] / "data" / "traces"


def changed(folder: Path, name: str, old: str, new: str) -> Path:
    """A sample with one thing wrong."""
    text = (DATA / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder / name


def refusal(run: Callable[[], object]) -> str:
    """The one line of a refusal; nothing where there was none. Whatever else is raised fails the test."""
    try:
        run()
    except InputError as refused:
        return str(refused)
    return ""
