"""A file system that takes what it is asked and never answers, as one whose server has died."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def hanging(place: Path) -> Iterator[Path]:
    """Mounted over a folder; whoever looks at it hangs until the end."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as problem:
        pytest.skip(f"/dev/fuse: {problem.strerror}")
    options = f"fd={server},rootmode=40755,user_id=0,group_id=0,allow_other".encode()
    if library.mount(b"hangs", os.fsencode(place), b"fuse", 0, options):
        os.close(server)
        pytest.skip(f"mount: {os.strerror(ctypes.get_errno())}")
    threading.Thread(target=_hear_and_say_nothing, args=(server,), daemon=True).start()
    try:
        yield place
    finally:
        library.umount2(os.fsencode(place), 2)
        os.close(server)


def _hear_and_say_nothing(server: int) -> None:
    """Reads and answers nothing until the file system is gone."""
    try:
        while os.read(server, 1 << 20):
            pass
    except OSError:
        return
