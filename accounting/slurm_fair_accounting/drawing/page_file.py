"""A page's file: whole or not there, and known to be writable before any work is done for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.output import leads_to, open_folder, refuse_database, write_text

Write = Callable[[str], None]
_MOST_LINKS = 40  # as many as Linux follows


@contextmanager
def replacing(path: Path, read_too: Collection[Path] = ()) -> Iterator[Write]:
    """Gives what writes `path`: beside it, synced, renamed; refuses at once a path that cannot be written."""
    target, beside = target_and_beside(path, read_too)
    try:
        yield lambda text: _write(target, beside, text)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def target_and_beside(path: Path, read_too: Collection[Path] = ()) -> tuple[Path, Path]:
    """The file that `path` leads to, and the file beside it that is to be written first; both can be."""
    refuse_no_file(path)
    target = leads_to(path)  # a link stays one
    refuse_what_is_read(path, read_too)
    refuse_database(target)
    try:
        with open_folder(target) as folder:
            folder.need_name(target.name)
            name, handle = folder.make(target.suffix)  # its ending says how it is written
            os.close(handle)
    except OSError as problem:
        raise InputError(
            f"{path}: cannot be written: {problem.strerror}: name a file in a directory that you may write to"
        ) from None
    return target, target.with_name(name)


def refuse_what_is_read(path: Path, read_too: Collection[Path]) -> None:
    """Refuse a name that leads to one of the files that are read."""
    if os.path.realpath(path) in {os.path.realpath(other) for other in read_too}:
        raise InputError(f"{path}: is read here too: name another file")


def put_in_place(beside: Path, target: Path) -> None:
    """The file beside gets its name."""
    try:
        with open_folder(target) as folder:
            folder.rename(beside.name, target.name)
    except OSError as problem:
        raise SlurmFairError(f"{target}: cannot be written: {problem.strerror}") from None


def refuse_no_file(path: Path) -> None:
    """Refuse what is no file, and what somebody holds open: /dev/stdout would be replaced, not written to."""
    if str(path) == "-":
        raise InputError("-: nothing but the result goes to standard output: name a file")
    # os.path asks without raising where a directory may not be looked into; the attempt to write says why
    if _leads_to_open_file(path) or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    ):
        raise InputError(f"{path}: is no plain file: name one")
    if os.path.isdir(path):
        empty = " (the name was empty, or a dot)" if str(path) == "." else ""
        raise InputError(f"{path}: is a directory{empty}: name a file in it")


def _leads_to_open_file(path: Path) -> bool:
    """True if a link on the way is one of a process, as /dev/stdout and /dev/fd/3 are."""
    at = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(at)
        at = os.path.join(os.path.realpath(folder), name)
        if at.startswith("/proc/"):
            return True
        if not os.path.islink(at):
            return False
        at = os.path.join(os.path.dirname(at), os.readlink(at))
    return False


def _write(target: Path, beside: Path, text: str) -> None:
    try:
        write_text(beside, text)
    except OSError as problem:
        raise SlurmFairError(f"{target}: cannot be written: {problem.strerror}") from None
    put_in_place(beside, target)
