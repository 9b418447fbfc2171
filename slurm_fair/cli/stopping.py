"""SIGTERM and SIGHUP end a long command as Ctrl-C does: nothing half-made stays, and what was done is told.

An error that a signal raises inside a library may be lost there (numpy's C code drops some), and nobody sends a
batch job a second SIGTERM. So it is remembered, and raised again by loops that ask with `stop_if_asked`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # of scancel and time limits, and of a terminal that is closed

_CLEARED_AWAY_SECONDS = 5.0  # in which files and processes are gone; a signal after that is meant anew


class StoppedBySignal(KeyboardInterrupt):
    """A signal other than Ctrl-C's has come, which asks for the same."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Asked:
    """The signal that came, and when; 0 = none."""

    number, at = 0, 0.0


def stop_if_asked() -> None:
    """Raise what a signal has raised before, where that was lost."""
    if _Asked.number:
        raise StoppedBySignal(_Asked.number)


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Inside it these signals interrupt; those that somebody ignores, as nohup does, stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def interrupt(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if _Asked.number and now - _Asked.at < _CLEARED_AWAY_SECONDS:
            return  # once is enough: files and processes are being cleared away
        _Asked.number, _Asked.at = number, now
        raise StoppedBySignal(number)

    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        _Asked.number = 0
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def code_and_words(problem: BaseException) -> tuple[int, str]:
    """The exit code of what was stopped so, and what to say; click has put its own error round it."""
    found = problem if isinstance(problem, StoppedBySignal) else problem.__cause__
    if isinstance(found, StoppedBySignal):
        return 128 + found.number, f"stopped by {signal.Signals(found.number).name}"
    return 128 + signal.SIGINT, "stopped"
