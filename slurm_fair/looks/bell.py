"""A bell in the daemon's published folder: who opens it for writing and closes it again wakes the daemon.

It is a named pipe into which nobody writes. Who opens it for reading and writing never blocks, whatever lies
there: slurmctld waits for nothing. A wake-up says nothing, and is heard at most once for each look.
"""

from __future__ import annotations

import os
import select
import stat
import time
from contextlib import suppress
from pathlib import Path

from slurm_fair.output import leads_to

NAME = "wake-up"
_EVERYBODY = 0o666
_RING = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 65536  # a pipe holds no more


class Bell:
    """The daemon's end of it. Without a folder of the daemon's own it never rings."""

    def __init__(self) -> None:
        self.rung = False  # since it was answered
        self._path: Path | None = None
        self._handle = -1

    def hang(self, directory: str) -> None:
        """Listen in this folder; empty: nowhere. What was taken away is made anew."""
        wanted = Path(directory) / NAME if directory else None
        if wanted == self._path and self._is_there():
            return
        self.close()
        if wanted is None:
            return
        with suppress(OSError):
            _make(leads_to(wanted.parent))
            self._path = wanted
            self.answer()

    def answer(self) -> None:
        """Listen anew: a pipe that is opened again has heard nothing yet."""
        self.rung = False
        if self._path is None:
            return
        before, self._handle = self._handle, -1
        with suppress(OSError):
            self._handle = os.open(self._path, _LISTEN)
            os.read(self._handle, _MOST_BYTES)  # what somebody wrote all the same
        if before >= 0:
            os.close(before)

    def wait(self, seconds: float) -> bool:
        """Sleep so long; True at once when it rings. One that has rung is not listened to."""
        if self._handle < 0 or self.rung:
            time.sleep(seconds)
            return False
        ears = select.poll()
        ears.register(self._handle, select.POLLIN)
        self.rung = bool(ears.poll(max(seconds, 0.0) * 1000))
        return self.rung

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._path, self.rung = -1, None, False

    def _is_there(self) -> bool:
        """True while the pipe that is listened to still has its name; nobody rings another one."""
        if self._path is None or self._handle < 0:
            return self._path is None
        with suppress(OSError):
            named, held = os.stat(self._path, follow_symlinks=False), os.fstat(self._handle)
            return stat.S_ISFIFO(held.st_mode) and (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
        return False


def _make(directory: Path) -> None:
    """A new pipe for everybody, in a folder that only we can change."""
    folder = os.open(directory, _FOLDER)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{directory}: is not ours alone")
        with suppress(FileNotFoundError):
            os.unlink(NAME, dir_fd=folder)
        os.mkfifo(NAME, dir_fd=folder)
        os.chmod(NAME, _EVERYBODY, dir_fd=folder)  # whatever the umask
    finally:
        os.close(folder)


def place(directory: str) -> str:
    """The path of the bell in a published folder; empty where nothing is published."""
    return f"{directory}/{NAME}" if directory else ""


def ring(directory: str) -> None:
    """Wake the daemon that publishes there, if one listens; nothing depends on it."""
    if directory:
        with suppress(OSError):
            os.close(os.open(place(directory), _RING))
