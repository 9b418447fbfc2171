"""A page's file: whole or not there, and known to be writable before any work is done for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_fair.errors import InputError, SlurmFairError

Write = Callable[[str], None]


@contextmanager
def claimed(path: Path, read_too: Path | None = None) -> Iterator[Write]:
    """Gives what writes `path`: beside it, synced, renamed; refuses at once a path that cannot be written."""
    target = Path(os.path.realpath(path))  # a link stays one
    _refuse_others(path, target, read_too)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.open("wb").close()
    except OSError as problem:
        raise InputError(
            f"{path}: cannot be written: {problem.strerror}: name a file in a directory that you may write to"
        ) from None
    try:
        yield lambda text: _write(target, beside, text)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _refuse_others(path: Path, target: Path, read_too: Path | None) -> None:
    # os.path asks without raising where a directory may not be looked into; the attempt to write says why
    if read_too is not None and target == Path(os.path.realpath(read_too)):
        raise InputError(f"{path}: is read here too: name another file")
    if os.path.isdir(target):
        raise InputError(f"{path}: is a directory: name a file in it")
    if os.path.exists(target) and not os.path.isfile(target):
        raise InputError(f"{path}: is no plain file: name one")


def _write(target: Path, beside: Path, text: str) -> None:
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as problem:
        raise SlurmFairError(f"{target}: cannot be written: {problem.strerror}") from None
