"""Text files, gzip too: read with one kind of error, written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from slurm_fair.errors import InputError, SlurmFairError


@contextlib.contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """The text of a file; whatever keeps it from being read is one InputError."""
    try:
        with _opened(path) as text:
            yield text
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise InputError(f"{path}: not a whole gzip file: take .gz off its name, or fetch it again") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8: convert it first (iconv -t utf-8)") from None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def write_whole(path: Path, write: Callable[[IO[str]], None]) -> None:
    """Write beside, sync, rename: nobody ever sees half a file; the same text gives the same bytes."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            _write(file, path.suffix == ".gz", write)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        raise SlurmFairError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


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
