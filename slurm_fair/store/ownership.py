"""One writer at a time: a lock for as long as the owner lives, and an epoch that outlives it.

The lock (flock) keeps a second daemon out. The epoch fences an owner that was stopped and comes back: who
takes over raises it, and the old owner's next write finds a number that is not its own. The epoch lies in a
file of its own, rewritten in place, so that fencing needs neither SQLite (a second writer in WAL mode meets
SQLite's WAL-reset bug, fixed in 3.51.3 only) nor free space on the disk.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slurm_fair.errors import NotHere, NotTheOwner, StoreError
from slurm_fair.locks import is_locked
from slurm_fair.store.permissions import beside, make_file
from slurm_fair.store.sqlite_errors import as_store_errors

_RECORD_BYTES = 128  # one sector at most: a write of it is seen whole or not at all
_POLL_SECONDS = 0.02


class Ownership:
    """The right to write one journal, held until `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._lock = make_file(beside(path, ".lock"))
        try:
            self._take_lock()
            self._epoch_file = make_file(beside(path, ".epoch"))
        except StoreError:
            os.close(self._lock)
            raise
        _close_in_children(self)
        with as_store_errors(path), _locked(self._epoch_file):
            self.epoch = _read_epoch(self._epoch_file, path)[0] + 1
            _write_epoch(self._epoch_file, self.epoch, who())

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, _RECORD_BYTES, 0).decode("utf-8", "replace").strip()
            raise NotTheOwner(
                f"{self._path}: another daemon owns the journal ({holder or 'it is just starting'}): "
                "stop that one first"
            ) from error
        with as_store_errors(self._path):
            os.pwrite(self._lock, who().ljust(_RECORD_BYTES).encode()[:_RECORD_BYTES], 0)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody can fence us inside this block; entered only while we are the owner."""
        self._be_open()
        with as_store_errors(self._path), _locked(self._epoch_file):
            self.check()
            yield

    def check(self) -> None:
        """NotTheOwner once somebody else has raised the epoch."""
        self._be_open()
        with as_store_errors(self._path):
            same_file = os.fstat(self._epoch_file).st_nlink > 0
            epoch, by = _read_epoch(self._epoch_file, self._path)
        if not same_file:
            raise NotTheOwner(
                f"{beside(self._path, '.epoch')}: was removed, so nobody can tell who owns the journal: "
                "this daemon must stop"
            )
        if epoch != self.epoch:
            raise NotTheOwner(
                f"{self._path}: we own epoch {self.epoch}, and {by or 'somebody'} has opened epoch {epoch}: "
                "this daemon must stop"
            )

    def _be_open(self) -> None:
        if os.getpid() != self._pid:
            raise NotTheOwner(f"{self._path}: a child process may not write the journal of its parent")
        if self._lock < 0:
            raise StoreError(f"{self._path}: the journal was closed: open it again")

    def release(self) -> None:
        """Let another daemon in."""
        self._close()

    def _close(self) -> None:
        for descriptor in (self._lock, self._epoch_file):
            with suppress(OSError):
                os.close(descriptor)
        self._lock = self._epoch_file = -1


def fence(path: Path, by: str = "", wait_seconds: float = 5.0, owner: float = 0) -> int:
    """Raise the epoch, so that no owner until now writes again; the epoch now.

    With the epoch of an `owner` only that one is fenced: one who opened the journal since has done so already.
    An owner that stands still inside a write would block us for ever, so after `wait_seconds` the epoch is
    raised all the same: that owner looks once more after its commit, before it acts.
    """
    if not path.parent.is_dir():
        raise NotHere(f"{path}: there is no journal here: check [storage]")
    descriptor = make_file(beside(path, ".epoch"))
    try:
        with as_store_errors(path):
            patient = _wait_for(descriptor, wait_seconds)
            epoch = _read_epoch(descriptor, path)[0]
            if not owner or epoch <= owner:
                epoch += 1
                _write_epoch(descriptor, epoch, by or who())
            if patient:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        return epoch
    finally:
        os.close(descriptor)


def epoch_of(path: Path) -> int:
    """The epoch now; 0 before the first open."""
    if not beside(path, ".epoch").exists():
        return 0
    with as_store_errors(path):
        descriptor = os.open(beside(path, ".epoch"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return _read_epoch(descriptor, path)[0]
        finally:
            os.close(descriptor)


def is_owned(path: Path) -> bool:
    """True if a daemon holds the journal just now."""
    return is_locked(beside(path, ".lock"))


def who() -> str:
    """This process, as another one's error message names it."""
    return f"pid {os.getpid()} on {socket.gethostname()}"


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _wait_for(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)


def _read_epoch(descriptor: int, path: Path) -> tuple[int, str]:
    text = os.pread(descriptor, _RECORD_BYTES, 0).decode("utf-8", "replace")
    number, _, by = text.partition(" ")
    if text and not number.isdecimal():
        raise StoreError(
            f"{beside(path, '.epoch')}: holds no epoch: write a number higher than any used before"
        )
    return int(number or 0), by.strip()


def _write_epoch(descriptor: int, epoch: int, by: str) -> None:
    record = f"{epoch:020d} {by}".encode()[: _RECORD_BYTES - 1].ljust(_RECORD_BYTES - 1) + b"\n"
    os.pwrite(descriptor, record, 0)
    os.fsync(descriptor)


def _close_in_children(ownership: Ownership) -> None:
    """A forked solver must not keep the lock of a daemon that died."""
    alive = weakref.ref(ownership)

    def close() -> None:
        owner = alive()
        if owner is not None:
            owner._close()

    os.register_at_fork(after_in_child=close)
