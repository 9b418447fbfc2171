"""One planning process as its parent sees it: start it, ask it, listen until an instant, kill it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from slurm_fair.host.own_python import FOLDER, our_environment
from slurm_fair.planner.frames import HEAD, MOST_BYTES, framed, plain_data
from slurm_fair.planner.messages import READY

PROGRAM = (sys.executable, "-I", "-m", "slurm_fair.planner")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_PIPE_BYTES = 1 << 20
_PART_BYTES = 1 << 18
_SLICE_SECONDS = 0.5  # between two times that whoever waits is asked to show that it lives


class ProcessGone(Exception):
    """The process has ended; the message says how."""


class Garbage(Exception):
    """The process said something that is no answer."""


class PlanningProcess:
    """A child of ours; nothing here waits longer than it is told to."""

    def __init__(self, policy: Any, memory_mb: float, program: Sequence[str] = PROGRAM) -> None:
        """Start it; its policy is loaded meanwhile. OSError where there is no process to be had."""
        self.began = time.monotonic()
        self._heard = bytearray()
        self._child = subprocess.Popen(
            [*program, f"{memory_mb:.0f}", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=FOLDER,
            env=our_environment() | _ONE_THREAD,
            start_new_session=True,
        )
        self._end = weakref.finalize(self, _kill, self._child)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._into, self._from = self._child.stdin.fileno(), self._child.stdout.fileno()
        for pipe in (self._into, self._from):
            os.set_blocking(pipe, False)
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._unsaid = memoryview(_hello(policy))

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._child.pid

    @property
    def ended(self) -> bool:
        """True if it is no more."""
        return self._child.poll() is not None

    def ask(self, message: Any) -> None:
        """Have this said to it while it is listened to; what was to be said before goes first."""
        self._unsaid = memoryview(bytes(self._unsaid) + framed(message))

    def hear(self, until: float, waits: Callable[[], None]) -> tuple[Any, ...] | None:
        """Its next message; None where there is none by then. ProcessGone, or Garbage.

        `waits` is called now and then meanwhile.
        """
        while True:
            message = self._whole()
            if message is not None:
                return message
            left = until - time.monotonic()
            if left <= 0:
                return None
            waits()
            writing = [self._into] if len(self._unsaid) else []
            readable, writable, _ = select.select(
                [self._from], writing, [], max(min(left, _SLICE_SECONDS), 0.0)
            )
            if writable:
                self._say()
            if readable:
                self._read()

    def kill(self) -> None:
        """End it at once; what hangs in its file system dies when it can, and nobody waits for that."""
        self._child.kill()

    def close(self) -> None:
        """Kill it, take its pipes away and give it a moment to die."""
        self._end()

    def _say(self) -> None:
        try:
            self._unsaid = self._unsaid[os.write(self._into, self._unsaid[:_PART_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # how it ended is read from the other pipe
            self._unsaid = memoryview(b"")

    def _read(self) -> None:
        try:
            part = os.read(self._from, _PART_BYTES)
        except BlockingIOError:
            return
        if not part:
            raise ProcessGone(self._ending())
        self._heard += part

    def _whole(self) -> tuple[Any, ...] | None:
        """The first message of what was heard, once it is whole."""
        if len(self._heard) < HEAD.size:
            return None
        size = HEAD.unpack_from(self._heard)[0]
        if size > MOST_BYTES:
            raise Garbage(f"it begins an answer of {size} bytes")
        end = HEAD.size + size
        if len(self._heard) < end:
            return None
        data, self._heard = bytes(self._heard[HEAD.size : end]), self._heard[end:]
        try:
            message = plain_data(data)
        except Exception as error:
            raise Garbage(f"{type(error).__name__}: {error}") from error
        if not _is_answer(message):
            raise Garbage(f"it says a {type(message).__name__} that is no answer")
        return message

    def _ending(self) -> str:
        """In words: by a signal, or by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(0.2)
        code = self._child.poll()
        if code is None:
            return "closed its pipe"
        if code >= 0:
            return f"ended with exit code {code}"
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
        return f"was ended by signal {-code}"


def _is_answer(message: Any) -> TypeGuard[tuple[Any, ...]]:
    """A word, the number of the question, and after the first word something said."""
    if not isinstance(message, tuple) or len(message) < 2:
        return False
    word, number = message[:2]
    return isinstance(word, str) and type(number) is int and (len(message) > 2 or word == READY)


def _hello(policy: Any) -> bytes:
    """The folders that the parent imports from, and the policy by name of its class and its settings."""
    search = [place for place in sys.path if place.startswith("/") and Path(place).exists()]
    return framed((search, framed(policy)[HEAD.size :]))


def _kill(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    with suppress(subprocess.TimeoutExpired):
        child.wait(0.5)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
