"""Text files, gzip too: read with one kind of error and within bounds, written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from slurm_fair import output
from slurm_fair.errors import InputError, SlurmFairError

MOST_LINE = 1 << 24  # characters; no line that people or programs mean is longer
MOST_WHOLE = 1 << 29  # of what is read at once
_HEAD = 4096  # bytes that are looked at first
_FEW_ZEROS = 20  # one byte of so many may be zero: a single one is a bad row
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Text:
    """The text of a file, line by line or at once; an endless one is refused before memory ends."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path, self._file = path, file

    def __iter__(self) -> Iterator[str]:
        """Each line with its end."""
        readline = self._file.readline
        number = 0
        while line := readline(MOST_LINE):
            number += 1
            if len(line) == MOST_LINE and line[-1] not in "\r\n":
                raise InputError(
                    f"{self._path}:{number}: a line of more than {MOST_LINE >> 20} million characters: "
                    "is it the right file?"
                )
            yield line

    def read(self) -> str:
        size = os.fstat(self._file.fileno()).st_size
        whole = "" if size > MOST_WHOLE else self._file.read(MOST_WHOLE)
        if size > MOST_WHOLE or len(whole) == MOST_WHOLE:
            raise InputError(f"{self._path}: more than {MOST_WHOLE >> 20} MB: is it the right file?")
        return whole


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Text]:
    """The text of a file; whatever keeps it from being read is one InputError."""
    try:
        with contextlib.ExitStack() as open_files:
            yield Text(path, _opened(path, open_files))
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise InputError(f"{path}: not a whole gzip file: take .gz off its name, or fetch it again") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: not UTF-8: is it the right file? if it is text, convert it (iconv -t utf-8)"
        ) from None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _opened(path: Path, open_files: contextlib.ExitStack) -> IO[str]:
    raw = open_files.enter_context(open(path, "rb", opener=_without_waiting))  # noqa: SIM115  the stack closes it
    packed = path.suffix == ".gz"
    file = open_files.enter_context(gzip.GzipFile(fileobj=raw)) if packed else raw
    head = file.peek(_HEAD)[:_HEAD]
    if not head and stat.S_ISFIFO(os.fstat(raw.fileno()).st_mode):
        raise InputError(f"{path}: is a pipe that nobody writes to: name a file")
    if head.startswith(_GZIP) and not packed:
        raise InputError(f"{path}: is gzipped: give it a name that ends in .gz, or unpack it (gunzip --keep)")
    if head.count(0) > len(head) // _FEW_ZEROS and not head.startswith(_UTF_16):
        raise InputError(f"{path}: is no text: is it the right file?")
    return open_files.enter_context(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe would wait for whoever is to write into it, perhaps for ever."""
    opened = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(opened, True)
    return opened


def write_with(path: Path, write: Callable[[IO[str]], None]) -> None:
    """Nobody ever sees half a file; the same text gives the same bytes."""
    try:
        output.write_whole(path, lambda file: _write(file, path.suffix == ".gz", write))
    except OSError as problem:
        raise SlurmFairError(f"{path}: cannot be written: {problem.strerror or problem}") from None


def _write(file: IO[bytes], packed: bool, write: Callable[[IO[str]], None]) -> None:
    if not packed:
        _encode(file, write)
        return
    # No time and no name inside the gzip header: both would change the bytes from run to run.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as target:
        _encode(target, write)


def _encode(target: IO[bytes] | gzip.GzipFile, write: Callable[[IO[str]], None]) -> None:
    text = io.TextIOWrapper(target, encoding="utf-8", newline="")
    write(text)
    text.flush()
    text.detach()  # whoever opened the target closes it
